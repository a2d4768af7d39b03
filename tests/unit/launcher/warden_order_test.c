/* What a warden is told of a stage's runtime, and what it takes for malformed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "backends/launcher/warden.h"

static struct al_order_stage order;
static struct al_runtime got;

static struct al_runtime typescript(void)
{
    static char esbuild[] = "/usr/bin/esbuild", code[] = "{code}", node[] = "/usr/bin/node",
                output[] = "{output}", empty[] = "";
    struct al_runtime rt = {.info = {.code_file = "main.ts", .output_file = "main.js"},
                            .argv = {.word = {node, empty, output}, .n = 3},
                            .compile = {.word = {esbuild, code}, .n = 2}};
    return rt;
}

static void make(const struct al_runtime *rt)
{
    const struct al_assignment assignment = {.stage = AL_STAGE_RUN, .first = true, .runtime = 7};
    assert_int_equal(al_order_stage_init(&order, &assignment, rt), 0);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct al_runtime rt = typescript();
    make(&rt);
    assert_int_equal(order.type, AL_ORDER_STAGE);
    assert_int_equal(order.assignment.stage, AL_STAGE_RUN);
    assert_true(order.assignment.first);
    assert_int_equal(order.assignment.runtime, 0);
    assert_true(al_order_stage_runtime(&order, &got));
    assert_string_equal(got.info.code_file, "main.ts");
    assert_string_equal(got.info.output_file, "main.js");
    assert_int_equal(got.argv.n, 3);
    assert_string_equal(got.argv.word[0], "/usr/bin/node");
    assert_string_equal(got.argv.word[1], "");
    assert_string_equal(got.argv.word[2], "{output}");
    assert_null(got.argv.word[3]);
    assert_int_equal(got.compile.n, 2);
    assert_string_equal(got.compile.word[1], "{code}");
    assert_null(got.compile.word[2]);
}

/* As many words, and as long ones, as a configuration can have. */
static void test_largest__fits(void **state)
{
    (void)state;
    static char word[198];
    struct al_runtime rt = typescript();
    memset(word, 'x', sizeof word - 1);
    for (size_t i = 0; i < AL_ARGV_MAX; i++) {
        rt.argv.word[i] = rt.compile.word[i] = word;
    }
    rt.argv.n = rt.compile.n = AL_ARGV_MAX;
    make(&rt);
    assert_true(al_order_stage_runtime(&order, &got));
    assert_int_equal(got.compile.n, AL_ARGV_MAX);
    assert_string_equal(got.compile.word[AL_ARGV_MAX - 1], word);
}

static void test_too_long__refused(void **state)
{
    (void)state;
    static char word[AL_WARDEN_WORDS_MAX];
    struct al_runtime rt = typescript();
    const struct al_assignment assignment = {.stage = AL_STAGE_RUN};
    memset(word, 'x', sizeof word - 1);
    rt.compile.word[1] = word;
    assert_int_equal(al_order_stage_init(&order, &assignment, &rt), -E2BIG);
}

static void test_malformed__refused(void **state)
{
    (void)state;
    struct al_runtime rt = typescript();
    make(&rt);
    order.n_argv = 0; /* nothing to be executed */
    assert_false(al_order_stage_runtime(&order, &got));
    make(&rt);
    order.n_argv = AL_ARGV_MAX + 1;
    assert_false(al_order_stage_runtime(&order, &got));
    make(&rt);
    order.n_compile = UINT32_MAX;
    assert_false(al_order_stage_runtime(&order, &got));
    make(&rt);
    memset(order.words, 'x', sizeof order.words); /* no end of a word */
    assert_false(al_order_stage_runtime(&order, &got));
}

static void test_namespaces__are_of_this_process(void **state)
{
    (void)state;
    uint64_t found[AL_WARDEN_NAMESPACES];
    struct stat st;
    al_warden_namespaces(found);
    assert_int_equal(stat("/proc/self/ns/user", &st), 0);
    assert_int_equal(found[0], st.st_ino);
    assert_int_equal(stat("/proc/self/ns/cgroup", &st), 0);
    assert_int_equal(found[AL_WARDEN_NAMESPACES - 1], st.st_ino);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_largest__fits),
        cmocka_unit_test(test_too_long__refused),
        cmocka_unit_test(test_malformed__refused),
        cmocka_unit_test(test_namespaces__are_of_this_process),
    };
    return cmocka_run_group_tests_name("warden order", tests, NULL, NULL);
}
