#include "proto/wire/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/wire/arena.h"

#define TEXT(literal) .bytes = (literal), .len = sizeof(literal) - 1

struct row {
    const char *name;
    const char *bytes;
    size_t len;
    size_t valid;        /* length of the valid prefix */
    const char *escaped; /* NULL: as it is */
};

static const struct row rows[] = {
    {"empty", TEXT(""), 0, NULL},
    {"ascii", TEXT("print(1)"), 8, NULL},
    {"ascii_longer_than_a_word", TEXT("0123456789abcdef!"), 17, NULL},
    {"last_of_one_byte", TEXT("\x7f"), 1, NULL},
    {"first_of_two_bytes", TEXT("\xc2\x80"), 2, NULL},
    {"last_of_two_bytes", TEXT("\xdf\xbf"), 2, NULL},
    {"first_of_three_bytes", TEXT("\xe0\xa0\x80"), 3, NULL},
    {"last_before_surrogates", TEXT("\xed\x9f\xbf"), 3, NULL},
    {"first_after_surrogates", TEXT("\xee\x80\x80"), 3, NULL},
    {"last_of_three_bytes", TEXT("\xef\xbf\xbf"), 3, NULL},
    {"first_of_four_bytes", TEXT("\xf0\x90\x80\x80"), 4, NULL},
    {"last_of_four_bytes", TEXT("\xf4\x8f\xbf\xbf"), 4, NULL},
    {"nul", TEXT("a\0b"), 3, "a\\x00b"},
    {"lone_continuation", TEXT("\x80"), 0, "\\x80"},
    {"overlong_two_bytes", TEXT("\xc0\x80"), 0, "\\xc0\\x80"},
    {"overlong_two_bytes_c1", TEXT("\xc1\xbf"), 0, "\\xc1\\xbf"},
    {"overlong_three_bytes", TEXT("\xe0\x9f\xbf"), 0, "\\xe0\\x9f\\xbf"},
    {"overlong_four_bytes", TEXT("\xf0\x8f\xbf\xbf"), 0, "\\xf0\\x8f\\xbf\\xbf"},
    {"first_surrogate", TEXT("\xed\xa0\x80"), 0, "\\xed\\xa0\\x80"},
    {"last_surrogate", TEXT("\xed\xbf\xbf"), 0, "\\xed\\xbf\\xbf"},
    {"above_the_last", TEXT("\xf4\x90\x80\x80"), 0, "\\xf4\\x90\\x80\\x80"},
    {"five_byte_lead", TEXT("\xf8\x88\x80\x80\x80"), 0, "\\xf8\\x88\\x80\\x80\\x80"},
    {"ff", TEXT("\xff"), 0, "\\xff"},
    {"cut_after_one_of_two", TEXT("ab\xc3"), 2, "ab\\xc3"},
    {"cut_after_two_of_three", TEXT("ab\xe2\x82"), 2, "ab\\xe2\\x82"},
    {"cut_after_three_of_four", TEXT("ab\xf0\x9f\x98"), 2, "ab\\xf0\\x9f\\x98"},
    {"lead_then_ascii", TEXT("\xe2(x"), 0, "\\xe2(x"},
    {"bad_byte_behind_a_word", TEXT("01234567\xfe"), 8, "01234567\\xfe"},
    {"good_around_bad", TEXT("\xc3\xa9\xff\xc3\xa9"), 2, "\xc3\xa9\\xff\xc3\xa9"},
};

static void test_valid_prefix(void **state)
{
    const struct row *row = *state;
    assert_int_equal(al_utf8_valid_prefix((const uint8_t *)row->bytes, row->len), row->valid);
}

static void test_escape(void **state)
{
    const struct row *row = *state;
    al_auto_arena struct al_arena *arena = al_arena_create(1024);
    const char *escaped = al_utf8_escape(arena, (const uint8_t *)row->bytes, row->len);
    assert_string_equal(escaped, row->escaped ? row->escaped : row->bytes);
    size_t len = strlen(escaped);
    assert_int_equal(al_utf8_valid_prefix((const uint8_t *)escaped, len), len);
}

static void test_escape__without_memory_fails(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(16);
    assert_null(al_utf8_escape(arena, (const uint8_t *)"0123456789\xff\xff", 12));
}

int main(void)
{
    enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
    struct CMUnitTest tests[2 * COUNT + 1];
    for (size_t i = 0; i < COUNT; i++) {
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name,
            .test_func = test_valid_prefix,
            .initial_state = (void *)&rows[i],
        };
        tests[COUNT + i] = tests[i];
        tests[COUNT + i].test_func = test_escape;
    }
    tests[2 * COUNT] = (struct CMUnitTest)cmocka_unit_test(test_escape__without_memory_fails);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
