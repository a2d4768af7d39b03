#include "cache/record.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/digest.h"

#define MAGIC        0x52434c41u /* "ALCR" */
#define CHECKSUM_LEN 16

/* The fixed part as it lies in the file: naturally aligned, without holes. */
struct head {
    uint32_t magic;
    uint32_t version;
    uint8_t checksum[CHECKSUM_LEN];
    uint64_t stored_wall_ns;
    uint64_t duration_us;
    uint64_t cpu_us;
    uint64_t memory_peak_bytes;
    uint64_t compile_duration_us;
    uint64_t out_len[2];
    uint64_t artifacts_len;
    uint32_t pids_peak;
    uint32_t isolation;
    uint32_t exit_value;
    uint32_t compile_exit_code;
    uint32_t compile_output_len;
    uint16_t error_len;
    uint8_t compile_present;
    uint8_t status;
    uint8_t reason;
    uint8_t limit_hit;
    uint8_t exit_kind;
    uint8_t truncated; /* bit 0 stdout, bit 1 stderr */
    uint32_t n_artifacts;
};
_Static_assert(sizeof(struct head) == 120, "the layout is part of the version");

/* Before each artifact's path and content. */
struct artifact_head {
    uint64_t len;
    uint32_t mode;
    uint32_t path_len;
};

#define SEALED_FROM offsetof(struct head, stored_wall_ns)

static uint64_t artifacts_size(const struct al_artifacts *artifacts)
{
    uint64_t size = al_artifacts_bytes(artifacts) + artifacts->n * sizeof(struct artifact_head);
    for (size_t i = 0; i < artifacts->n; i++) {
        size += strlen(artifacts->items[i].path);
    }
    return size;
}

size_t al_cache_record_size(const struct al_result *result, const struct al_bytes out[2])
{
    if (out[0].len > AL_CACHE_RECORD_BYTES_MAX || out[1].len > AL_CACHE_RECORD_BYTES_MAX) {
        return 0;
    }
    uint64_t size = (uint64_t)sizeof(struct head) + result->compile.output.len + out[0].len +
                    out[1].len + strnlen(result->error, sizeof result->error - 1) +
                    artifacts_size(&result->artifacts);
    return size > AL_CACHE_RECORD_BYTES_MAX ? 0 : (size_t)size;
}

static int checksum(const uint8_t *key, const uint8_t *data, size_t len, uint8_t ret[CHECKSUM_LEN])
{
    struct al_cache_digest d;
    uint8_t sum[AL_DIGEST_LEN];
    al_cache_digest_begin(&d);
    al_cache_digest_add(&d, key, AL_CACHE_RECORD_KEY_LEN);
    al_cache_digest_add(&d, data + SEALED_FROM, len - SEALED_FROM);
    int r = al_cache_digest_end(&d, sum);
    if (r == 0) {
        memcpy(ret, sum, CHECKSUM_LEN);
    }
    return r;
}

bool al_cache_record_seal(const uint8_t key[AL_CACHE_RECORD_KEY_LEN], uint8_t *data, size_t len)
{
    struct head h;
    if (len < sizeof h) {
        return false;
    }
    memcpy(&h, data, sizeof h);
    h.magic = htole32(MAGIC);
    h.version = htole32(AL_CACHE_RECORD_VERSION);
    if (checksum(key, data, len, h.checksum) < 0) {
        return false;
    }
    memcpy(data, &h, sizeof h);
    return true;
}

static uint8_t *append(uint8_t *to, const void *data, size_t len)
{
    if (len > 0) {
        memcpy(to, data, len);
    }
    return to + len;
}

static uint8_t *append_artifacts(uint8_t *to, const struct al_artifacts *artifacts)
{
    for (size_t i = 0; i < artifacts->n; i++) {
        const struct al_artifact *a = &artifacts->items[i];
        size_t path_len = strlen(a->path);
        const struct artifact_head h = {.len = htole64(a->len),
                                        .mode = htole32(a->mode),
                                        .path_len = htole32((uint32_t)path_len)};
        to = append(to, &h, sizeof h);
        to = append(to, a->path, path_len);
        to = append(to, a->data, a->len);
    }
    return to;
}

