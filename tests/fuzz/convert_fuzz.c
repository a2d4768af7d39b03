/*
 * Any bytes as a RunRequest. What is accepted must be a spec within the bounds that the rest of the
 * service and the launcher rely on; what is refused must say so in valid UTF-8. The first byte
 * chooses between a Run, a Stream and a terminal.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/utf8.h"
#include "proto/wire/wire.h"
#include "service/convert.h"
#include "tests/fuzz/fuzz.h"

static const struct al_language languages[] = {
    {.name = "python", .version = "3.11.2", .aliases = {"py"}, .code_file = "main.py"},
    {.name = "typescript", .version = "5.0", .code_file = "main.ts", .output_file = "main.js"},
};

static struct al_backend full = {.name = "full",
                                 .languages = languages,
                                 .n_languages = 2,
                                 .capabilities = (1u << AL_CAP_COUNT) - 1,
                                 .available = true};
static struct al_backend bare = {
    .name = "bare", .languages = languages, .n_languages = 1, .available = true};
static struct al_backend down = {.name = "down", .unavailable_reason = "it is not running"};

static struct al_backend *const backends[] = {&full, &bare, &down};
static const struct al_registry registry = {.backends = backends, .n = 3, .default_backend = &full};

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void require_utf8(const char *text)
{
    size_t len = strlen(text);
    require(al_utf8_valid_prefix((const uint8_t *)text, len) == len);
}

static void require_path(const char *path)
{
    require(path[0] != '\0' && path[0] != '/' && strlen(path) < AL_PATH_MAX);
    for (const char *part = path;; part++) {
        size_t len = strcspn(part, "/");
        require(len > 0 && len <= AL_PATH_COMPONENT_MAX);
        require(strncmp(part, "..", len) != 0);
        part += len;
        if (*part == '\0') {
            return;
        }
    }
}

static void require_quotas(const struct al_quotas *q, const struct al_quotas *max, bool stream)
{
    require(q->cpu_ms > 0 && q->cpu_ms <= max->cpu_ms);
    require(q->wall_ms > 0 && q->wall_ms <= max->wall_ms);
    require(q->memory_mb > 0 && q->memory_mb <= max->memory_mb);
    require(q->pids > 0 && q->pids <= max->pids);
    require(q->file_size_mb > 0 && q->file_size_mb <= max->file_size_mb);
    require(q->open_files > 0 && q->open_files <= max->open_files);
    require(q->disk_mb > 0 && q->disk_mb <= max->disk_mb);
    require(q->artifact_bytes > 0 && q->artifact_bytes <= max->artifact_bytes);
    require(stream || (q->output_bytes > 0 && q->output_bytes <= max->output_bytes));
}

static void require_pairs(const struct al_env *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        require_utf8(pairs[i].name);
        require_utf8(pairs[i].value);
        require(i == 0 || strcmp(pairs[i - 1].name, pairs[i].name) < 0);
    }
}

static void require_files(const struct al_job_spec *spec, const struct al_request_limits *limits)
{
    size_t bytes = 0;
    require(spec->n_files <= limits->files);
    for (size_t i = 0; i < spec->n_files; i++) {
        const struct al_file *file = &spec->files[i];
        require_path(file->path);
        require(file->mode > 0 && file->mode <= 0777);
        require(file->content.data || file->content.len == 0);
        require(strcmp(file->path, spec->language->code_file) != 0);
        bytes += file->content.len;
        for (size_t k = 0; k < i; k++) {
            require(strcmp(file->path, spec->files[k].path) != 0);
        }
    }
    require(bytes <= limits->files_bytes);
}

static void require_lists(const struct al_job_spec *spec, const struct al_request_limits *limits)
{
    require(spec->n_args <= limits->args);
    require(spec->n_hosts <= 256 && (spec->n_hosts == 0 || spec->network == AL_NETWORK_ALLOWLIST));
    require(spec->network >= AL_NETWORK_NONE && spec->network <= AL_NETWORK_UNRESTRICTED);
    require(spec->n_artifacts <= 64);
    for (size_t i = 0; i < spec->n_artifacts; i++) {
        require_path(spec->artifacts[i]);
    }
}

static void require_request(const struct al_request *r, const struct al_request_limits *limits,
                            bool stream)
{
    const struct al_job_spec *spec = &r->spec;
    require(r->backend->available && spec->language != NULL);
    require((al_job_spec_needs(spec) & ~r->backend->capabilities) == 0);
    require(r->cache_mode <= AL_CACHE_REFRESH && r->cache_max_age_ms >= 0);
    require(spec->tenant_id[0] != '\0' && strlen(spec->tenant_id) <= 128);
    require(strlen(spec->user_id) <= 128 && spec->job_id[0] == '\0');
    require(spec->code.len <= limits->code_bytes && spec->stdin_bytes.len <= limits->stdin_bytes);
    require(strncmp(spec->workdir, "/sandbox", 8) == 0 || strncmp(spec->workdir, "/tmp", 4) == 0);
    require_path(spec->workdir + 1);
    require(strlen(spec->workdir) < 256);
    require_quotas(&spec->quotas, &limits->maxima, stream);
    require_files(spec, limits);
    require_lists(spec, limits);
    require_pairs(spec->env, spec->n_env);
    require_pairs(r->metadata, r->n_metadata);
    if (spec->inputs_json) {
        require_utf8(spec->inputs_json);
        require(spec->inputs_json[0] == '{' && !strchr(spec->inputs_json, '\n'));
    }
}

/* What is canonical must stay as it is. */
static void require_canonical(const struct al_convert_env *env, struct al_arena *arena,
                              const struct al_request *r)
{
    if (!r->spec.inputs_json || strlen(r->spec.inputs_json) > env->limits->inputs_bytes) {
        return;
    }
    Airlock__V1__RunRequest message = *r->message;
    message.inputs_json = al_arena_strdup(arena, r->spec.inputs_json);
    struct al_request *again = NULL;
    if (message.inputs_json && al_convert_run(env, &message, arena, &again, NULL) == 0) {
        require(strcmp(again->spec.inputs_json, r->spec.inputs_json) == 0);
    } else {
        require(al_arena_is_exhausted(arena));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct al_config config;
    al_config_defaults(&config);
    uint8_t call = len > 0 ? data[0] % 3 : 0;
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message = NULL;
    if (len == 0 || al_wire_unpack_bytes(&airlock__v1__run_request__descriptor, data + 1, len - 1,
                                         &al_wire_request_limits, &arena, &message, NULL, 0) < 0)
    {
        return 0;
    }
    const struct al_convert_env env = {.registry = &registry,
                                       .limits = &config.limits,
                                       .tenant_metadata = NULL,
                                       .stream = call > 0,
                                       .terminal = {.rows = call > 1 ? 24 : 0}};
    struct al_request *request = NULL;
    struct al_err err = {0};
    if (al_convert_run(&env, (const Airlock__V1__RunRequest *)message, arena, &request, &err) < 0) {
        require(!request && al_err_is_set(&err) && err.text[0] != '\0');
        require_utf8(err.text);
        return 0;
    }
    require(!al_err_is_set(&err));
    require_request(request, &config.limits, call > 0);
    require_canonical(&env, arena, request);
    return 0;
}
