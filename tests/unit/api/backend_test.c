#include "backends/api/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct al_language languages[] = {
    {.name = "python", .version = "3.11.2", .aliases = {"python3", "py"}},
    {.name = "python", .version = "3.9.1", .aliases = {"python3", "py"}},
    {.name = "python", .version = "2.7", .aliases = {"python2"}},
    {.name = "ts", .version = "0.17+node.18.19", .aliases = {"a1", "a2", "a3", "a4"}},
    {.name = "bash", .version = "unknown"},
};

#define NONE (-1)

struct find_row {
    const char *wanted;
    int index;
};

static const struct find_row find_rows[] = {
    {"python", 0},
    {"python3", 0},
    {"py", 0},
    {"python2", 2},
    {"python@3", 0},
    {"python@3.11", 0},
    {"python@3.11.2", 0},
    {"py@3.9", 1},
    {"python3@3.9.1", 1},
    {"python@2", 2},
    {"a4", 3},
    {"ts@0.17+node.18", 3},
    {"bash@unknown", 4},
    {"python@3.1", NONE}, /* no prefix of a number: 3.1 is not 3.11 */
    {"python@3.11.", NONE},
    {"python@3.11.2.1", NONE},
    {"python@", NONE},
    {"python@@3", NONE},
    {"python@11", NONE},
    {"python2@3", NONE},
    {"pytho", NONE},
    {"python33", NONE},
    {"Python", NONE},
    {"", NONE},
    {"@3", NONE},
    {"bash@un", NONE},
};

static void test_find_language(void **state)
{
    const struct find_row *row = *state;
    const struct al_backend backend = {.languages = languages,
                                       .n_languages = sizeof languages / sizeof languages[0]};
    const struct al_language *found = al_backend_find_language(&backend, row->wanted);
    assert_ptr_equal(found, row->index == NONE ? NULL : &languages[row->index]);
}

/* --- what a spec needs --- */

struct needs_row {
    const char *name;
    struct al_job_spec spec;
    uint32_t needs;
};

#define PLAIN .workdir = "/sandbox", .network = AL_NETWORK_NONE

static const struct needs_row needs_rows[] = {
    {"needs__nothing", {PLAIN}, 0},
    {"needs__stdin", {PLAIN, .stdin_bytes = {(const uint8_t *)"x", 1}}, AL_CAP_STDIN},
    {"needs__files", {PLAIN, .n_files = 1}, AL_CAP_FILES},
    {"needs__env", {PLAIN, .n_env = 1}, AL_CAP_ENV},
    {"needs__args", {PLAIN, .n_args = 1}, AL_CAP_ARGS},
    {"needs__inputs", {PLAIN, .inputs_json = "{}"}, AL_CAP_INPUTS},
    {"needs__workdir_below", {.workdir = "/sandbox/a", .network = AL_NETWORK_NONE}, AL_CAP_WORKDIR},
    {"needs__workdir_tmp", {.workdir = "/tmp", .network = AL_NETWORK_NONE}, AL_CAP_WORKDIR},
    {"needs__artifacts", {PLAIN, .n_artifacts = 1}, AL_CAP_ARTIFACTS},
    {"needs__allowlist",
     {.workdir = "/sandbox", .network = AL_NETWORK_ALLOWLIST},
     AL_CAP_EGRESS_ALLOWLIST},
    {"needs__unrestricted",
     {.workdir = "/sandbox", .network = AL_NETWORK_UNRESTRICTED},
     AL_CAP_EGRESS_UNRESTRICTED},
    {"needs__several", {PLAIN, .n_files = 1, .n_env = 2}, AL_CAP_FILES | AL_CAP_ENV},
};

static void test_needs(void **state)
{
    const struct needs_row *row = *state;
    assert_int_equal(al_job_spec_needs(&row->spec), row->needs);
}

/* --- names and the registry --- */

static void test_names__one_for_each_bit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < AL_CAP_COUNT; i++) {
        assert_non_null(al_capability_name(i));
    }
    for (unsigned i = 0; i < AL_LAYER_COUNT; i++) {
        assert_non_null(al_layer_name(i));
    }
    assert_null(al_capability_name(AL_CAP_COUNT));
    assert_null(al_layer_name(AL_LAYER_COUNT));
    assert_string_equal(al_capability_name(__builtin_ctz(AL_CAP_CPU_ACCOUNTING)), "cpu_accounting");
    assert_string_equal(al_capability_name(__builtin_ctz(AL_CAP_PTY)), "pty");
    assert_string_equal(al_layer_name(__builtin_ctz(AL_LAYER_RLIMITS)), "rlimits");
    assert_string_equal(al_layer_name(__builtin_ctz(AL_LAYER_SECCOMP)), "seccomp");
}

static void test_registry__by_name_or_default(void **state)
{
    (void)state;
    struct al_backend a = {.name = "a"}, b = {.name = "b"};
    struct al_backend *const both[] = {&a, &b};
    const struct al_registry registry = {.backends = both, .n = 2, .default_backend = &b};
    assert_ptr_equal(al_registry_find(&registry, "a"), &a);
    assert_ptr_equal(al_registry_find(&registry, "b"), &b);
    assert_ptr_equal(al_registry_find(&registry, ""), &b);
    assert_null(al_registry_find(&registry, "A"));
    assert_null(al_registry_find(&registry, "ab"));
    const struct al_registry none = {.n = 0};
    assert_null(al_registry_find(&none, ""));
    assert_null(al_registry_find(&none, "a"));
}

static int destroyed;

static void count_destroy(struct al_backend *backend)
{
    (void)backend;
    destroyed++;
}

static void test_destroy__accepts_null(void **state)
{
    (void)state;
    static const struct al_backend_ops ops = {.destroy = count_destroy};
    struct al_backend b = {.ops = &ops};
    al_backend_destroy(NULL);
    al_backend_destroy(&b);
    assert_int_equal(destroyed, 1);
}

#define FIND_ROWS  (sizeof find_rows / sizeof find_rows[0])
#define NEEDS_ROWS (sizeof needs_rows / sizeof needs_rows[0])

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names__one_for_each_bit),
        cmocka_unit_test(test_registry__by_name_or_default),
        cmocka_unit_test(test_destroy__accepts_null),
    };
    static struct CMUnitTest table[FIND_ROWS + NEEDS_ROWS];
    for (size_t i = 0; i < FIND_ROWS; i++) {
        table[i] = (struct CMUnitTest){.name = find_rows[i].wanted,
                                       .test_func = test_find_language,
                                       .initial_state = (void *)&find_rows[i]};
    }
    for (size_t i = 0; i < NEEDS_ROWS; i++) {
        table[FIND_ROWS + i] = (struct CMUnitTest){.name = needs_rows[i].name,
                                                   .test_func = test_needs,
                                                   .initial_state = (void *)&needs_rows[i]};
    }
    int failed = cmocka_run_group_tests_name("backend", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("backend rows", table, NULL, NULL);
}
