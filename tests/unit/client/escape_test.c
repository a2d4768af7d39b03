#include "client/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define READS_MAX 4

/* What is typed, read by read, and what of it is the program's. */
struct row {
    const char *name;
    const char *reads[READS_MAX];
    const char *keys;
    bool leaves;
};

static const struct row rows[] = {
    {"plain", {"ls -l\r"}, "ls -l\r", false},
    {"at_the_very_beginning", {"~."}, "", true},
    {"after_enter", {"ls\r~."}, "ls\r", true},
    {"after_a_newline", {"ls\n~."}, "ls\n", true},
    {"key_by_key", {"\r", "~", "."}, "\r", true},
    {"rest_is_dropped", {"~.exit\r"}, "", true},
    {"in_the_middle_of_a_line", {"a~.\r"}, "a~.\r", false},
    {"twice_is_once", {"~~\r"}, "~\r", false},
    {"twice_and_a_dot_is_a_word", {"~~.\r"}, "~.\r", false},
    {"before_another_key", {"~/bin\r"}, "~/bin\r", false},
    {"held_back", {"~"}, "", false},
    {"held_back_and_then_given", {"~", "x"}, "~x", false},
    {"enter_after_it_begins_a_line", {"~\r~."}, "~\r", true},
    {"dot_alone", {".\r"}, ".\r", false},
    {"every_other_byte", {"\x01\x7f\x80\xff\r"}, "\x01\x7f\x80\xff\r", false},
};

static void test_row(void **state)
{
    const struct row *row = *state;
    struct al_escape escape = {0};
    uint8_t keys[64];
    size_t len = 0;
    bool leaves = false;
    for (size_t i = 0; i < READS_MAX && row->reads[i]; i++) {
        const uint8_t *typed = (const uint8_t *)row->reads[i];
        assert_false(leaves);
        len += al_escape_filter(&escape, typed, strlen(row->reads[i]), keys + len, &leaves);
    }
    assert_int_equal(leaves, row->leaves);
    assert_int_equal(len, strlen(row->keys));
    assert_memory_equal(keys, row->keys, len);
}

int main(void)
{
    enum { ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    return _cmocka_run_group_tests("escape", tests, ROWS, NULL, NULL);
}
