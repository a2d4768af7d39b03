/* Random operations on the cache and on a table that cannot be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/cache/support.h"

#define KEYS       200
#define OPERATIONS 6000
#define AGE_MS     60000

struct model {
    bool there[KEYS];
    struct support_found has[KEYS];
    int64_t stored_ns[KEYS];
};

struct run {
    struct support *s;
    struct model model;
    uint64_t random;
    bool roomy; /* nothing is evicted by size: what the model has must be a hit */
};

static uint64_t draw(struct run *run, uint64_t bound)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return (run->random >> 11) % bound;
}

static size_t draw_size(struct run *run)
{
    static const size_t most[] = {10, 200, 1900, 2100, 9000, 60000};
    return (size_t)draw(run, most[draw(run, sizeof most / sizeof most[0])]);
}

static void do_put(struct run *run)
{
    size_t i = (size_t)draw(run, KEYS);
    uint32_t version = (uint32_t)draw(run, 1u << 30);
    size_t size = draw_size(run);
    assert_true(support_put(run->s, i, version, size));
    run->model.there[i] = true;
    run->model.has[i] = (struct support_found){version, size};
    run->model.stored_ns[i] = run->s->now_ns;
}

static void do_get(struct run *run)
{
    size_t i = (size_t)draw(run, KEYS);
    struct support_found found;
    bool young = (run->s->now_ns - run->model.stored_ns[i]) / 1000000 <= AGE_MS;
    bool hit = support_get(run->s, i, &found);
    if (hit) {
        assert_true(run->model.there[i] && young);
        assert_int_equal(found.version, run->model.has[i].version);
        assert_int_equal(found.size, run->model.has[i].size);
    } else {
        assert_false(run->roomy && run->model.there[i] && young);
    }
}

static void do_reopen(struct run *run)
{
    struct al_cache_stats before = support_stats(run->s);
    support_close(run->s);
    support_open(run->s);
    assert_int_equal(support_stats(run->s).entries, before.entries);
    assert_int_equal(support_stats(run->s).bytes, before.bytes);
}

static void step(struct run *run)
{
    switch (draw(run, 200)) {
    case 0:
        do_reopen(run);
        break;
    case 1:
        if (draw(run, 10) == 0) {
            al_cache_clear(run->s->cache, NULL);
            memset(run->model.there, 0, sizeof run->model.there);
        }
        break;
    case 2 ... 9:
        run->s->now_ns += (int64_t)draw(run, 10000) * 1000000;
        break;
    case 10 ... 90:
        do_put(run);
        break;
    default:
        do_get(run);
        break;
    }
}

static void run_model(struct support *s, uint64_t max_bytes, bool roomy)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct run run = {.s = s, .random = seed * UINT64_C(2685821657736338717), .roomy = roomy};
        s->limits = (struct al_cache_limits){max_bytes, AGE_MS, max_bytes / 2};
        support_open(s);
        for (int i = 0; i < OPERATIONS; i++) {
            step(&run);
            assert_true(support_stats(s).bytes <= max_bytes);
            assert_true(support_stats(s).entries <= KEYS);
        }
        assert_int_equal(support_stats(s).faults, 0);
        al_cache_clear(s->cache, NULL);
        support_close(s);
    }
}

static void test_model__with_room_for_all(void **state)
{
    run_model(*state, 32 * SUPPORT_MIB, true);
}

static void test_model__with_room_for_some(void **state)
{
    run_model(*state, SUPPORT_MIB / 2, false);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, support_setup, support_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_model__with_room_for_all),
        WITH_FOLDER(test_model__with_room_for_some),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
