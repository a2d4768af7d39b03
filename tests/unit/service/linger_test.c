#include "service/linger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/service/job_support.h"

#define N 6

/* Entries of jobs whose tenants are given by a letter each; the test holds a reference to each. */
struct fixture {
    struct al_linger *linger;
    size_t n;
    struct al_linger_entry entries[N];
};

static void init(struct fixture *f, const char *tenants, size_t ended_max, size_t bytes_max)
{
    *f = (struct fixture){.linger = al_linger_create(ended_max, bytes_max), .n = strlen(tenants)};
    assert_non_null(f->linger);
    for (size_t i = 0; i < f->n; i++) {
        const char tenant[] = {tenants[i], '\0'};
        f->entries[i].job = al_test_job_create(&(struct al_test_job){
            .tenant = tenant, .lane = AL_LANE_STREAMS, .ring_bytes = 2048, .keep_bytes = 1024});
        atomic_init(&f->entries[i].refs, 1);
        al_linger_add(f->linger, &f->entries[i]);
    }
}

/* Which entries a chain gave up, as digits in ascending order. */
static const char *given_up(struct fixture *f, struct al_linger_entry *chain)
{
    static char text[N + 1];
    bool found[N] = {false};
    for (; chain; chain = chain->next) {
        found[chain - f->entries] = true;
        assert_false(chain->listed);
        atomic_fetch_sub(&chain->refs, 1);
    }
    size_t len = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (found[i]) {
            text[len++] = (char)('0' + i);
        }
    }
    text[len] = '\0';
    return text;
}

static void finish(struct fixture *f)
{
    for (size_t i = 0; i < f->n; i++) {
        if (al_linger_remove(f->linger, &f->entries[i])) {
            atomic_fetch_sub(&f->entries[i].refs, 1);
        }
        assert_int_equal(f->entries[i].refs, 1);
        al_job_unref(f->entries[i].job);
    }
    al_linger_destroy(f->linger);
}

static const char *unread(struct fixture *f, size_t i, int64_t until_ms)
{
    return given_up(f, al_linger_unread(f->linger, &f->entries[i], until_ms));
}

static const char *ended(struct fixture *f, size_t i, size_t bytes)
{
    return given_up(f, al_linger_ended(f->linger, &f->entries[i], bytes));
}

static const char *expire(struct fixture *f, int64_t now_ms)
{
    return given_up(f, al_linger_expire(f->linger, now_ms));
}

static void test_linger__finds_the_tenants_own(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "ab", 10, 1000);
    const char *id = al_job_id(f.entries[0].job);
    struct al_linger_entry *found = al_linger_find(f.linger, "a", id);
    assert_ptr_equal(found, &f.entries[0]);
    atomic_fetch_sub(&found->refs, 1);
    assert_null(al_linger_find(f.linger, "b", id));
    assert_null(al_linger_find(f.linger, "a", "0000000000000000"));
    assert_true(al_linger_remove(f.linger, &f.entries[0]));
    atomic_fetch_sub(&f.entries[0].refs, 1);
    assert_null(al_linger_find(f.linger, "a", id));
    assert_false(al_linger_remove(f.linger, &f.entries[0]));
    assert_int_equal(al_linger_read(f.linger, &f.entries[0]), -1);
    finish(&f);
}

static void test_linger__gives_up_what_nobody_reads_in_time(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "aaaa", 10, 1000);
    assert_int_equal(al_linger_next_ms(f.linger), INT64_MAX);
    assert_string_equal(unread(&f, 0, 300), "");
    assert_string_equal(unread(&f, 1, 100), "");
    assert_string_equal(unread(&f, 2, 200), "");
    assert_int_equal(al_linger_next_ms(f.linger), 100);
    assert_int_equal(al_linger_read(f.linger, &f.entries[2]), 200);
    assert_int_equal(al_linger_read(f.linger, &f.entries[3]), INT64_MAX);
    assert_string_equal(expire(&f, 99), "");
    assert_string_equal(expire(&f, 250), "1");
    assert_int_equal(al_linger_next_ms(f.linger), 300);
    assert_string_equal(expire(&f, 1000), "0");
    assert_int_equal(al_linger_next_ms(f.linger), INT64_MAX);
    assert_string_equal(unread(&f, 0, 1), ""); /* it was given up: no matter who leaves it now */
    assert_int_equal(al_linger_next_ms(f.linger), INT64_MAX);
    finish(&f);
}

static void test_linger__bounds_the_number_of_what_has_ended(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "aabbac", 2, 1000);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(unread(&f, i, 100), "");
    }
    assert_string_equal(ended(&f, 0, 1), "");
    assert_string_equal(ended(&f, 2, 1), "");
    assert_string_equal(ended(&f, 3, 1), "");     /* is read: does not count */
    assert_string_equal(unread(&f, 3, 100), "2"); /* the tenant's own first */
    assert_string_equal(ended(&f, 5, 1), "");
    assert_string_equal(unread(&f, 5, 100), "0"); /* it has none: the oldest */
    assert_string_equal(unread(&f, 4, 100), "");  /* runs: does not count */
    finish(&f);
}

static void test_linger__bounds_the_memory_of_what_has_ended(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "aaa", 10, 120);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(unread(&f, i, 100), "");
    }
    assert_string_equal(ended(&f, 0, 60), "");
    assert_string_equal(ended(&f, 1, 40), "");
    assert_int_equal(al_linger_read(f.linger, &f.entries[0]), 100); /* counts no longer */
    assert_string_equal(ended(&f, 2, 60), "");
    assert_string_equal(unread(&f, 0, 100), "1");
    finish(&f);
}

static void test_linger__drains(void **state)
{
    (void)state;
    struct fixture f;
    init(&f, "aaaa", 10, 1000);
    assert_string_equal(unread(&f, 0, 100), "");
    assert_string_equal(ended(&f, 0, 1), "");
    assert_string_equal(ended(&f, 1, 1), "");
    assert_string_equal(unread(&f, 2, 100), "");
    assert_string_equal(given_up(&f, al_linger_drain(f.linger)), "0");
    assert_string_equal(unread(&f, 1, 100), "1");
    assert_string_equal(ended(&f, 2, 1), "2");
    assert_string_equal(ended(&f, 3, 1), "");
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linger__finds_the_tenants_own),
        cmocka_unit_test(test_linger__gives_up_what_nobody_reads_in_time),
        cmocka_unit_test(test_linger__bounds_the_number_of_what_has_ended),
        cmocka_unit_test(test_linger__bounds_the_memory_of_what_has_ended),
        cmocka_unit_test(test_linger__drains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
