#include "service/records/records.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "tests/unit/service/records/records_support.h"

#define SUCCEEDED AL_STATUS_SUCCEEDED
#define FAILED    AL_STATUS_FAILED
#define RUNNING   AL_STATUS_RUNNING

struct fixture {
    char dir[128];
    struct al_records *records;
};

static int set_up(void **state)
{
    static struct fixture f;
    al_test_dir_make(f.dir);
    f.records = al_test_records_open(f.dir, &al_test_limits);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    al_records_close(f->records);
    al_test_dir_remove(f->dir);
    return 0;
}

static void reopen(struct fixture *f, const struct al_records_limits *limits)
{
    al_records_close(f->records);
    f->records = al_test_records_open(f->dir, limits);
}

static struct al_records_stats stats_of(const struct fixture *f)
{
    struct al_records_stats stats;
    al_records_stats(f->records, &stats);
    return stats;
}

/* Puts `n` succeeded jobs of the tenant with the ids `first` and on. */
static void put_many(const struct fixture *f, const char *tenant, uint64_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        al_test_put(f->records, &(struct al_test_record){
                                    .tenant = tenant, .id = first + i, .status = SUCCEEDED});
    }
}

static void assert_seen(const struct fixture *f, const char *tenant, uint64_t id, int status,
                        uint32_t version)
{
    struct al_test_seen seen;
    assert_int_equal(al_test_get(f->records, tenant, id, &seen), 0);
    assert_true(seen.id == id);
    assert_int_equal(seen.status, status);
    assert_int_equal(seen.version, version);
}

static void assert_gone(const struct fixture *f, const char *tenant, uint64_t id)
{
    struct al_test_seen seen;
    assert_int_equal(al_test_get(f->records, tenant, id, &seen), -ENOENT);
}

static void test_get__answers_at_once_and_later(void **state)
{
    struct fixture *f = *state;
    al_test_put(f->records, &(struct al_test_record){
                                .tenant = "t", .id = 7, .status = SUCCEEDED, .version = 3});
    assert_seen(f, "t", 7, SUCCEEDED, 3);
    al_test_settle(f->records);
    assert_seen(f, "t", 7, SUCCEEDED, 3);
    reopen(f, &al_test_limits);
    assert_seen(f, "t", 7, SUCCEEDED, 3);
    assert_gone(f, "t", 8);
    assert_int_equal(stats_of(f).count, 1);
    assert_true(stats_of(f).working);
}

static void test_put__the_last_one_counts(void **state)
{
    struct fixture *f = *state;
    struct al_test_record r = {.tenant = "t", .id = 7, .status = RUNNING, .version = 1};
    al_test_put(f->records, &r);
    r.status = FAILED;
    r.version = 2;
    al_test_put(f->records, &r);
    assert_seen(f, "t", 7, FAILED, 2);
    al_test_settle(f->records);
    assert_seen(f, "t", 7, FAILED, 2);
    assert_int_equal(stats_of(f).written, 1);
    r.status = SUCCEEDED;
    r.version = 3;
    r.pad_bytes = 10000;
    al_test_put(f->records, &r);
    al_test_settle(f->records);
    assert_seen(f, "t", 7, SUCCEEDED, 3);
    assert_int_equal(stats_of(f).count, 1);
}

static void test_put__may_move_a_job(void **state)
{
    struct fixture *f = *state;
    struct al_test_seen seen[20];
    struct al_test_record r = {.tenant = "t", .id = 7, .created_ns = 50, .status = RUNNING};
    al_test_put(f->records, &r);
    al_test_settle(f->records);
    r.created_ns = 70;
    r.version = 1;
    al_test_put(f->records, &r);
    al_test_settle(f->records);
    assert_int_equal(al_test_list(f->records, "t", RUNNING, 10, seen, 20), 1);
    assert_int_equal(seen[0].version, 1);
    assert_int_equal(stats_of(f).count, 1);
}

