#include "backends/base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_set__code_text_and_value(void **state)
{
    (void)state;
    static const struct {
        enum al_err_code code;
        int value;
    } rows[] = {
        {AL_ERR_INVALID_ARGUMENT, -EINVAL},
        {AL_ERR_NOT_FOUND, -ENOENT},
        {AL_ERR_FAILED_PRECONDITION, -ENOTSUP},
        {AL_ERR_RESOURCE_EXHAUSTED, -EBUSY},
        {AL_ERR_UNAVAILABLE, -ESHUTDOWN},
        {AL_ERR_PERMISSION_DENIED, -EPERM},
        {AL_ERR_INTERNAL, -EIO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct al_err err = {0};
        assert_int_equal(al_err_set(&err, rows[i].code, "%d apples", 3), rows[i].value);
        assert_int_equal(err.code, rows[i].code);
        assert_string_equal(err.text, "3 apples");
        assert_true(al_err_is_set(&err));
    }
}

static void test_set__keeps_the_first(void **state)
{
    (void)state;
    struct al_err err = {0};
    al_err_set(&err, AL_ERR_NOT_FOUND, "first");
    assert_int_equal(al_err_set(&err, AL_ERR_INTERNAL, "second"), -EIO);
    assert_int_equal(al_err_errno(&err, ENOENT, "third"), -ENOENT);
    assert_int_equal(err.code, AL_ERR_NOT_FOUND);
    assert_string_equal(err.text, "first");
}

static void test_null__is_nobody_to_tell(void **state)
{
    (void)state;
    assert_int_equal(al_err_set(NULL, AL_ERR_NOT_FOUND, "x"), -ENOENT);
    assert_int_equal(al_err_errno(NULL, EBUSY, "x"), -EBUSY);
    al_err_wrap(NULL, "x");
}

static void test_errno__appends_what_it_means(void **state)
{
    (void)state;
    struct al_err err = {0};
    assert_int_equal(al_err_errno(&err, ENOENT, "open %s", "/x"), -ENOENT);
    assert_int_equal(err.code, AL_ERR_INTERNAL);
    assert_string_equal(err.text, "open /x: No such file or directory");
    assert_int_equal(al_err_errno(NULL, 0, "x"), -EIO);
}

static void test_wrap__puts_text_before(void **state)
{
    (void)state;
    struct al_err err = {0};
    al_err_wrap(&err, "outer");
    assert_false(al_err_is_set(&err));
    al_err_set(&err, AL_ERR_INTERNAL, "inner");
    al_err_wrap(&err, "outer %d", 1);
    assert_string_equal(err.text, "outer 1: inner");
}

/* Every two-byte character whole: a cut in the middle would make the text invalid UTF-8. */
static void assert_only_whole_characters(const char *text)
{
    const char *at = strchr(text, '\xc3');
    assert_non_null(at);
    for (; *at; at += 2) {
        assert_int_equal((unsigned char)at[0], 0xc3);
        assert_int_equal((unsigned char)at[1], 0xbc);
    }
}

static void fill_with_umlauts(char *text, size_t size)
{
    for (size_t i = 0; i + 2 < size; i += 2) {
        memcpy(text + i, "\xc3\xbc", 3);
    }
}

static void test_set__cuts_between_characters(void **state)
{
    (void)state;
    char umlauts[AL_ERR_TEXT_MAX * 2 + 1];
    fill_with_umlauts(umlauts, sizeof umlauts);
    static const char *const before[] = {"", "x"};
    for (size_t i = 0; i < 2; i++) {
        struct al_err err = {0};
        al_err_set(&err, AL_ERR_INTERNAL, "%s%s", before[i], umlauts);
        assert_in_range(strlen(err.text), AL_ERR_TEXT_MAX - 2, AL_ERR_TEXT_MAX - 1);
        assert_only_whole_characters(err.text);
        err.code = AL_ERR_NONE;
        al_err_errno(&err, ENOENT, "%s%s", before[i], umlauts);
        assert_only_whole_characters(err.text);
    }
}

static void test_wrap__cuts_between_characters(void **state)
{
    (void)state;
    char umlauts[AL_ERR_TEXT_MAX];
    fill_with_umlauts(umlauts, sizeof umlauts);
    static const char *const around[] = {"a", "ab"};
    for (size_t i = 0; i < 2; i++) {
        struct al_err err = {0};
        al_err_set(&err, AL_ERR_INTERNAL, "%s", umlauts);
        al_err_wrap(&err, "%s", around[i]);
        assert_only_whole_characters(err.text);
    }
}

struct copy_row {
    const char *name;
    const char *from;
    size_t size;
    const char *to;
};

static const struct copy_row copy_rows[] = {
    {"copy__fits", "abc", 4, "abc"},
    {"copy__empty", "", 1, ""},
    {"copy__no_room", "abc", 1, ""},
    {"copy__cut_ascii", "abcd", 4, "abc"},
    {"copy__two_bytes_cut", "ab\xc3\xbc", 4, "ab"},
    {"copy__two_bytes_whole",
     "a\xc3\xbc"
     "b",
     4, "a\xc3\xbc"},
    {"copy__three_bytes_cut_after_one", "a\xe3\x81\x82", 3, "a"},
    {"copy__three_bytes_cut_after_two", "a\xe3\x81\x82", 4, "a"},
    {"copy__three_bytes_whole", "\xe3\x81\x82z", 4, "\xe3\x81\x82"},
    {"copy__four_bytes_cut_after_three", "\xf0\x9f\x98\x80", 4, ""},
    {"copy__four_bytes_whole", "\xf0\x9f\x98\x80z", 5, "\xf0\x9f\x98\x80"},
};

static void test_copy_text(void **state)
{
    const struct copy_row *row = *state;
    char to[16];
    memset(to, 'X', sizeof to);
    al_err_copy_text(to, row->size, row->from);
    assert_string_equal(to, row->to);
}

#define COPY_ROWS (sizeof copy_rows / sizeof copy_rows[0])

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set__code_text_and_value),
        cmocka_unit_test(test_set__keeps_the_first),
        cmocka_unit_test(test_null__is_nobody_to_tell),
        cmocka_unit_test(test_errno__appends_what_it_means),
        cmocka_unit_test(test_wrap__puts_text_before),
        cmocka_unit_test(test_set__cuts_between_characters),
        cmocka_unit_test(test_wrap__cuts_between_characters),
    };
    static struct CMUnitTest table[COPY_ROWS];
    for (size_t i = 0; i < COPY_ROWS; i++) {
        table[i] = (struct CMUnitTest){.name = copy_rows[i].name,
                                       .test_func = test_copy_text,
                                       .initial_state = (void *)&copy_rows[i]};
    }
    int failed = cmocka_run_group_tests_name("err", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("err_copy_text", table, NULL, NULL);
}
