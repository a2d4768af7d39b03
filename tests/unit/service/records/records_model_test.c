/* Random use against a plain array, and use from several threads. */
#include "service/records/records.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "tests/unit/service/records/records_support.h"

#define IDS   150
#define STEPS 4000

static const char *const tenants[] = {"a", "ab", "_default"};
#define TENANTS 3

struct model {
    struct al_test_record jobs[IDS]; /* status 0: never put */
    bool interrupted[IDS];
    uint64_t random;
};

/* Some are created at the same moment. */
static int64_t created_of(uint64_t id)
{
    return (int64_t)(1000 + id / 2);
}

static int compare(const void *a, const void *b)
{
    const struct al_test_record *x = a;
    const struct al_test_record *y = b;
    if (x->created_ns != y->created_ns) {
        return x->created_ns > y->created_ns ? -1 : 1;
    }
    return x->id == y->id ? 0 : x->id > y->id ? -1 : 1;
}

static size_t expect(const struct model *model, const char *tenant, int status,
                     struct al_test_record ret[IDS])
{
    size_t n = 0;
    for (size_t i = 0; i < IDS; i++) {
        const struct al_test_record *job = &model->jobs[i];
        if (job->status != 0 && strcmp(job->tenant, tenant) == 0 &&
            (status == 0 || job->status == status)) {
            ret[n++] = *job;
        }
    }
    qsort(ret, n, sizeof ret[0], compare);
    return n;
}

static void put_random(struct model *model, struct al_records *records)
{
    uint64_t id = al_test_random(&model->random, IDS);
    struct al_test_record *job = &model->jobs[id];
    int status = 1 + (int)al_test_random(&model->random, 8);
    *job = (struct al_test_record){
        .tenant = tenants[id % TENANTS],
        .id = id,
        .created_ns = created_of(id),
        .status = status,
        .version = job->version + 1,
        .pad_bytes =
            al_test_random(&model->random, al_test_random(&model->random, 16) ? 500 : 9000),
    };
    model->interrupted[id] = false;
    al_test_put(records, job);
}

static void get_random(struct model *model, struct al_records *records)
{
    uint64_t id = al_test_random(&model->random, IDS);
    const char *tenant = tenants[al_test_random(&model->random, TENANTS)];
    const struct al_test_record *job = &model->jobs[id];
    struct al_test_seen seen;
    int r = al_test_get(records, tenant, id, &seen);
    if (job->status == 0 || strcmp(job->tenant, tenant) != 0) {
        assert_int_equal(r, -ENOENT);
        return;
    }
    assert_int_equal(r, 0);
    assert_int_equal(seen.version, job->version);
    assert_int_equal(seen.status, job->status);
    assert_int_equal(seen.interrupted, model->interrupted[id]);
}

static void list_random(struct model *model, struct al_records *records)
{
    static struct al_test_record wanted[IDS];
    static struct al_test_seen seen[2 * IDS];
    const char *tenant = tenants[al_test_random(&model->random, TENANTS)];
    int status = (int)al_test_random(&model->random, 9);
    size_t n = expect(model, tenant, status, wanted);
    size_t got = al_test_list(records, tenant, status, 1 + al_test_random(&model->random, 60), seen,
                              2 * IDS);
    assert_int_equal(got, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(seen[i].id == wanted[i].id);
        assert_int_equal(seen[i].version, wanted[i].version);
        assert_int_equal(seen[i].status, wanted[i].status);
    }
}

static void interrupt(struct model *model)
{
    for (size_t i = 0; i < IDS; i++) {
        struct al_test_record *job = &model->jobs[i];
        if (job->status == AL_STATUS_PENDING || job->status == AL_STATUS_RUNNING) {
            job->status = AL_STATUS_FAILED;
            model->interrupted[i] = true;
        }
    }
}

