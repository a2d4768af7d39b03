#include "backends/launcher/message.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define LAYERS_ALL  ((1u << AL_LAYER_COUNT) - 1)
#define TIME_US_MAX ((uint64_t)1 << 53) /* 285 years: every sum of them still fits */

struct writer {
    uint8_t *data;
    size_t len;
};

struct reader {
    const uint8_t *data;
    size_t len;
    bool bad; /* sticky: every later get yields 0 */
};

static void put_bytes(struct writer *w, const void *data, size_t n)
{
    assert(n <= AL_MSG_BYTES_MAX - w->len);
    memcpy(w->data + w->len, data, n);
    w->len += n;
}

static void put_u16(struct writer *w, uint16_t v)
{
    v = htole16(v);
    put_bytes(w, &v, sizeof v);
}

static void put_u32(struct writer *w, uint32_t v)
{
    v = htole32(v);
    put_bytes(w, &v, sizeof v);
}

static void put_u64(struct writer *w, uint64_t v)
{
    v = htole64(v);
    put_bytes(w, &v, sizeof v);
}

static void put_string(struct writer *w, const char *s, size_t size)
{
    size_t n = strnlen(s, size);
    assert(n < size);
    put_u16(w, (uint16_t)n);
    put_bytes(w, s, n);
}

static struct writer begin(enum al_msg_type type, void *data)
{
    struct writer w = {.data = data};
    put_u16(&w, (uint16_t)type);
    return w;
}

static void get_bytes(struct reader *r, void *to, size_t n)
{
    if (r->bad || n > r->len) {
        r->bad = true;
        memset(to, 0, n);
        return;
    }
    memcpy(to, r->data, n);
    r->data += n;
    r->len -= n;
}

static uint16_t get_u16(struct reader *r)
{
    uint16_t v;
    get_bytes(r, &v, sizeof v);
    return le16toh(v);
}

static uint32_t get_u32(struct reader *r, uint32_t min, uint32_t max)
{
    uint32_t v;
    get_bytes(r, &v, sizeof v);
    v = le32toh(v);
    r->bad |= v < min || v > max;
    return v;
}

static uint64_t get_u64(struct reader *r, uint64_t min, uint64_t max)
{
    uint64_t v;
    get_bytes(r, &v, sizeof v);
    v = le64toh(v);
    r->bad |= v < min || v > max;
    return v;
}

static bool get_bool(struct reader *r)
{
    return get_u32(r, 0, 1) == 1;
}

static void get_string(struct reader *r, char *to, size_t size)
{
    size_t n = get_u16(r);
    if (r->bad || n >= size || n > r->len || memchr(r->data, '\0', n)) {
        r->bad = true;
        to[0] = '\0';
        return;
    }
    get_bytes(r, to, n);
    to[n] = '\0';
}

static struct reader open_message(enum al_msg_type type, const void *data, size_t len)
{
    struct reader r = {.data = data, .len = len};
    r.bad = len > AL_MSG_BYTES_MAX;
    r.bad |= get_u16(&r) != type;
    return r;
}

static int close_message(const struct reader *r)
{
    return r->bad || r->len > 0 ? -EBADMSG : 0;
}

uint16_t al_msg_type(const void *data, size_t len)
{
    struct reader r = {.data = data, .len = len};
    return get_u16(&r);
}

size_t al_msg_encode_empty(enum al_msg_type type, void *data)
{
    return begin(type, data).len;
}

int al_msg_decode_empty(enum al_msg_type type, const void *data, size_t len)
{
    struct reader r = open_message(type, data, len);
    return close_message(&r);
}

static void put_runtime(struct writer *w, const struct al_msg_runtime *rt)
{
    put_string(w, rt->name, sizeof rt->name);
    put_string(w, rt->version, sizeof rt->version);
    for (size_t i = 0; i < AL_LANGUAGE_ALIASES_MAX; i++) {
        put_string(w, rt->aliases[i], sizeof rt->aliases[i]);
    }
    put_string(w, rt->code_file, sizeof rt->code_file);
    put_string(w, rt->output_file, sizeof rt->output_file);
}

