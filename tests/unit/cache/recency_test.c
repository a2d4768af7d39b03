#include "cache/recency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/cache/support.h"

static uint64_t used(struct al_cache_recency *r, uint64_t number)
{
    uint8_t key[AL_CACHE_KEY_LEN];
    support_key(number, key);
    return al_cache_recency_of(r, key);
}

static void use(struct al_cache_recency *r, uint64_t number)
{
    uint8_t key[AL_CACHE_KEY_LEN];
    support_key(number, key);
    al_cache_recency_touch(r, key);
}

static void test_of__is_later_for_what_was_used_later(void **state)
{
    (void)state;
    struct al_cache_recency r;
    assert_int_equal(al_cache_recency_init(&r, 100), 0);
    use(&r, 1);
    use(&r, 2);
    assert_int_equal(used(&r, 3), 0);
    assert_true(used(&r, 1) < used(&r, 2));
    use(&r, 1);
    assert_true(used(&r, 1) > used(&r, 2));
    al_cache_recency_finish(&r);
}

/* Twenty times more keys than fit: a stranger never looks used, the latest are known. */
static void test_table_that_is_too_small__knows_the_latest(void **state)
{
    (void)state;
    struct al_cache_recency r;
    int known = 0;
    assert_int_equal(al_cache_recency_init(&r, 1000), 0);
    for (uint64_t i = 0; i < 20000; i++) {
        use(&r, i);
    }
    for (uint64_t i = 0; i < 200; i++) {
        known += used(&r, 19999 - i) > 0;
    }
    assert_in_range(known, 190, 200);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(used(&r, 100000 + i), 0);
        assert_int_equal(used(&r, i), 0);
    }
    al_cache_recency_finish(&r);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of__is_later_for_what_was_used_later),
        cmocka_unit_test(test_table_that_is_too_small__knows_the_latest),
    };
    return cmocka_run_group_tests_name("recency", tests, NULL, NULL);
}