static void test_put__drops_what_is_too_long_or_no_key(void **state)
{
    struct fixture *f = *state;
    static const uint8_t bytes[AL_RECORDS_JOB_MAX + 1];
    char tenant[AL_RECORDS_TENANT_MAX + 2];
    memset(tenant, 't', sizeof tenant - 1);
    tenant[sizeof tenant - 1] = '\0';
    struct al_record_key key = {"t", "0123456789abcdef", 1, SUCCEEDED};
    al_records_put(f->records, &key, bytes, sizeof bytes);
    key.tenant = tenant;
    al_records_put(f->records, &key, bytes, 1);
    key.tenant = "";
    al_records_put(f->records, &key, bytes, 1);
    key.tenant = "t";
    key.id = "0123";
    al_records_put(f->records, &key, bytes, 1);
    key.id = "0123456789abcdef";
    key.status = 99;
    al_records_put(f->records, &key, bytes, 1);
    assert_int_equal(stats_of(f).dropped, 5);
    assert_int_equal(stats_of(f).waiting, 0);
    key.status = SUCCEEDED;
    key.tenant = tenant + 1;
    al_records_put(f->records, &key, bytes, AL_RECORDS_JOB_MAX);
    al_test_settle(f->records);
    struct al_buf job;
    al_buf_init(&job, 100);
    assert_int_equal(al_records_get(f->records, tenant + 1, key.id, &job), -ENOBUFS);
    al_buf_init(&job, AL_RECORDS_JOB_MAX);
    assert_int_equal(al_records_get(f->records, tenant + 1, key.id, &job), 0);
    assert_int_equal(job.len, AL_RECORDS_JOB_MAX);
    al_buf_finish(&job);
}

static void test_tenants__see_their_own_only(void **state)
{
    struct fixture *f = *state;
    static const char *const tenants[] = {"a", "aa", "ab", "b"};
    struct al_test_seen seen[20];
    for (uint64_t i = 0; i < 4; i++) {
        put_many(f, tenants[i], 100 * i + 1, 3);
    }
    for (int written = 0; written < 2; written++) {
        for (uint64_t i = 0; i < 4; i++) {
            assert_int_equal(al_test_list(f->records, tenants[i], 0, 10, seen, 20), 3);
            assert_true(seen[0].id == 100 * i + 3);
            assert_gone(f, tenants[i], 100 * ((i + 1) % 4) + 1);
        }
        assert_int_equal(al_test_list(f->records, "", 0, 10, seen, 20), 0);
        al_test_settle(f->records);
    }
}

static void test_list__pages_are_newest_first_and_complete(void **state)
{
    struct fixture *f = *state;
    struct al_test_seen seen[600];
    put_many(f, "t", 1, 150);
    al_test_settle(f->records);
    put_many(f, "t", 151, 50); /* these wait, as likely as not */
    for (uint32_t size = 1; size <= 250; size += 83) {
        assert_int_equal(al_test_list(f->records, "t", 0, size, seen, 600), 200);
        for (uint64_t i = 0; i < 200; i++) {
            assert_true(seen[i].id == 200 - i);
        }
    }
}

static void test_list__a_full_last_page_has_no_token(void **state)
{
    struct fixture *f = *state;
    struct al_test_seen seen[10];
    char token[AL_RECORDS_TOKEN_MAX] = "";
    put_many(f, "t", 1, 10);
    assert_int_equal(al_test_page(f->records, "t", 0, 10, token, seen), 10);
    assert_string_equal(token, "");
    al_test_settle(f->records);
    assert_int_equal(al_test_page(f->records, "t", 0, 10, token, seen), 10);
    assert_string_equal(token, "");
}