static void get_runtime(struct reader *r, struct al_msg_runtime *rt)
{
    get_string(r, rt->name, sizeof rt->name);
    get_string(r, rt->version, sizeof rt->version);
    for (size_t i = 0; i < AL_LANGUAGE_ALIASES_MAX; i++) {
        get_string(r, rt->aliases[i], sizeof rt->aliases[i]);
    }
    get_string(r, rt->code_file, sizeof rt->code_file);
    get_string(r, rt->output_file, sizeof rt->output_file);
    r->bad |= rt->name[0] == '\0' || rt->version[0] == '\0' || rt->code_file[0] == '\0';
}

size_t al_msg_encode_hello(const struct al_msg_hello *m, void *data)
{
    struct writer w = begin(AL_MSG_HELLO, data);
    for (size_t i = 0; i < AL_CELL_KINDS; i++) {
        put_u32(&w, m->cells[i].available);
        put_u32(&w, m->cells[i].layers);
        put_string(&w, m->cells[i].version, sizeof m->cells[i].version);
        put_string(&w, m->cells[i].reason, sizeof m->cells[i].reason);
    }
    assert(m->n_runtimes <= AL_RUNTIMES_MAX);
    put_u32(&w, m->n_runtimes);
    for (size_t i = 0; i < m->n_runtimes; i++) {
        put_runtime(&w, &m->runtimes[i]);
    }
    return w.len;
}

int al_msg_decode_hello(const void *data, size_t len, struct al_msg_hello *m)
{
    struct reader r = open_message(AL_MSG_HELLO, data, len);
    for (size_t i = 0; i < AL_CELL_KINDS; i++) {
        m->cells[i].available = get_bool(&r);
        m->cells[i].layers = get_u32(&r, 0, LAYERS_ALL);
        get_string(&r, m->cells[i].version, sizeof m->cells[i].version);
        get_string(&r, m->cells[i].reason, sizeof m->cells[i].reason);
    }
    m->n_runtimes = get_u32(&r, 0, AL_RUNTIMES_MAX);
    for (size_t i = 0; !r.bad && i < m->n_runtimes; i++) {
        get_runtime(&r, &m->runtimes[i]);
    }
    return close_message(&r);
}

static bool is_job_id(const char *id)
{
    return strlen(id) == AL_JOB_ID_LEN && strspn(id, "0123456789abcdef") == AL_JOB_ID_LEN;
}

size_t al_msg_encode_spawn(const struct al_msg_spawn *m, void *data)
{
    struct writer w = begin(AL_MSG_SPAWN, data);
    const struct al_quotas *q = &m->quotas;
    put_u32(&w, m->kind);
    put_string(&w, m->job_id, sizeof m->job_id);
    put_string(&w, m->runtime, sizeof m->runtime);
    put_string(&w, m->workdir, sizeof m->workdir);
    put_u32(&w, m->terminal.rows);
    put_u32(&w, m->terminal.cols);
    put_u32(&w, m->may_prestart);
    put_u64(&w, (uint64_t)q->cpu_ms);
    put_u64(&w, (uint64_t)q->wall_ms);
    put_u32(&w, q->memory_mb);
    put_u32(&w, q->pids);
    put_u32(&w, q->file_size_mb);
    put_u32(&w, q->open_files);
    put_u32(&w, q->disk_mb);
    put_u64(&w, q->artifact_bytes);
    return w.len;
}

int al_msg_decode_spawn(const void *data, size_t len, struct al_msg_spawn *m)
{
    struct reader r = open_message(AL_MSG_SPAWN, data, len);
    struct al_quotas *q = &m->quotas;
    *q = (struct al_quotas){0};
    m->kind = (enum al_cell_kind)get_u32(&r, 0, AL_CELL_KINDS - 1);
    get_string(&r, m->job_id, sizeof m->job_id);
    get_string(&r, m->runtime, sizeof m->runtime);
    get_string(&r, m->workdir, sizeof m->workdir);
    m->terminal.rows = (uint16_t)get_u32(&r, 0, UINT16_MAX);
    m->terminal.cols = (uint16_t)get_u32(&r, 0, UINT16_MAX);
    m->may_prestart = get_u32(&r, 0, (1u << AL_PRESTART_KINDS) - 1);
    q->cpu_ms = (int64_t)get_u64(&r, 1, TIME_US_MAX / 1000);
    q->wall_ms = (int64_t)get_u64(&r, 1, TIME_US_MAX / 1000);
    q->memory_mb = get_u32(&r, 1, UINT32_MAX);
    q->pids = get_u32(&r, 1, UINT32_MAX);
    q->file_size_mb = get_u32(&r, 1, UINT32_MAX);
    q->open_files = get_u32(&r, 1, UINT32_MAX);
    q->disk_mb = get_u32(&r, 1, UINT32_MAX);
    q->artifact_bytes = get_u64(&r, 0, AL_ARTIFACT_BYTES_MAX);
    r.bad |= !is_job_id(m->job_id);
    return close_message(&r);
}

