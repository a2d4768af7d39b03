/*
 * Theory of operation
 *
 * inih splits the text into sections, keys and values, but cuts a line or a section's name that is
 * too long for its buffers without a word, and knows nothing of line numbers. So it gets its lines
 * from read_line, which counts them and refuses what would be cut. Indented lines are what inih
 * makes of them: further values of the key above.
 */
#include "service/config.h"

#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "service/config_keys.h"
#include "service/quote.h"

#define FILE_BYTES_MAX   (256u << 10)
#define SECTION_NAME_MAX 49 /* inih's buffer, less the terminator */

struct reader {
    struct al_config *config;
    const char *path;
    const char *next; /* the unread rest of the text */
    const char *end;
    int line;
    bool seen[AL_CONFIG_KEYS_MAX];
    struct al_err *err;
    bool failed;
};

void al_config_defaults(struct al_config *config)
{
    *config = (struct al_config){
        .listen = {"127.0.0.1:50051"},
        .n_listen = 1,
        .data_dir = "/var/lib/airlock",
        .user = "nobody",
        .launcher = "",
        .default_backend = "native",
        .run_slots = 0,
        .stream_slots = 1000,
        .queue_max = 1024,
        .queue_tenant_max = 256,
        .ring_bytes = 1 << 20,
        .output_memory_mb = 1024,
        .job_history = 1000,
        .drain_ms = 30000,
        .limits = {.code_bytes = 1 << 20,
                   .files_bytes = 16 << 20,
                   .files = 256,
                   .stdin_bytes = 4 << 20,
                   .inputs_bytes = 1 << 20,
                   .metadata_bytes = 64 << 10,
                   .env_bytes = 64 << 10,
                   .args = 256,
                   .args_bytes = 256 << 10,
                   .defaults = {.cpu_ms = 5000,
                                .wall_ms = 10000,
                                .memory_mb = 256,
                                .pids = 64,
                                .file_size_mb = 32,
                                .open_files = 64,
                                .disk_mb = 64,
                                .output_bytes = 1 << 20,
                                .artifact_bytes = 1 << 20},
                   .maxima = {.cpu_ms = 300000,
                              .wall_ms = 3600000,
                              .memory_mb = 4096,
                              .pids = 1024,
                              .file_size_mb = 4096,
                              .open_files = 1024,
                              .disk_mb = 4096,
                              .output_bytes = 16 << 20,
                              .artifact_bytes = 16 << 20},
                   .deadline_margin_ms = 250},
    };
}

/* Fails at the current line. */
static void __attribute__((format(printf, 2, 3))) fail(struct reader *r, const char *fmt, ...)
{
    char text[AL_ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    al_err_set(r->err, AL_ERR_INVALID_ARGUMENT, "%s:%d: %s", r->path, r->line, text);
    r->failed = true;
}

static void check_section(struct reader *r, const char *line, size_t len)
{
    const char *close = memchr(line, ']', len);
    if (!close) {
        return;
    }
    size_t name_len = (size_t)(close - line - 1);
    if (name_len > SECTION_NAME_MAX) {
        fail(r, "the section's name is longer than %d bytes", SECTION_NAME_MAX);
        return;
    }
    char name[SECTION_NAME_MAX + 1];
    *(char *)mempcpy(name, line + 1, name_len) = '\0';
    if (!al_config_section_is_ours(name) && !al_config_section_is_launchers(name)) {
        fail(r, "unknown section [%s]", al_quote_bare(name).text);
    }
}

/* fgets for inih. */
static char *read_line(char *buf, int size, void *stream)
{
    struct reader *r = stream;
    if (r->failed || r->next == r->end) {
        return NULL;
    }
    const char *newline = memchr(r->next, '\n', (size_t)(r->end - r->next));
    const char *after = newline ? newline + 1 : r->end;
    size_t len = (size_t)(after - r->next);
    r->line++;
    if (len >= (size_t)size) {
        fail(r, "the line is longer than %d bytes", size - 2);
    } else if (memchr(r->next, '\0', len)) {
        fail(r, "a NUL byte");
    } else if (*r->next == '[') {
        check_section(r, r->next, len);
    }
    if (r->failed) {
        return NULL;
    }
    *(char *)mempcpy(buf, r->next, len) = '\0';
    r->next = after;
    return buf;
}

/* inih's convention: 0 is failure. */
static int take_value(void *arg, const char *section, const char *name, const char *value)
{
    struct reader *r = arg;
    if (r->failed) {
        return 0;
    }
    if (al_config_section_is_launchers(section)) {
        return 1;
    }
    const struct al_config_key *key = al_config_key_find(section, name);
    if (!key) {
        fail(r, "[%s] unknown key %s", al_quote_bare(section).text, al_quote(name).text);
        return 0;
    }
    bool *seen = &r->seen[al_config_key_index(key)];
    if (*seen && !al_config_key_repeats(key)) {
        fail(r, "[%s] %s: given twice (an indented line continues the key above it)", section,
             name);
        return 0;
    }
    if (!*seen && al_config_key_repeats(key)) {
        r->config->n_listen = 0;
    }
    *seen = true;
    struct al_err why = {0};
    if (al_config_key_set(key, r->config, value, &why) < 0) {
        fail(r, "[%s] %s: %s", section, name, why.text);
        return 0;
    }
    return 1;
}

/* What no single key can check. */
static int check_whole(const struct al_config *c, const char *path, struct al_err *err)
{
    const struct al_quotas *d = &c->limits.defaults;
    const struct al_quotas *m = &c->limits.maxima;
    const struct {
        const char *name;
        bool above;
    } quotas[] = {
        {"cpu_seconds", d->cpu_ms > m->cpu_ms},
        {"wall_seconds", d->wall_ms > m->wall_ms},
        {"memory_mb", d->memory_mb > m->memory_mb},
        {"pids", d->pids > m->pids},
        {"file_size_mb", d->file_size_mb > m->file_size_mb},
        {"open_files", d->open_files > m->open_files},
        {"disk_mb", d->disk_mb > m->disk_mb},
        {"output_kb", d->output_bytes > m->output_bytes},
        {"artifact_kb", d->artifact_bytes > m->artifact_bytes},
    };
    for (size_t i = 0; i < sizeof quotas / sizeof quotas[0]; i++) {
        if (quotas[i].above) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                              "%s: [defaults] %s is above that of [maxima]", path, quotas[i].name);
        }
    }
    if (c->ring_bytes > c->output_memory_mb << 20) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "%s: [server] ring_kb is above output_memory_mb", path);
    }
    return 0;
}

static int parse(struct reader *r)
{
    int bad_line = ini_parse_stream(read_line, r, take_value, r);
    if (!r->failed && bad_line > 0) {
        r->line = bad_line;
        fail(r, "neither [section] nor key = value");
    }
    return r->failed ? al_err_set(r->err, AL_ERR_INVALID_ARGUMENT, "%s: unreadable", r->path)
                     : check_whole(r->config, r->path, r->err);
}

int al_config_read(struct al_config *config, const char *path, struct al_err *err)
{
    al_auto_free char *text = malloc(FILE_BYTES_MAX);
    if (!text) {
        return al_err_set(err, AL_ERR_INTERNAL, "%s: out of memory", path);
    }
    ssize_t len = al_io_read_file(AT_FDCWD, path, text, FILE_BYTES_MAX);
    if (len < 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: %s", path, strerror((int)-len));
    }
    struct reader r = {.config = config, .path = path, .next = text, .end = text + len, .err = err};
    return parse(&r);
}
