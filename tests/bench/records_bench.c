/*
 * What job records cost: `records_bench [FOLDER]`. The folder, /tmp by default, says which disk is
 * measured; what is made there is removed. One line a figure.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backends/api/result.h"
#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "service/records/records.h"
#include "tests/bench/die.h"

#define JOB_BYTES   1500
#define JOBS        100000
#define PACED_JOBS  4000
#define PACED_BATCH 2
#define READS       20000
#define LISTS       200

static const struct al_records_limits limits = {
    .max_age_ms = INT64_MAX,
    .max_count = JOBS,
    .max_bytes = UINT64_C(1) << 30,
};

static char dir[256];
static uint8_t job[JOB_BYTES];
static int64_t samples[2 * JOBS];

static struct al_records *open_records(void)
{
    struct al_records *records;
    struct al_err err = {0};
    if (al_records_open(dir, &limits, &records, &err) < 0) {
        al_bench_die("%s", err.text);
    }
    return records;
}

static void remove_dir(void)
{
    al_auto_closedir DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    (void)rmdir(dir);
}

/* Ids as they come: spread over all numbers. */
static void id_of(uint64_t n, char ret[17])
{
    (void)snprintf(ret, 17, "%016" PRIx64, n * UINT64_C(0x9e3779b97f4a7c15));
}

/* Takes what the put itself takes. */
static int64_t put(struct al_records *records, uint64_t n, int status)
{
    char id[17];
    id_of(n, id);
    const struct al_record_key key = {
        .tenant = n % 10 ? "tenant-one" : "tenant-two",
        .id = id,
        .created_wall_ns = (int64_t)(1000000000 + n),
        .status = status,
    };
    memcpy(job, id, 16);
    int64_t start = al_now_ns();
    al_records_put(records, &key, job, sizeof job);
    return al_now_ns() - start;
}

static struct al_records_stats stats_of(struct al_records *records)
{
    struct al_records_stats stats;
    al_records_stats(records, &stats);
    if (!stats.working || stats.dropped > 0) {
        al_bench_die("dropped %llu, trouble: %s", (unsigned long long)stats.dropped, stats.trouble);
    }
    return stats;
}

static void settle(struct al_records *records)
{
    while (stats_of(records).waiting > 0) {
        usleep(1000);
    }
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, size_t n)
{
    qsort(samples, n, sizeof samples[0], compare);
    printf("%-44s median %lld ns, 99th percentile %lld ns\n", what, (long long)samples[n / 2],
           (long long)samples[n / 100 * 99]);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* 1,000 jobs a second, each put when it begins and when it ends. */
static void bench_paced(struct al_records *records)
{
    size_t n = 0;
    double cpu = cpu_seconds();
    int64_t start = al_now_ns();
    for (uint64_t i = 0; i < PACED_JOBS; i++) {
        samples[n++] = put(records, i, AL_STATUS_RUNNING);
        samples[n++] = put(records, i, AL_STATUS_SUCCEEDED);
        if (i % PACED_BATCH == PACED_BATCH - 1) {
            int64_t ahead_ns = start + (int64_t)(i + 1) * 1000000 - al_now_ns();
            usleep(ahead_ns > 0 ? (useconds_t)(ahead_ns / 1000) : 0);
        }
    }
    double took = (double)(al_now_ns() - start) / 1e9;
    report("put, 2,000 a second", n);
    printf("%-44s %.1f %% of one core, writer included\n", "  processor time",
           100 * (cpu_seconds() - cpu) / took);
}

/* As fast as the writer can take it. */
static void bench_sustained(struct al_records *records)
{
    int64_t start = al_now_ns();
    uint64_t written = stats_of(records).written;
    for (uint64_t i = 0; i < JOBS; i++) {
        samples[i] = put(records, PACED_JOBS + i, AL_STATUS_SUCCEEDED);
        while (i % 64 == 0 && stats_of(records).waiting > 2000) {
            usleep(500);
        }
    }
    settle(records);
    double took = (double)(al_now_ns() - start) / 1e9;
    report("put, without a pause", JOBS);
    printf("%-44s %.0f a second\n", "sustained, each a job of its own",
           (double)(stats_of(records).written - written) / took);
}

static void bench_get(struct al_records *records)
{
    char id[17];
    struct al_buf buf;
    al_buf_init(&buf, AL_RECORDS_JOB_MAX);
    for (size_t i = 0; i < READS; i++) {
        uint64_t n = PACED_JOBS + 10 * (i % (JOBS / 10)) + 1;
        id_of(n, id);
        buf.len = 0;
        int64_t start = al_now_ns();
        if (al_records_get(records, n % 10 ? "tenant-one" : "tenant-two", id, &buf) < 0) {
            al_bench_die("job %s is not there", id);
        }
        samples[i] = al_now_ns() - start;
    }
    al_buf_finish(&buf);
    report("get", READS);
}

static int count(void *arg, const uint8_t *data, size_t len)
{
    (void)data;
    (void)len;
    ++*(uint32_t *)arg;
    return 0;
}

static void bench_list(struct al_records *records, const char *what, uint32_t size, int status)
{
    char token[AL_RECORDS_TOKEN_MAX] = "";
    for (size_t i = 0; i < LISTS; i++) {
        uint32_t n = 0;
        int64_t start = al_now_ns();
        if (al_records_list(records, "tenant-one", status, size, token, count, &n, token) < 0) {
            al_bench_die("no list");
        }
        samples[i] = al_now_ns() - start;
    }
    report(what, LISTS);
}

static void bench_open(void)
{
    int64_t start = al_now_ns();
    struct al_records *records = open_records();
    printf("%-44s %.0f ms\n", "open and check 100,000 records",
           (double)(al_now_ns() - start) / 1e6);
    al_records_close(records);
}

int main(int argc, char **argv)
{
    (void)snprintf(dir, sizeof dir, "%s/records-bench-XXXXXX", argc > 1 ? argv[1] : "/tmp");
    if (!mkdtemp(dir)) {
        al_bench_die("cannot make %s", dir);
    }
    struct al_records *records = open_records();
    bench_paced(records);
    bench_sustained(records);
    bench_get(records);
    bench_list(records, "list, page of 50", 50, 0);
    bench_list(records, "list, page of 50, by status", 50, AL_STATUS_SUCCEEDED);
    bench_list(records, "list, page of 50, a status nobody has", 50, AL_STATUS_KILLED);
    bench_list(records, "list, page of 1,000 (ends at 1 MiB)", 1000, 0);
    struct al_records_stats stats = stats_of(records);
    printf("%-44s %.0f bytes a record of %d\n", "on disk",
           (double)stats.bytes / (double)stats.count, JOB_BYTES);
    al_records_close(records);
    bench_open();
    remove_dir();
    return 0;
}