size_t al_msg_encode_refused(const struct al_msg_refused *m, void *data)
{
    struct writer w = begin(AL_MSG_REFUSED, data);
    put_string(&w, m->text, sizeof m->text);
    return w.len;
}

int al_msg_decode_refused(const void *data, size_t len, struct al_msg_refused *m)
{
    struct reader r = open_message(AL_MSG_REFUSED, data, len);
    get_string(&r, m->text, sizeof m->text);
    return close_message(&r);
}

size_t al_msg_encode_compiled(const struct al_msg_compiled *m, void *data)
{
    struct writer w = begin(AL_MSG_COMPILED, data);
    put_u32(&w, (uint32_t)m->wait_status);
    put_u64(&w, (uint64_t)m->duration_us);
    return w.len;
}

int al_msg_decode_compiled(const void *data, size_t len, struct al_msg_compiled *m)
{
    struct reader r = open_message(AL_MSG_COMPILED, data, len);
    m->wait_status = (int32_t)get_u32(&r, 0, UINT16_MAX);
    m->duration_us = (int64_t)get_u64(&r, 0, TIME_US_MAX);
    return close_message(&r);
}

size_t al_msg_encode_exit(const struct al_msg_exit *m, void *data)
{
    struct writer w = begin(AL_MSG_EXIT, data);
    put_u32(&w, m->ran);
    put_u32(&w, (uint32_t)m->wait_status);
    put_u32(&w, m->limit);
    put_u32(&w, m->killed);
    put_u32(&w, m->prestarted);
    put_u32(&w, m->oom_kills);
    put_u32(&w, m->pids_denied);
    put_u64(&w, (uint64_t)m->duration_us);
    put_u64(&w, (uint64_t)m->cpu_us);
    put_u64(&w, m->memory_peak_bytes);
    put_u32(&w, m->pids_peak);
    put_u32(&w, m->layers);
    put_string(&w, m->error, sizeof m->error);
    return w.len;
}

int al_msg_decode_exit(const void *data, size_t len, struct al_msg_exit *m)
{
    struct reader r = open_message(AL_MSG_EXIT, data, len);
    m->ran = get_bool(&r);
    m->wait_status = (int32_t)get_u32(&r, 0, UINT16_MAX);
    m->limit = (enum al_limit)get_u32(&r, AL_LIMIT_NONE, AL_LIMIT_WALL);
    m->killed = get_bool(&r);
    m->prestarted = get_bool(&r);
    m->oom_kills = get_u32(&r, 0, UINT32_MAX);
    m->pids_denied = get_u32(&r, 0, UINT32_MAX);
    m->duration_us = (int64_t)get_u64(&r, 0, TIME_US_MAX);
    m->cpu_us = (int64_t)get_u64(&r, 0, TIME_US_MAX);
    m->memory_peak_bytes = get_u64(&r, 0, UINT64_MAX);
    m->pids_peak = get_u32(&r, 0, UINT32_MAX);
    m->layers = get_u32(&r, 0, LAYERS_ALL);
    get_string(&r, m->error, sizeof m->error);
    return close_message(&r);
}

size_t al_msg_encode_signal(const struct al_msg_signal *m, void *data)
{
    struct writer w = begin(AL_MSG_SIGNAL, data);
    put_u32(&w, (uint32_t)m->signo);
    return w.len;
}

int al_msg_decode_signal(const void *data, size_t len, struct al_msg_signal *m)
{
    struct reader r = open_message(AL_MSG_SIGNAL, data, len);
    m->signo = (int32_t)get_u32(&r, 1, 31);
    return close_message(&r);
}

size_t al_msg_encode_usage(const struct al_msg_usage *m, void *data)
{
    struct writer w = begin(AL_MSG_USAGE, data);
    put_u64(&w, (uint64_t)m->cpu_us);
    return w.len;
}

int al_msg_decode_usage(const void *data, size_t len, struct al_msg_usage *m)
{
    struct reader r = open_message(AL_MSG_USAGE, data, len);
    m->cpu_us = (int64_t)get_u64(&r, 0, TIME_US_MAX);
    return close_message(&r);
}
