#include "backends/base/chars.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct row {
    const char *name;
    const char *bytes;
    size_t n;
    size_t len; /* 0: not valid */
    uint32_t c;
};

#define ROW(name, s, len, c)           \
    {                                  \
        name, s, sizeof(s) - 1, len, c \
    }

static const struct row rows[] = {
    ROW("nul", "\0", 1, 0),
    ROW("ascii", "a", 1, 'a'),
    ROW("ascii_last", "\x7f", 1, 0x7f),
    ROW("only_the_first", "ab", 1, 'a'),
    ROW("two_first", "\xc2\x80", 2, 0x80),
    ROW("two_last", "\xdf\xbf", 2, 0x7ff),
    ROW("three_first", "\xe0\xa0\x80", 3, 0x800),
    ROW("before_surrogates", "\xed\x9f\xbf", 3, 0xd7ff),
    ROW("after_surrogates", "\xee\x80\x80", 3, 0xe000),
    ROW("three_last", "\xef\xbf\xbf", 3, 0xffff),
    ROW("four_first", "\xf0\x90\x80\x80", 4, 0x10000),
    ROW("four_last", "\xf4\x8f\xbf\xbf", 4, 0x10ffff),
    ROW("continuation", "\x80", 0, 0),
    ROW("continuation_last", "\xbf", 0, 0),
    ROW("overlong_two", "\xc0\x80", 0, 0),
    ROW("overlong_two_last", "\xc1\xbf", 0, 0),
    ROW("overlong_three", "\xe0\x9f\xbf", 0, 0),
    ROW("overlong_four", "\xf0\x8f\xbf\xbf", 0, 0),
    ROW("surrogate_first", "\xed\xa0\x80", 0, 0),
    ROW("surrogate_last", "\xed\xbf\xbf", 0, 0),
    ROW("too_large", "\xf4\x90\x80\x80", 0, 0),
    ROW("five", "\xf8\x88\x80\x80\x80", 0, 0),
    ROW("ff", "\xff", 0, 0),
    ROW("cut_two", "\xc3", 0, 0),
    ROW("cut_four", "\xf0\x90\x80", 0, 0),
    ROW("not_continued",
        "\xc3"
        "a",
        0, 0),
    ROW("third_not_continued", "\xe3\x81\xc3", 0, 0),
};

static void test_row(void **state)
{
    const struct row *row = *state;
    uint32_t c = 77;
    assert_int_equal(al_char_decode(row->bytes, row->n, &c), row->len);
    assert_int_equal(c, row->len > 0 ? row->c : 77);
}

int main(void)
{
    static struct CMUnitTest tests[sizeof rows / sizeof rows[0]];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    return cmocka_run_group_tests_name("chars", tests, NULL, NULL);
}
