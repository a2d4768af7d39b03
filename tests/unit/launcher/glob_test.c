#include "backends/launcher/glob.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Goes along the path as a walk does. */
static bool matches(const char *text, const char *path)
{
    struct al_glob glob;
    uint64_t positions = AL_GLOB_START;
    assert_int_equal(al_glob_parse(text, &glob), 0);
    for (const char *at = path;; at++) {
        const char *end = strchrnul(at, '/');
        positions = al_glob_step(&glob, positions, at, (size_t)(end - at));
        if (*end == '\0') {
            return al_glob_is_match(&glob, positions);
        }
        if (!al_glob_goes_on(&glob, positions)) {
            return false;
        }
        at = end;
    }
}

struct row {
    const char *glob;
    const char *yes[8]; /* paths that match */
    const char *no[8];  /* paths that do not */
};

static const struct row rows[] = {
    {"a", {"a"}, {"b", "aa", "a/a", "A"}},
    {"a/b", {"a/b"}, {"a", "b", "a/b/c", "a/bb"}},
    {"*", {"a", "abc", "ü", "a b", "-"}, {"a/b", ".a", ".", ".."}},
    {"*.txt", {"a.txt", "a.b.txt", "ü.txt"}, {"a.txt.gz", ".txt", "a.tx", "d/a.txt"}},
    {"a*", {"a", "ab", "a.b"}, {"b", "ba"}},
    {"*a*b*", {"ab", "xaybz", "aabb"}, {"ba", "a", "b", ".ab"}},
    {"a*b*c", {"abc", "abcbc", "a-b-c", "abbc"}, {"ab", "abcb", "acb"}},
    {"?", {"a", "ü", "漢", "😀"}, {"ab", ".", "a/b"}},
    {"??", {"ab", "üb"}, {"a", "ü", "abc", ".a"}},
    {"a?c",
     {"abc", "aüc", "a.c",
      "a\xff"
      "c"},
     {"ac", "abbc", "a/c"}},
    {"[abc]", {"a", "c"}, {"d", "ab", "A"}},
    {"[a-c]x", {"ax", "bx", "cx"}, {"dx", "-x", "x"}},
    {"[!a-c]", {"d", "ü", "-"}, {"a", "c", ".", "dd"}},
    {"[^a-c]", {"d"}, {"a"}},
    {"[à-ü]", {"é"}, {"a", "e"}},
    {"[]a]", {"]", "a"}, {"b", "[]a]"}},
    {"[!]a]", {"b"}, {"]", "a"}},
    {"[a-]", {"a", "-"}, {"b"}},
    {"[-a]", {"a", "-"}, {"b"}},
    {"[c-a]", {NULL}, {"a", "b", "c"}},
    {"[\\]]", {"]"}, {"\\", "a"}},
    {"[a", {"[a"}, {"a", "["}},
    {"[]", {"[]"}, {"]", "["}},
    {"x[.]y", {"x.y"}, {"xy"}},
    {"\\*", {"*"}, {"a", "\\*", "\\"}},
    {"\\[a]", {"[a]"}, {"a"}},
    {"a\\", {"a\\"}, {"a"}},
    {".*", {".a", ".bashrc"}, {"a", "a.b"}},
    {".a/*", {".a/b"}, {".a/.b", "a/b"}},
    {"[.]a", {NULL}, {".a"}},
    {"\\.a", {NULL}, {".a"}},
    {"*/b", {"a/b"}, {"b", "a/c/b", ".a/b"}},
    {"**", {"a", "a/b", "a/b/c/d"}, {".a", ".a/b", "a/.b", "a/.b/c"}},
    {"**/*", {"a", "a/b/c"}, {".a", "a/.b"}},
    {"**/a", {"a", "b/a", "b/c/a"}, {"b", "a/b", ".b/a"}},
    {"**/.a", {".a", "b/.a"}, {"a", ".b/.a"}},
    {"a/**", {"a/b", "a/b/c"}, {"a", "b/a/c", "ab/c"}},
    {"a/**/b", {"a/b", "a/x/b", "a/x/y/b", "a/b/b"}, {"a", "b", "a/x", "x/a/b", "a/.x/b"}},
    {"**/a/**", {"a/b", "x/a/b/c"}, {"a", "x/a", "b/c"}},
    {"**/**/a/**/**/b", {"a/b", "x/a/y/b"}, {"a", "b"}},
    {"**/*.py", {"a.py", "b/c/a.py"}, {"a.pyc", "b/.py"}},
    {"a**b", {"ab", "axb"}, {"a/b", "a/x/b"}},
    {"***", {"a"}, {"a/b"}},
    {"**a", {"a", "ba"}, {"b/a"}},
    {"a\xc3", {"a\xc3"}, {"a"}},
    {"\xff*", {"\xff", "\xff\xfe"}, {"\xfe"}},
};

