#include "backends/base/log.h"

#include <fcntl.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct captured {
    char text[4096];
    size_t len;
};

/* What one record puts on stderr. */
static struct captured capture(enum al_log_level level, const char *message)
{
    struct captured c = {.len = 0};
    int fds[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
    al_log(level, "%s", message);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    close(fds[1]);
    ssize_t got = read(fds[0], c.text, sizeof c.text - 1);
    close(fds[0]);
    c.len = got > 0 ? (size_t)got : 0;
    return c;
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t re;
    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&re, text, 0, NULL, 0) != 0) {
        fail_msg("'%s' does not match '%s'", text, pattern);
    }
    regfree(&re);
}

#define HEAD "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "

struct row {
    const char *name;
    enum al_log_level level;
    const char *message;
    const char *pattern; /* of what follows the time; NULL: nothing is written */
};

static const struct row rows[] = {
    {"below_the_level", AL_LOG_DEBUG, "x", NULL},
    {"info", AL_LOG_INFO, "hello", "level=info proc=tester msg=\"hello\"\n$"},
    {"warn", AL_LOG_WARN, "hello", "level=warn proc=tester msg=\"hello\"\n$"},
    {"error", AL_LOG_ERROR, "", "level=error proc=tester msg=\"\"\n$"},
    {"c1_controls", AL_LOG_INFO, "a\xc2\x9b;1m", "msg=\"a\\\\xc2\\\\x9b;1m\"\n$"},
    {"other_characters", AL_LOG_INFO, "\xc2\xa3\xc3\xa4", "msg=\"\xc2\xa3\xc3\xa4\"\n$"},
    {"quotes_and_backslash", AL_LOG_INFO, "a\"b\\c", "msg=\"a\\\\\"b\\\\\\\\c\"\n$"},
    {"line_end_forges_nothing", AL_LOG_INFO, "a\nlevel=error", "msg=\"a\\\\x0alevel=error\"\n$"},
    {"escape_sequence", AL_LOG_INFO, "\x1b[31m\x7f", "msg=\"\\\\x1b\\[31m\\\\x7f\"\n$"},
    {"utf8_stays", AL_LOG_INFO, "\xc3\xbc", "msg=\"\xc3\xbc\"\n$"},
};

static void test_record(void **state)
{
    const struct row *row = *state;
    struct captured c = capture(row->level, row->message);
    if (!row->pattern) {
        assert_int_equal(c.len, 0);
        return;
    }
    assert_matches(c.text, HEAD);
    assert_matches(c.text, row->pattern);
    assert_ptr_equal(strchr(c.text, '\n'), c.text + c.len - 1);
}

/* However long and however much of it must be escaped: one line, terminated. */
static void test_long_record__is_cut_to_a_line(void **state)
{
    (void)state;
    static const char fills[] = {'x', '"', '\n'};
    for (size_t i = 0; i < sizeof fills; i++) {
        char message[3000];
        memset(message, fills[i], sizeof message - 1);
        message[sizeof message - 1] = '\0';
        struct captured c = capture(AL_LOG_INFO, message);
        assert_in_range(c.len, 600, 1300);
        assert_ptr_equal(strchr(c.text, '\n'), c.text + c.len - 1);
        assert_int_equal(c.text[c.len - 2], '"');
    }
}

#define ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    static struct CMUnitTest tests[ROWS + 1];
    for (size_t i = 0; i < ROWS; i++) {
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_record, .initial_state = (void *)&rows[i]};
    }
    tests[ROWS] = (struct CMUnitTest)cmocka_unit_test(test_long_record__is_cut_to_a_line);
    al_log_init("tester", AL_LOG_INFO);
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
