#include "tests/unit/service/records/records_support.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/wire.h"

#define SETTLE_MS 20000

const struct al_records_limits al_test_limits = {
    .max_age_ms = INT64_MAX,
    .max_count = 100000,
    .max_bytes = 256u << 20,
};

void al_test_dir_make(char ret[128])
{
    const char *parent = getenv("TEST_TMPDIR");
    snprintf(ret, 128, "%s/records-XXXXXX", parent && strlen(parent) < 100 ? parent : "/tmp");
    assert_non_null(mkdtemp(ret));
}

void al_test_dir_make_quick(char ret[128])
{
    snprintf(ret, 128, "/dev/shm/records-XXXXXX");
    if (!mkdtemp(ret)) {
        al_test_dir_make(ret);
    }
}

void al_test_dir_remove(const char *dir)
{
    al_auto_closedir DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

int al_test_count_files(const char *dir, const char *prefix)
{
    al_auto_closedir DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    }
    return n;
}

uint32_t al_test_random(uint64_t *state, uint32_t below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(2685821657736338717) >> 32) % below);
}

struct al_records *al_test_records_open(const char *dir, const struct al_records_limits *limits)
{
    struct al_records *records;
    struct al_err err = {0};
    if (al_records_open(dir, limits, &records, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return records;
}

static size_t pack(const struct al_test_record *from, const char *id, uint8_t **ret)
{
    Airlock__V1__Job job = AIRLOCK__V1__JOB__INIT;
    Airlock__V1__Job__MetadataEntry entry = AIRLOCK__V1__JOB__METADATA_ENTRY__INIT;
    Airlock__V1__Job__MetadataEntry *entries[] = {&entry};
    char version[16];
    al_auto_free char *pad = malloc(from->pad_bytes + 1);
    assert_non_null(pad);
    memset(pad, 'x', from->pad_bytes);
    pad[from->pad_bytes] = '\0';
    snprintf(version, sizeof version, "v%u", from->version);
    entry.key = "pad";
    entry.value = pad;
    job.job_id = (char *)id;
    job.tenant_id = (char *)from->tenant;
    job.user_id = version;
    job.backend = "echo";
    job.language = "python@3.11";
    job.status = (Airlock__V1__JobStatus)from->status;
    job.metadata = entries;
    job.n_metadata = 1;
    size_t len = airlock__v1__job__get_packed_size(&job);
    *ret = malloc(len);
    assert_non_null(*ret);
    return airlock__v1__job__pack(&job, *ret);
}

void al_test_put(struct al_records *records, const struct al_test_record *record)
{
    char id[AL_JOB_ID_LEN + 1];
    al_auto_free uint8_t *job = NULL;
    snprintf(id, sizeof id, "%016llx", (unsigned long long)record->id);
    const struct al_record_key key = {
        .tenant = record->tenant,
        .id = id,
        .created_wall_ns = record->created_ns ? record->created_ns : (int64_t)record->id,
        .status = record->status,
    };
    size_t len = pack(record, id, &job);
    al_records_put(records, &key, job, len);
}

void al_test_settle(struct al_records *records)
{
    struct al_records_stats stats;
    int64_t until_ms = al_now_ms() + SETTLE_MS;
    do {
        usleep(2000);
        al_records_stats(records, &stats);
    } while (stats.waiting > 0 && al_now_ms() < until_ms);
    assert_int_equal(stats.waiting, 0);
}

/* The interrupted result is checked in full: nothing of it may be missing. */
static bool is_interrupted(const Airlock__V1__Job *job)
{
    const Airlock__V1__ExecutionResult *result = job->result;
    return result && result->reason == AIRLOCK__V1__REASON__REASON_INTERRUPTED &&
           result->status == AIRLOCK__V1__JOB_STATUS__JOB_STATUS_FAILED &&
           job->status == AIRLOCK__V1__JOB_STATUS__JOB_STATUS_FAILED && job->finished_at &&
           job->finished_at->seconds > 1000000000 && strcmp(result->job_id, job->job_id) == 0 &&
           strcmp(result->backend, "echo") == 0 && strcmp(job->backend, "echo") == 0 &&
           strcmp(result->language, "python@3.11") == 0 && result->error[0] != '\0';
}

static void unpack(const uint8_t *data, size_t len, const char *tenant, struct al_test_seen *ret)
{
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message;
    char why[128] = "";
    if (al_wire_unpack_bytes(&airlock__v1__job__descriptor, data, len, &al_wire_response_limits,
                             &arena, &message, why, sizeof why) < 0)
    {
        fail_msg("not a job: %s", why);
    }
    const Airlock__V1__Job *job = (const Airlock__V1__Job *)message;
    assert_string_equal(job->tenant_id, tenant);
    *ret = (struct al_test_seen){
        .id = strtoull(job->job_id, NULL, 16),
        .status = (int)job->status,
        .version = (uint32_t)strtoul(job->user_id + 1, NULL, 10),
        .interrupted = is_interrupted(job),
    };
}

int al_test_get(struct al_records *records, const char *tenant, uint64_t id,
                struct al_test_seen *ret)
{
    char text[AL_JOB_ID_LEN + 1];
    struct al_buf job;
    snprintf(text, sizeof text, "%016llx", (unsigned long long)id);
    al_buf_init(&job, AL_RECORDS_JOB_MAX);
    int r = al_records_get(records, tenant, text, &job);
    if (r == 0) {
        unpack(job.data, job.len, tenant, ret);
    }
    al_buf_finish(&job);
    return r;
}

struct seen {
    const char *tenant;
    struct al_test_seen *to;
    int n;
};

static int see(void *arg, const uint8_t *job, size_t len)
{
    struct seen *seen = arg;
    unpack(job, len, seen->tenant, &seen->to[seen->n++]);
    return 0;
}

int al_test_page(struct al_records *records, const char *tenant, int status, uint32_t page_size,
                 char token[AL_RECORDS_TOKEN_MAX], struct al_test_seen *ret)
{
    struct seen seen = {tenant, ret, 0};
    int r = al_records_list(records, tenant, status, page_size, token, see, &seen, token);
    return r < 0 ? r : seen.n;
}

size_t al_test_list(struct al_records *records, const char *tenant, int status, uint32_t page_size,
                    struct al_test_seen *ret, size_t max)
{
    char token[AL_RECORDS_TOKEN_MAX] = "";
    size_t n = 0;
    do {
        assert_true(n + page_size <= max);
        int got = al_test_page(records, tenant, status, page_size, token, ret + n);
        assert_true(got >= 0);
        n += (size_t)got;
    } while (token[0] != '\0');
    return n;
}
