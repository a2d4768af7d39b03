#include "service/job_encode.h"

#include <stdio.h>
#include <string.h>

#include "proto/wire/utf8.h"

void al_encode_timestamp(int64_t wall_ns, Google__Protobuf__Timestamp *ret)
{
    google__protobuf__timestamp__init(ret);
    ret->seconds = wall_ns / 1000000000;
    ret->nanos = (int32_t)(wall_ns % 1000000000);
}

/* The length of the valid character at `from`, or 0. */
static size_t character_at(const char *from, size_t len)
{
    for (size_t n = 1; n <= 4 && n <= len; n++) {
        if (al_utf8_valid_prefix((const uint8_t *)from, n) == n) {
            return n;
        }
    }
    return 0;
}

void al_encode_text(const char *from, char *to, size_t size)
{
    size_t len = strlen(from);
    size_t put = 0;
    for (size_t at = 0; at < len;) {
        size_t n = character_at(from + at, len - at);
        size_t need = n > 0 ? n : sizeof "\\xNN" - 1;
        if (put + need >= size) {
            break;
        }
        if (n > 0) {
            memcpy(to + put, from + at, n);
        } else {
            (void)snprintf(to + put, size - put, "\\x%02x", (unsigned char)from[at]);
        }
        put += need;
        at += n > 0 ? n : 1;
    }
    to[put] = '\0';
}