int al_cache_record_encode(const uint8_t key[AL_CACHE_RECORD_KEY_LEN],
                           const struct al_result *result, const struct al_bytes out[2],
                           int64_t stored_wall_ns, uint8_t *ret_data)
{
    const struct al_compile *compile = &result->compile;
    size_t error_len = strnlen(result->error, sizeof result->error - 1);
    struct head h = {
        .stored_wall_ns = htole64((uint64_t)stored_wall_ns),
        .duration_us = htole64((uint64_t)result->duration_us),
        .cpu_us = htole64((uint64_t)result->cpu_us),
        .memory_peak_bytes = htole64(result->memory_peak_bytes),
        .compile_duration_us = htole64((uint64_t)compile->duration_us),
        .out_len = {htole64(out[0].len), htole64(out[1].len)},
        .artifacts_len = htole64(artifacts_size(&result->artifacts)),
        .n_artifacts = htole32((uint32_t)result->artifacts.n),
        .pids_peak = htole32(result->pids_peak),
        .isolation = htole32(result->isolation),
        .exit_value = htole32((uint32_t)result->exit_value),
        .compile_exit_code = htole32((uint32_t)compile->exit_code),
        .compile_output_len = htole32((uint32_t)compile->output.len),
        .error_len = htole16((uint16_t)error_len),
        .compile_present = compile->present,
        .status = (uint8_t)result->status,
        .reason = (uint8_t)result->reason,
        .limit_hit = (uint8_t)result->limit_hit,
        .exit_kind = (uint8_t)result->exit_kind,
        .truncated = (uint8_t)(result->stdout_truncated | result->stderr_truncated << 1),
    };
    uint8_t *to = append(ret_data, &h, sizeof h);
    to = append(to, compile->output.data, compile->output.len);
    to = append(to, out[0].data, out[0].len);
    to = append(to, out[1].data, out[1].len);
    to = append(to, result->error, error_len);
    to = append_artifacts(to, &result->artifacts);
    return al_cache_record_seal(key, ret_data, (size_t)(to - ret_data)) ? 0 : -ENOMEM;
}

static bool is_ours(const struct head *h)
{
    return le32toh(h->magic) == MAGIC && le32toh(h->version) == AL_CACHE_RECORD_VERSION;
}

bool al_cache_record_peek(const uint8_t *data, size_t len, int64_t *ret_stored_wall_ns)
{
    struct head h;
    if (len < sizeof h) {
        return false;
    }
    memcpy(&h, data, sizeof h);
    if (!is_ours(&h)) {
        return false;
    }
    *ret_stored_wall_ns = (int64_t)le64toh(h.stored_wall_ns);
    return true;
}

static bool lengths_agree(const struct head *h, size_t len)
{
    uint64_t out_len[2] = {le64toh(h->out_len[0]), le64toh(h->out_len[1])};
    uint64_t artifacts_len = le64toh(h->artifacts_len);
    uint32_t compile_len = le32toh(h->compile_output_len);
    uint16_t error_len = le16toh(h->error_len);
    return out_len[0] <= len && out_len[1] <= len && artifacts_len <= len &&
           compile_len <= AL_COMPILE_OUTPUT_MAX && error_len < AL_RESULT_ERROR_MAX &&
           sizeof *h + out_len[0] + out_len[1] + artifacts_len + compile_len + error_len == len;
}

static bool values_are_known(const struct head *h)
{
    return h->status >= AL_STATUS_PENDING && h->status <= AL_STATUS_EGRESS_BLOCKED &&
           h->reason <= AL_REASON_INTERRUPTED && h->limit_hit <= AL_LIMIT_OUTPUT &&
           h->exit_kind <= AL_EXIT_SIGNAL && h->compile_present <= 1 && h->truncated <= 3 &&
           le32toh(h->n_artifacts) <= AL_ARTIFACTS_MAX;
}

static void read_figures(const struct head *h, struct al_result *result)
{
    result->status = h->status;
    result->reason = h->reason;
    result->limit_hit = h->limit_hit;
    result->exit_kind = h->exit_kind;
    result->exit_value = (int)le32toh(h->exit_value);
    result->duration_us = (int64_t)le64toh(h->duration_us);
    result->cpu_us = (int64_t)le64toh(h->cpu_us);
    result->memory_peak_bytes = le64toh(h->memory_peak_bytes);
    result->pids_peak = le32toh(h->pids_peak);
    result->isolation = le32toh(h->isolation);
    result->stdout_truncated = h->truncated & 1;
    result->stderr_truncated = h->truncated >> 1;
    result->compile.present = h->compile_present;
    result->compile.exit_code = (int)le32toh(h->compile_exit_code);
    result->compile.duration_us = (int64_t)le64toh(h->compile_duration_us);
}