static void test_row(void **state)
{
    const struct row *row = *state;
    for (size_t i = 0; i < 8 && row->yes[i]; i++) {
        if (!matches(row->glob, row->yes[i])) {
            fail_msg("%s does not match %s", row->glob, row->yes[i]);
        }
    }
    for (size_t i = 0; i < 8 && row->no[i]; i++) {
        if (matches(row->glob, row->no[i])) {
            fail_msg("%s matches %s", row->glob, row->no[i]);
        }
    }
}

static void test_step__leads_into_no_folder_in_vain(void **state)
{
    (void)state;
    struct al_glob glob;
    assert_int_equal(al_glob_parse("out/*/x", &glob), 0);
    assert_int_equal(al_glob_step(&glob, AL_GLOB_START, "node_modules", 12), 0);
    uint64_t out = al_glob_step(&glob, AL_GLOB_START, "out", 3);
    assert_true(al_glob_goes_on(&glob, out));
    uint64_t below = al_glob_step(&glob, out, "y", 1);
    assert_true(al_glob_goes_on(&glob, below));
    assert_false(al_glob_goes_on(&glob, al_glob_step(&glob, below, "x", 1)));
}

static void repeat(char *to, const char *part, size_t n)
{
    *to = '\0';
    for (size_t i = 0; i < n; i++) {
        to = stpcpy(to, i > 0 ? "/" : "");
        to = stpcpy(to, part);
    }
}

static void test_parse__bounds_the_components(void **state)
{
    (void)state;
    char text[3 * 4 * AL_GLOB_PARTS_MAX];
    struct al_glob glob;
    repeat(text, "a", AL_GLOB_PARTS_MAX);
    assert_true(matches(text, text));
    repeat(text, "**/a", AL_GLOB_PARTS_MAX);
    assert_int_equal(al_glob_parse(text, &glob), 0);
    repeat(text, "a", AL_GLOB_PARTS_MAX + 1);
    assert_int_equal(al_glob_parse(text, &glob), -E2BIG);
    repeat(text, "**", AL_GLOB_PARTS_MAX + 1);
    assert_true(matches(text, "a"));
}

/* Without a bound on going back these would not end in a lifetime. */
static void test_step__is_not_exponential(void **state)
{
    (void)state;
    char glob[AL_ARTIFACT_PATH_MAX * 4], name[256], path[AL_ARTIFACT_PATH_MAX];
    memset(name, 'a', 255);
    name[255] = '\0';
    for (size_t i = 0; i < 254; i += 2) {
        memcpy(glob + i, "*a", 2);
    }
    strcpy(glob + 254, "b");
    assert_false(matches(glob, name));
    repeat(glob, "**/a*a*a*a*", AL_GLOB_PARTS_MAX);
    repeat(path, "aaaaaaaa", AL_GLOB_PARTS_MAX - 1);
    assert_false(matches(glob, path));
}

int main(void)
{
    static struct CMUnitTest row_tests[sizeof rows / sizeof rows[0]];
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step__leads_into_no_folder_in_vain),
        cmocka_unit_test(test_parse__bounds_the_components),
        cmocka_unit_test(test_step__is_not_exponential),
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row_tests[i] = (struct CMUnitTest){
            .name = rows[i].glob, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    int failed = cmocka_run_group_tests_name("globs", row_tests, NULL, NULL);
    return cmocka_run_group_tests_name("glob", tests, NULL, NULL) + failed;
}