static void encode_language(const struct al_language *language, char *to, size_t size)
{
    char text[AL_LANGUAGE_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%s@%s", language->name, language->version);
    al_encode_text(text, to, size);
}

static void encode_quotas(const struct al_quotas *quotas, Airlock__V1__Quotas *ret)
{
    airlock__v1__quotas__init(ret);
    ret->cpu_seconds = (double)quotas->cpu_ms / 1e3;
    ret->wall_seconds = (double)quotas->wall_ms / 1e3;
    ret->memory_mb = quotas->memory_mb;
    ret->pids = quotas->pids;
    ret->file_size_mb = quotas->file_size_mb;
    ret->open_files = quotas->open_files;
    ret->disk_mb = quotas->disk_mb;
    ret->output_bytes = quotas->output_bytes;
    ret->artifact_bytes = quotas->artifact_bytes;
}

static void encode_exit(const struct al_result *from, Airlock__V1__ExecutionResult *ret)
{
    if (from->exit_kind == AL_EXIT_CODE) {
        ret->exit_case = AIRLOCK__V1__EXECUTION_RESULT__EXIT_EXIT_CODE;
        ret->exit_code = from->exit_value;
    } else if (from->exit_kind == AL_EXIT_SIGNAL) {
        ret->exit_case = AIRLOCK__V1__EXECUTION_RESULT__EXIT_TERM_SIGNAL;
        ret->term_signal = from->exit_value;
    }
}

static void encode_compile(const struct al_compile *from, Airlock__V1__CompileResult *ret)
{
    airlock__v1__compile_result__init(ret);
    ret->output.data = from->output.data;
    ret->output.len = from->output.len;
    ret->exit_code = from->exit_code;
    ret->duration_ms = (double)from->duration_us / 1e3;
}

/* The names of the bits that are set; `ret` has room for all of them. */
static size_t name_bits(uint32_t bits, const char *(*name_of)(unsigned), char **ret)
{
    size_t n = 0;
    const char *name;
    for (unsigned i = 0; (name = name_of(i)); i++) {
        if (bits & 1u << i) {
            ret[n++] = (char *)name;
        }
    }
    return n;
}

static void encode_hex(const uint8_t *digest, char *to)
{
    for (int i = 0; i < AL_SHA256_LEN; i++) {
        (void)snprintf(to + 2 * i, 3, "%02x", digest[i]);
    }
}

static void encode_findings(const struct al_job_notes *notes, struct al_result_message *ret)
{
    size_t n =
        notes->n_findings < AL_ENCODE_FINDINGS_MAX ? notes->n_findings : AL_ENCODE_FINDINGS_MAX;
    for (size_t i = 0; i < n; i++) {
        airlock__v1__egress_finding__init(&ret->findings[i]);
        ret->findings[i].host = (char *)notes->findings[i].host;
        ret->findings[i].line = notes->findings[i].line;
        ret->findings[i].rule = (char *)notes->findings[i].rule;
        ret->finding_list[i] = &ret->findings[i];
    }
    ret->result.n_egress_findings = n;
    ret->result.egress_findings = ret->finding_list;
}

static void encode_notes(const struct al_job_notes *notes, struct al_result_message *ret)
{
    ret->result.retry_after_ms = notes->retry_after_ms;
    if (notes->has_fingerprint) {
        encode_hex(notes->fingerprint, ret->fingerprint);
        ret->result.fingerprint = ret->fingerprint;
    }
    if (notes->cached_wall_ns != 0) {
        ret->result.cached = true;
        al_encode_timestamp(notes->cached_wall_ns, &ret->cached_at);
        ret->result.cached_at = &ret->cached_at;
    }
    encode_findings(notes, ret);
}

void al_encode_artifacts(const struct al_artifacts *artifacts, struct al_artifact_messages *room,
                         Airlock__V1__ExecutionResult *result)
{
    size_t n = artifacts->n < AL_ARTIFACTS_MAX ? artifacts->n : AL_ARTIFACTS_MAX;
    for (size_t i = 0; i < n; i++) {
        const struct al_artifact *from = &artifacts->items[i];
        Airlock__V1__Artifact *to = &room->items[i];
        airlock__v1__artifact__init(to);
        to->path = from->path;
        to->content = (ProtobufCBinaryData){.data = from->data, .len = from->len};
        to->mode = from->mode;
        to->truncated = from->truncated;
        room->list[i] = to;
    }
    result->artifacts = room->list;
    result->n_artifacts = n;
}

void al_encode_result(const struct al_job_info *info, struct al_result_message *ret)
{
    const struct al_result *from = info->result;
    Airlock__V1__ExecutionResult *result = &ret->result;
    airlock__v1__execution_result__init(result);
    result->job_id = (char *)info->id;
    result->backend = (char *)info->backend->name;
    result->status = (Airlock__V1__JobStatus)from->status;
    result->reason = (Airlock__V1__Reason)from->reason;
    result->limit_hit = (Airlock__V1__Limit)from->limit_hit;
    encode_exit(from, result);
    result->duration_ms = (double)from->duration_us / 1e3;
    result->cpu_seconds = (double)from->cpu_us / 1e6;
    result->memory_peak_mb = (double)from->memory_peak_bytes / (1u << 20);
    result->pids_peak = from->pids_peak;
    result->stdout_truncated = from->stdout_truncated;
    result->stderr_truncated = from->stderr_truncated;
    result->artifacts_omitted = from->artifacts.omitted;
    result->queue_ms = (double)info->queue_us / 1e3;
    al_encode_text(from->error, ret->error, sizeof ret->error);
    result->error = ret->error;
    encode_language(info->language, ret->language, sizeof ret->language);
    result->language = ret->language;
    encode_quotas(&info->quotas, &ret->quotas);
    result->effective_quotas = &ret->quotas;
    result->n_isolation = name_bits(from->isolation, al_layer_name, ret->isolation);
    result->isolation = ret->isolation;
    encode_notes(info->notes, ret);
    if (from->compile.present) {
        encode_compile(&from->compile, &ret->compile);
        result->compile = &ret->compile;
    }
}

static char *encode_digest(const uint8_t *digest, struct al_arena *arena)
{
    char *text = al_arena_alloc(arena, AL_SHA256_LEN * 2 + 1);
    if (text) {
        encode_hex(digest, text);
    }
    return text;
}

/* NULL when there was no such time, or no room: the arena tells. */
static Google__Protobuf__Timestamp *make_timestamp(int64_t wall_ns, struct al_arena *arena)
{
    Google__Protobuf__Timestamp *ret = NULL;
    if (wall_ns != 0 && (ret = al_arena_alloc(arena, sizeof *ret))) {
        al_encode_timestamp(wall_ns, ret);
    }
    return ret;
}

static void encode_metadata(const struct al_job_info *info, struct al_arena *arena,
                            Airlock__V1__Job *job)
{
    size_t n = info->n_metadata;
    Airlock__V1__Job__MetadataEntry *entries = al_arena_alloc_array(arena, n, sizeof *entries);
    Airlock__V1__Job__MetadataEntry **list =
        al_arena_alloc_array(arena, n, sizeof(Airlock__V1__Job__MetadataEntry *));
    if (!entries || !list) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        airlock__v1__job__metadata_entry__init(&entries[i]);
        entries[i].key = (char *)info->metadata[i].name;
        entries[i].value = (char *)info->metadata[i].value;
        list[i] = &entries[i];
    }
    job->metadata = list;
    job->n_metadata = n;
}

