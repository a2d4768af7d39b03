#include "backends/base/ini.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What was read, one line each; "stop" as a value is refused. */
struct heard {
    char text[512];
    size_t len;
};

static void say(struct heard *heard, const char *a, const char *b, const char *c, const char *d)
{
    heard->len += (size_t)snprintf(heard->text + heard->len, sizeof heard->text - heard->len,
                                   "%s%s%s%s\n", a, b, c, d);
}

static int hear_section(void *arg, const char *name, struct al_err *err)
{
    say(arg, "[", name, "]", "");
    return strcmp(name, "stop") == 0 ? al_err_set(err, AL_ERR_INVALID_ARGUMENT, "no") : 0;
}

static int hear_value(void *arg, const struct al_ini_value *value, struct al_err *err)
{
    say(arg, value->section, value->continues ? "/+" : "/", value->key, value->text);
    return strcmp(value->text, "stop") == 0 ? al_err_set(err, AL_ERR_INVALID_ARGUMENT, "no") : 0;
}

static const struct al_ini_handler handler = {.section = hear_section, .value = hear_value};

struct row {
    const char *name;
    const char *text;
    const char *heard;
    const char *error; /* NULL: accepted */
};

static const struct row rows[] = {
    {"nothing", "", "", NULL},
    {"sections_and_values", "a = 1\n[s]\nb = 2\n", "/a1\n[s]\ns/b2\n", NULL},
    {"no_newline_at_the_end", "[s]\nb = 2", "[s]\ns/b2\n", NULL},
    {"an_indented_line_continues", "[s]\nb = 1\n  2\n\t3\n", "[s]\ns/b1\ns/+b2\ns/+b3\n", NULL},
    {"a_key_given_twice_does_not", "[s]\nb = 1\nb = 2\n", "[s]\ns/b1\ns/b2\n", NULL},
    {"an_indented_key_of_its_own", "[s]\n  b = 1\n  2\n", "[s]\ns/b1\ns/+b2\n", NULL},
    {"a_refused_value_ends_it", "[s]\nb = stop\nc = 1\n", "[s]\ns/bstop\n", "x:2: no"},
    {"a_refused_section_ends_it", "[stop]\nb = 1\n", "[stop]\n", "x:1: no"},
    {"neither", "[s]\nb\n", "[s]\n", "x:2: neither [section] nor key = value"},
};

static void test_row(void **state)
{
    const struct row *row = *state;
    struct heard heard = {0};
    struct al_err err = {0};
    int rc = al_ini_parse("x", row->text, strlen(row->text), &handler, &heard, &err);
    assert_string_equal(heard.text, row->heard);
    assert_int_equal(rc < 0, row->error != NULL);
    assert_string_equal(err.text, row->error ? row->error : "");
}

static void test_parse__may_have_no_section_handler_and_no_error(void **state)
{
    (void)state;
    const struct al_ini_handler values = {.value = hear_value};
    static const char text[] = "[s]\nb = stop\n";
    struct heard heard = {0};
    assert_true(al_ini_parse("x", text, sizeof text - 1, &values, &heard, NULL) < 0);
    assert_string_equal(heard.text, "s/bstop\n");
}

#define ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    static struct CMUnitTest tests[ROWS + 1];
    for (size_t i = 0; i < ROWS; i++) {
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    tests[ROWS] =
        (struct CMUnitTest)cmocka_unit_test(test_parse__may_have_no_section_handler_and_no_error);
    return cmocka_run_group_tests_name("ini", tests, NULL, NULL);
}
