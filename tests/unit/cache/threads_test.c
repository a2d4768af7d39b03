/* Many threads on one cache that is full and cleared now and then. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/cache/support.h"

#define THREADS    6
#define OPERATIONS 3000
#define KEYS       300

struct worker {
    struct support *s;
    uint64_t random;
    uint64_t hits;
    uint64_t puts;
};

static uint64_t draw(struct worker *w, uint64_t bound)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % bound;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t number = draw(w, KEYS);
        uint64_t what = draw(w, 1000);
        if (what == 0) {
            al_cache_clear(w->s->cache, NULL);
        } else if (what < 300) {
            size_t size = draw(w, 20) == 0 ? 100000 : (size_t)draw(w, 5000);
            w->puts += support_put(w->s, number, (uint32_t)i, size);
        } else {
            w->hits += support_has(w->s, number);
        }
    }
    return NULL;
}

static void test_threads__get_what_was_put(void **state)
{
    struct support *s = *state;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct al_cache_stats sum = {0};
    s->limits.max_bytes = SUPPORT_MIB;
    support_open(s);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){s, i + 1, 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum.hits += workers[i].hits;
        sum.puts += workers[i].puts;
    }
    struct al_cache_stats stats = support_stats(s);
    assert_int_equal(stats.hits, sum.hits);
    assert_int_equal(stats.puts, sum.puts);
    assert_true(stats.bytes <= SUPPORT_MIB);
    assert_true(sum.hits > 0);
    assert_string_equal(stats.trouble, "");
    assert_int_equal(stats.faults, 0);
    support_close(s);
    support_open(s);
    assert_int_equal(support_stats(s).entries, stats.entries);
    assert_int_equal(support_stats(s).bytes, stats.bytes);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_threads__get_what_was_put, support_setup,
                                        support_teardown),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