Airlock__V1__Job *al_encode_job(const struct al_job_info *info, struct al_arena *arena)
{
    Airlock__V1__Job *job = al_arena_alloc(arena, sizeof *job);
    char *language = al_arena_alloc(arena, AL_LANGUAGE_TEXT_MAX);
    if (!job || !language) {
        return NULL;
    }
    airlock__v1__job__init(job);
    job->job_id = (char *)info->id;
    job->tenant_id = (char *)info->tenant_id;
    job->user_id = (char *)info->user_id;
    job->backend = (char *)info->backend->name;
    encode_language(info->language, language, AL_LANGUAGE_TEXT_MAX);
    job->language = language;
    job->status = (Airlock__V1__JobStatus)info->status;
    job->created_at = make_timestamp(info->created_wall_ns, arena);
    job->started_at = make_timestamp(info->started_wall_ns, arena);
    job->finished_at = make_timestamp(info->finished_wall_ns, arena);
    encode_metadata(info, arena, job);
    if (info->code_sha256) {
        job->code_sha256 = encode_digest(info->code_sha256, arena);
    }
    if (info->result) {
        struct al_result_message *message = al_arena_alloc(arena, sizeof *message);
        if (message) {
            al_encode_result(info, message);
            job->result = &message->result;
        }
    }
    return al_arena_is_exhausted(arena) ? NULL : job;
}

static void encode_languages(const struct al_backend *backend, struct al_arena *arena,
                             Airlock__V1__BackendInfo *ret)
{
    size_t n = backend->n_languages;
    Airlock__V1__LanguageInfo *infos = al_arena_alloc_array(arena, n, sizeof *infos);
    Airlock__V1__LanguageInfo **list =
        al_arena_alloc_array(arena, n, sizeof(Airlock__V1__LanguageInfo *));
    if (!infos || !list) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct al_language *language = &backend->languages[i];
        airlock__v1__language_info__init(&infos[i]);
        infos[i].name = (char *)language->name;
        infos[i].version = (char *)language->version;
        infos[i].aliases = (char **)language->aliases;
        if (language->unavailable) {
            char *reason = al_arena_alloc(arena, 4 * AL_UNAVAILABLE_MAX);
            if (!reason) {
                return;
            }
            al_encode_text(language->unavailable, reason, 4 * AL_UNAVAILABLE_MAX);
            infos[i].unavailable_reason = reason;
        }
        while (language->aliases[infos[i].n_aliases]) {
            infos[i].n_aliases++;
        }
        list[i] = &infos[i];
    }
    ret->languages = list;
    ret->n_languages = n;
}

Airlock__V1__BackendInfo *al_encode_backend(const struct al_backend *backend, bool is_default,
                                            struct al_arena *arena)
{
    Airlock__V1__BackendInfo *ret = al_arena_alloc(arena, sizeof *ret);
    char **isolation = al_arena_alloc_array(arena, AL_LAYER_COUNT, sizeof *isolation);
    char **capabilities = al_arena_alloc_array(arena, AL_CAP_COUNT, sizeof *capabilities);
    char *reason = al_arena_alloc(arena, 4 * AL_UNAVAILABLE_MAX);
    if (!ret || !isolation || !capabilities || !reason) {
        return NULL;
    }
    airlock__v1__backend_info__init(ret);
    ret->name = (char *)backend->name;
    ret->version = (char *)backend->version;
    ret->available = backend->available;
    ret->is_default = is_default;
    al_encode_text(backend->unavailable_reason, reason, 4 * AL_UNAVAILABLE_MAX);
    ret->unavailable_reason = reason;
    ret->n_isolation = name_bits(backend->isolation, al_layer_name, isolation);
    ret->isolation = isolation;
    ret->n_capabilities = name_bits(backend->capabilities, al_capability_name, capabilities);
    ret->capabilities = capabilities;
    encode_languages(backend, arena, ret);
    return al_arena_is_exhausted(arena) ? NULL : ret;
}