static void test_records__are_what_a_model_says(void **state)
{
    (void)state;
    static struct model model;
    char dir[128];
    al_test_dir_make(dir);
    model.random = 0x1234567;
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    for (int i = 0; i < STEPS; i++) {
        switch (al_test_random(&model.random, 12)) {
        case 0:
        case 1:
            get_random(&model, records);
            break;
        case 2:
            list_random(&model, records);
            break;
        case 3:
            usleep(al_test_random(&model.random, 3000));
            break;
        default:
            put_random(&model, records);
        }
        if (al_test_random(&model.random, 300) == 0) {
            al_records_close(records);
            records = al_test_records_open(dir, &al_test_limits);
            interrupt(&model);
        }
    }
    struct al_records_stats stats;
    al_records_stats(records, &stats);
    assert_int_equal(stats.dropped, 0);
    assert_int_equal(stats.corrupt, 0);
    al_records_close(records);
    assert_int_equal(al_test_count_files(dir, "data.mdb"), 1);
    al_test_dir_remove(dir);
}

/* --- threads --- */

#define WRITERS        2
#define PUTS           1500
#define READER_THREADS 2

struct writer {
    struct al_records *records;
    const char *tenant;
    atomic_uint put; /* all ids below are put for good */
};

struct reader {
    struct writer *writers;
    atomic_bool *stop;
    unsigned bad; /* the assertions are the main thread's */
    unsigned pages;
};

static void *put_jobs(void *arg)
{
    struct writer *writer = arg;
    for (unsigned id = 1; id <= PUTS; id++) {
        struct al_test_record job = {
            .tenant = writer->tenant, .id = id, .status = AL_STATUS_RUNNING, .version = id};
        job.id += strcmp(writer->tenant, "a") == 0 ? 0 : 1u << 20;
        al_test_put(writer->records, &job);
        job.status = AL_STATUS_SUCCEEDED;
        al_test_put(writer->records, &job);
        atomic_store(&writer->put, id);
        if (id % 8 == 0) {
            usleep(500);
        }
    }
    return NULL;
}

/* The newest page has no holes and begins with what was put before it was asked for. */
static void *read_jobs(void *arg)
{
    struct reader *reader = arg;
    struct al_test_seen seen[40];
    for (unsigned i = 0; !atomic_load(reader->stop); i++) {
        struct writer *writer = &reader->writers[i % WRITERS];
        char token[AL_RECORDS_TOKEN_MAX] = "";
        unsigned put = atomic_load(&writer->put);
        int status = i % 3 == 0 ? AL_STATUS_SUCCEEDED : 0;
        int n = al_test_page(writer->records, writer->tenant, status, 40, token, seen);
        reader->bad += n < 0 || (put >= 40 && n != 40);
        reader->bad += n > 0 && seen[0].version < put;
        for (int j = 1; j < n; j++) {
            reader->bad += seen[j].version != seen[j - 1].version - 1;
        }
        struct al_test_seen one;
        reader->bad +=
            n > 0 && (al_test_get(writer->records, writer->tenant, seen[n - 1].id, &one) < 0 ||
                      one.version != seen[n - 1].version);
        reader->pages++;
    }
    return NULL;
}

static void test_records__many_threads(void **state)
{
    (void)state;
    char dir[128];
    al_test_dir_make(dir);
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    struct writer writers[WRITERS] = {{.records = records, .tenant = "a"},
                                      {.records = records, .tenant = "b"}};
    atomic_bool stop = false;
    struct reader readers[READER_THREADS] = {{.writers = writers, .stop = &stop},
                                             {.writers = writers, .stop = &stop}};
    pthread_t putting[WRITERS];
    pthread_t reading[READER_THREADS];
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&putting[i], NULL, put_jobs, &writers[i]), 0);
    }
    for (int i = 0; i < READER_THREADS; i++) {
        assert_int_equal(pthread_create(&reading[i], NULL, read_jobs, &readers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(putting[i], NULL);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < READER_THREADS; i++) {
        pthread_join(reading[i], NULL);
        assert_int_equal(readers[i].bad, 0);
        assert_true(readers[i].pages > 0);
    }
    al_test_settle(records);
    struct al_records_stats stats;
    al_records_stats(records, &stats);
    assert_int_equal(stats.count, WRITERS * PUTS);
    assert_int_equal(stats.dropped, 0);
    assert_int_equal(stats.corrupt, 0);
    al_records_close(records);
    al_test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records__are_what_a_model_says),
        cmocka_unit_test(test_records__many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
