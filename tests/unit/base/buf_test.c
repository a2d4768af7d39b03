#include "backends/base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_holds(const struct al_buf *b, const char *text)
{
    assert_int_equal(b->len, strlen(text));
    if (b->len > 0) {
        assert_memory_equal(b->data, text, b->len);
    }
}

static void test_append__up_to_the_bound(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 5);
    assert_int_equal(al_buf_append(&b, "abc", 3), 0);
    assert_int_equal(al_buf_append(&b, "de", 2), 0);
    assert_holds(&b, "abcde");
    assert_true(b.cap <= 5);
    al_buf_finish(&b);
}

static void test_append__beyond_the_bound_changes_nothing(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 5);
    assert_int_equal(al_buf_append(&b, "abc", 3), 0);
    assert_int_equal(al_buf_append(&b, "def", 3), -ENOBUFS);
    assert_int_equal(al_buf_append(&b, "x", SIZE_MAX), -ENOBUFS);
    assert_holds(&b, "abc");
    al_buf_finish(&b);
}

static void test_append__nothing_allocates_nothing(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 5);
    assert_int_equal(al_buf_append(&b, NULL, 0), 0);
    assert_null(b.data);
    al_buf_finish(&b);
}

static void test_append_some__takes_what_fits(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 5);
    assert_int_equal(al_buf_append_some(&b, "abcd", 4), 4);
    assert_int_equal(al_buf_append_some(&b, "efg", 3), 1);
    assert_int_equal(al_buf_append_some(&b, "x", 1), 0);
    assert_holds(&b, "abcde");
    al_buf_finish(&b);
}

static void test_bound_of_zero__holds_nothing(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 0);
    assert_int_equal(al_buf_append(&b, "a", 1), -ENOBUFS);
    assert_int_equal(al_buf_append_some(&b, "a", 1), 0);
    assert_null(al_buf_reserve(&b, 1));
    al_buf_finish(&b);
}

static void test_reserve__gives_room_without_taking_it(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 4096);
    assert_int_equal(al_buf_append(&b, "ab", 2), 0);
    uint8_t *room = al_buf_reserve(&b, 4094);
    assert_non_null(room);
    assert_holds(&b, "ab");
    memset(room, 'x', 4094);
    b.len += 4094;
    assert_null(al_buf_reserve(&b, 1));
    assert_int_equal(b.len, 4096);
    al_buf_finish(&b);
}

static void test_growth__keeps_the_bytes(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 1 << 20);
    for (uint32_t i = 0; i < 40000; i++) {
        assert_int_equal(al_buf_append(&b, &i, sizeof i), 0);
    }
    for (uint32_t i = 0; i < 40000; i++) {
        assert_memory_equal(b.data + i * sizeof i, &i, sizeof i);
    }
    al_buf_finish(&b);
}

static void test_consume__drops_from_the_front(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 6);
    assert_int_equal(al_buf_append(&b, "abcdef", 6), 0);
    al_buf_consume(&b, 4);
    assert_holds(&b, "ef");
    assert_int_equal(al_buf_append(&b, "ghij", 4), 0);
    assert_holds(&b, "efghij");
    al_buf_consume(&b, 6);
    assert_holds(&b, "");
    al_buf_finish(&b);
}

static void test_consume__of_nothing_in_an_empty_buffer(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 6);
    al_buf_consume(&b, 0);
    assert_holds(&b, "");
    al_buf_finish(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append__up_to_the_bound),
        cmocka_unit_test(test_append__beyond_the_bound_changes_nothing),
        cmocka_unit_test(test_append__nothing_allocates_nothing),
        cmocka_unit_test(test_append_some__takes_what_fits),
        cmocka_unit_test(test_bound_of_zero__holds_nothing),
        cmocka_unit_test(test_reserve__gives_room_without_taking_it),
        cmocka_unit_test(test_growth__keeps_the_bytes),
        cmocka_unit_test(test_consume__drops_from_the_front),
        cmocka_unit_test(test_consume__of_nothing_in_an_empty_buffer),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