static int check(const uint8_t *key, const uint8_t *data, size_t len, struct head *h)
{
    uint8_t sum[CHECKSUM_LEN];
    if (len < sizeof *h) {
        return -EBADMSG;
    }
    memcpy(h, data, sizeof *h);
    if (!is_ours(h) || !lengths_agree(h, len) || !values_are_known(h)) {
        return -EBADMSG;
    }
    int r = checksum(key, data, len, sum);
    return r < 0 ? r : memcmp(sum, h->checksum, sizeof sum) == 0 ? 0 : -EBADMSG;
}

/* The rest of a record, as far as it is not taken yet. */
struct rest {
    const uint8_t *at;
    uint64_t left;
};

static const uint8_t *take(struct rest *rest, uint64_t n)
{
    if (n > rest->left) {
        return NULL;
    }
    const uint8_t *at = rest->at;
    rest->at += n;
    rest->left -= n;
    return at;
}

/* With a NUL behind it. */
static void *copy(const void *from, size_t n)
{
    char *to = malloc(n + 1);
    if (to) {
        memcpy(to, from, n);
        to[n] = '\0';
    }
    return to;
}

static int read_artifact(struct rest *rest, struct al_artifacts *to)
{
    struct artifact_head h;
    const uint8_t *at = take(rest, sizeof h);
    if (!at) {
        return -EBADMSG;
    }
    memcpy(&h, at, sizeof h);
    size_t len = le64toh(h.len);
    size_t path_len = le32toh(h.path_len);
    const char *path = (const char *)take(rest, path_len);
    const uint8_t *content = path ? take(rest, len) : NULL;
    if (!content || le32toh(h.mode) > 0777 || !al_artifact_path_is_valid(path, path_len)) {
        return -EBADMSG;
    }
    struct al_artifact artifact = {.path = copy(path, path_len),
                                   .data = len > 0 ? copy(content, len) : NULL,
                                   .len = len,
                                   .mode = le32toh(h.mode)};
    if (!artifact.path || (len > 0 && !artifact.data)) {
        free(artifact.path);
        free(artifact.data);
        return -ENOMEM;
    }
    return al_artifacts_add(to, artifact);
}

/* All that is left are artifacts, as many as the head says. */
static int read_artifacts(const struct head *h, struct rest *rest, struct al_artifacts *to)
{
    for (uint32_t i = 0; i < le32toh(h->n_artifacts); i++) {
        int r = read_artifact(rest, to);
        if (r < 0) {
            return r;
        }
    }
    return rest->left == 0 ? 0 : -EBADMSG;
}

/* The lengths have been checked: they add up. */
static int read_record(const struct head *h, struct rest *rest, struct al_cache_record *ret)
{
    size_t compile_len = le32toh(h->compile_output_len);
    size_t error_len = le16toh(h->error_len);
    struct al_result *result = &ret->result;
    read_figures(h, result);
    int r = al_buf_append(&result->compile.output, take(rest, compile_len), compile_len);
    for (size_t i = 0; i < 2; i++) {
        size_t out_len = le64toh(h->out_len[i]);
        const uint8_t *out = take(rest, out_len);
        ret->out[i] = (struct al_bytes){out_len > 0 ? out : NULL, out_len};
    }
    const uint8_t *error = take(rest, error_len);
    if (memchr(error, 0, error_len)) {
        return -EBADMSG;
    }
    memcpy(result->error, error, error_len);
    return r < 0 ? r : read_artifacts(h, rest, &result->artifacts);
}

int al_cache_record_decode(const uint8_t key[AL_CACHE_RECORD_KEY_LEN], const uint8_t *data,
                           size_t len, struct al_cache_record *ret)
{
    struct head h;
    int r = check(key, data, len, &h);
    if (r < 0) {
        return r;
    }
    struct rest rest = {data + sizeof h, len - sizeof h};
    struct al_cache_record record = {.stored_wall_ns = (int64_t)le64toh(h.stored_wall_ns)};
    al_result_init(&record.result);
    r = read_record(&h, &rest, &record);
    if (r < 0) {
        al_result_finish(&record.result);
        return r;
    }
    *ret = record;
    return 0;
}