static void test_list__filters_by_status(void **state)
{
    struct fixture *f = *state;
    struct al_test_seen seen[400];
    for (uint64_t id = 1; id <= 300; id++) {
        al_test_put(f->records, &(struct al_test_record){.tenant = "t",
                                                         .id = id,
                                                         .status = id % 3 == 0 ? FAILED : RUNNING});
    }
    for (int written = 0; written < 2; written++) {
        assert_int_equal(al_test_list(f->records, "t", FAILED, 7, seen, 400), 100);
        assert_true(seen[0].id == 300 && seen[99].id == 3);
        assert_int_equal(al_test_list(f->records, "t", AL_STATUS_KILLED, 7, seen, 400), 0);
        al_test_settle(f->records);
    }
    for (uint64_t id = 1; id <= 300; id++) { /* while the store still has them running */
        al_test_put(f->records,
                    &(struct al_test_record){.tenant = "t", .id = id, .status = SUCCEEDED});
    }
    for (int written = 0; written < 2; written++) {
        assert_int_equal(al_test_list(f->records, "t", RUNNING, 100, seen, 400), 0);
        assert_int_equal(al_test_list(f->records, "t", FAILED, 100, seen, 400), 0);
        assert_int_equal(al_test_list(f->records, "t", SUCCEEDED, 100, seen, 400), 300);
        al_test_settle(f->records);
    }
}

static void test_list__tokens_are_checked_and_outlive_a_restart(void **state)
{
    struct fixture *f = *state;
    struct al_test_seen seen[10];
    char token[AL_RECORDS_TOKEN_MAX] = "";
    char forged[AL_RECORDS_TOKEN_MAX];
    put_many(f, "t", 1, 10);
    assert_int_equal(al_test_page(f->records, "t", 0, 4, token, seen), 4);
    memcpy(forged, token, sizeof forged);
    assert_int_equal(al_test_page(f->records, "u", 0, 4, forged, seen), -EINVAL);
    assert_int_equal(al_test_page(f->records, "t", SUCCEEDED, 4, forged, seen), -EINVAL);
    forged[15] = forged[15] == '0' ? '1' : '0';
    assert_int_equal(al_test_page(f->records, "t", 0, 4, forged, seen), -EINVAL);
    strcpy(forged, "next");
    assert_int_equal(al_test_page(f->records, "t", 0, 4, forged, seen), -EINVAL);
    reopen(f, &al_test_limits);
    assert_int_equal(al_test_page(f->records, "t", 0, 4, token, seen), 4);
    assert_true(seen[0].id == 6);
}

static void test_list__a_page_is_bounded_in_bytes(void **state)
{
    struct fixture *f = *state;
    struct al_test_seen seen[100];
    char token[AL_RECORDS_TOKEN_MAX] = "";
    for (uint64_t id = 1; id <= 20; id++) {
        al_test_put(f->records,
                    &(struct al_test_record){
                        .tenant = "t", .id = id, .status = SUCCEEDED, .pad_bytes = 200000});
    }
    for (int written = 0; written < 2; written++) {
        assert_int_equal(al_test_page(f->records, "t", 0, 50, token, seen), 5);
        token[0] = '\0';
        assert_int_equal(al_test_list(f->records, "t", 0, 50, seen, 100), 20);
        al_test_settle(f->records);
    }
}

static void test_open__jobs_that_ran_were_interrupted(void **state)
{
    struct fixture *f = *state;
    struct al_test_seen seen[500];
    for (uint64_t id = 1; id <= 400; id++) {
        static const int statuses[] = {AL_STATUS_PENDING, RUNNING, SUCCEEDED, AL_STATUS_KILLED};
        al_test_put(f->records, &(struct al_test_record){.tenant = id % 8 < 4 ? "t" : "u",
                                                         .id = id,
                                                         .status = statuses[id % 4],
                                                         .version = (uint32_t)id});
    }
    reopen(f, &al_test_limits);
    assert_int_equal(al_test_list(f->records, "t", RUNNING, 10, seen, 500), 0);
    assert_int_equal(al_test_list(f->records, "t", AL_STATUS_PENDING, 10, seen, 500), 0);
    assert_int_equal(al_test_list(f->records, "t", SUCCEEDED, 10, seen, 500), 50);
    assert_int_equal(al_test_list(f->records, "u", FAILED, 10, seen, 500), 100);
    for (int i = 0; i < 100; i++) {
        assert_true(seen[i].interrupted);
        assert_int_equal(seen[i].version, seen[i].id);
    }
    assert_int_equal(stats_of(f).count, 400);
    assert_int_equal(stats_of(f).corrupt, 0);
}

