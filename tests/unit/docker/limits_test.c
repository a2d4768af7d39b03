/* When a container's init ends a job. */
#include "backends/docker/init/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS INT64_C(1000000)
#define S  (1000 * MS)

static const struct al_container_job job = {.cpu_ms = 500, .wall_ms = 2000};

static struct al_limits start(void)
{
    struct al_limits l;
    al_limits_start(&l, &job, 100 * S, 30000); /* the container's own start took 30 ms */
    return l;
}

static void test_wall__at_its_moment(void **state)
{
    (void)state;
    struct al_limits l = start();
    assert_int_equal(al_limits_check(&l, 102 * S - 1, 30000), AL_LIMIT_NONE);
    assert_int_equal(l.next_ns, 102 * S);
    assert_int_equal(al_limits_check(&l, 102 * S, 30000), AL_LIMIT_WALL);
}

static void test_cpu__without_what_was_used_before(void **state)
{
    (void)state;
    struct al_limits l = start();
    assert_int_equal(al_limits_check(&l, 101 * S, 529999), AL_LIMIT_NONE);
    assert_int_equal(al_limits_check(&l, 101 * S, 530000), AL_LIMIT_CPU);
    assert_int_equal(al_limits_used_us(&l, 530000), 500000);
    assert_int_equal(al_limits_used_us(&l, 10), 0);
}

static void test_next__comes_closer_as_the_limit_does(void **state)
{
    (void)state;
    struct al_limits l = start();
    al_limits_check(&l, 100 * S, 30000);
    assert_true(l.next_ns > 100 * S && l.next_ns <= 100 * S + 100 * MS);
    al_limits_check(&l, 100 * S + 900 * MS, 529999);
    assert_int_equal(l.next_ns, 100 * S + 902 * MS);
}

static void test_news__once_a_second_while_it_grows(void **state)
{
    (void)state;
    struct al_limits l = start();
    al_limits_check(&l, 100 * S + 500 * MS, 40000);
    assert_int_equal(al_limits_news_us(&l, 40000), 0);
    al_limits_check(&l, 101 * S + 500 * MS, 50000);
    assert_int_equal(al_limits_news_us(&l, 50000), 20000);
    assert_int_equal(al_limits_news_us(&l, 60000), 0);
}

static void test_not_started__nothing_is_used(void **state)
{
    (void)state;
    struct al_limits l = {0};
    assert_int_equal(al_limits_used_us(&l, 30000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wall__at_its_moment),
        cmocka_unit_test(test_cpu__without_what_was_used_before),
        cmocka_unit_test(test_next__comes_closer_as_the_limit_does),
        cmocka_unit_test(test_news__once_a_second_while_it_grows),
        cmocka_unit_test(test_not_started__nothing_is_used),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