static void test_limits__count(void **state)
{
    struct fixture *f = *state;
    struct al_test_seen seen[2000];
    struct al_records_limits limits = al_test_limits;
    put_many(f, "t", 1, 1000);
    limits.max_count = 100;
    reopen(f, &limits);
    for (int i = 0; i < 1000 && stats_of(f).count > 100; i++) {
        usleep(10000);
    }
    assert_int_equal(stats_of(f).count, 100);
    assert_int_equal(stats_of(f).expired, 900);
    assert_int_equal(al_test_list(f->records, "t", 0, 200, seen, 2000), 100);
    assert_true(seen[99].id == 901);
    assert_gone(f, "t", 900);
    put_many(f, "t", 1001, 50);
    al_test_settle(f->records);
    assert_int_equal(stats_of(f).count, 100);
    assert_int_equal(al_test_list(f->records, "t", SUCCEEDED, 200, seen, 2000), 100);
}

static void test_limits__age(void **state)
{
    struct fixture *f = *state;
    struct al_records_limits limits = al_test_limits;
    limits.max_age_ms = 400;
    reopen(f, &limits);
    int64_t now_ns = al_wall_ns();
    al_test_put(f->records, &(struct al_test_record){
                                .tenant = "t", .id = 1, .created_ns = now_ns, .status = SUCCEEDED});
    al_test_settle(f->records);
    assert_seen(f, "t", 1, SUCCEEDED, 0);
    for (int i = 0; i < 500 && stats_of(f).count > 0; i++) {
        usleep(10000);
    }
    assert_gone(f, "t", 1);
    assert_true(al_wall_ns() - now_ns >= 400000000);
    assert_int_equal(stats_of(f).expired, 1);
}

static void test_limits__bytes(void **state)
{
    struct fixture *f = *state;
    struct al_records_limits limits = al_test_limits;
    limits.max_bytes = 4u << 20;
    reopen(f, &limits);
    for (uint64_t id = 1; id <= 4000; id++) {
        al_test_put(f->records,
                    &(struct al_test_record){
                        .tenant = "t", .id = id, .status = SUCCEEDED, .pad_bytes = 3000});
        if (id % 400 == 0) {
            al_test_settle(f->records);
        }
    }
    for (int i = 0; i < 500 && stats_of(f).bytes > limits.max_bytes; i++) {
        usleep(10000);
    }
    assert_true(stats_of(f).bytes <= limits.max_bytes);
    assert_true(stats_of(f).count > 500);
    assert_true(stats_of(f).working);
    assert_int_equal(stats_of(f).dropped, 0);
    assert_seen(f, "t", 4000, SUCCEEDED, 0);
}

static int stop(void *arg, const uint8_t *job, size_t len)
{
    (void)job;
    (void)len;
    return ++*(int *)arg == 3 ? -77 : 0;
}

static void test_list__stops_when_told(void **state)
{
    struct fixture *f = *state;
    char token[AL_RECORDS_TOKEN_MAX] = "same";
    int n = 0;
    put_many(f, "t", 1, 10);
    assert_int_equal(al_records_list(f->records, "t", 0, 5, "", stop, &n, token), -77);
    assert_int_equal(n, 3);
    assert_string_equal(token, "same");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_get__answers_at_once_and_later),
        TEST(test_put__the_last_one_counts),
        TEST(test_put__may_move_a_job),
        TEST(test_put__drops_what_is_too_long_or_no_key),
        TEST(test_tenants__see_their_own_only),
        TEST(test_list__pages_are_newest_first_and_complete),
        TEST(test_list__a_full_last_page_has_no_token),
        TEST(test_list__filters_by_status),
        TEST(test_list__tokens_are_checked_and_outlive_a_restart),
        TEST(test_list__a_page_is_bounded_in_bytes),
        TEST(test_list__stops_when_told),
        TEST(test_open__jobs_that_ran_were_interrupted),
        TEST(test_limits__count),
        TEST(test_limits__age),
        TEST(test_limits__bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
