#include "backends/launcher/may_prestart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/launcher/message.h"

/* One change to a job that may have a started interpreter. */
struct row {
    const char *name;
    bool may; /* python and node */
    bool may_bash;
    const char *env; /* a variable's name */
    const char *value;
    const char *arg;
    const char *file; /* a path */
    const char *workdir;
    struct al_quotas lower; /* not 0: that limit instead of the default */
};

static char big[5000];

static const struct row rows[] = {
    {.name = "the_default", .may = true, .may_bash = true},
    {.name = "a_variable_of_its_own", .may = true, .may_bash = true, .env = "MODE"},
    {.name = "a_variable_that_only_begins_like_one",
     .may = true,
     .may_bash = true,
     .env = "HOMEPAGE"},
    {.name = "python_hash_seed", .may = false, .env = "PYTHONHASHSEED"},
    {.name = "python_path", .may = false, .env = "PYTHONPATH"},
    {.name = "node_options", .may = false, .env = "NODE_OPTIONS"},
    {.name = "node_extra_certificates", .may = false, .env = "NODE_EXTRA_CA_CERTS"},
    {.name = "preload", .may = false, .env = "LD_PRELOAD"},
    {.name = "locale", .may = false, .env = "LC_ALL"},
    {.name = "language", .may = false, .env = "LANGUAGE"},
    {.name = "time_zone", .may = false, .env = "TZ"},
    {.name = "allocator", .may = false, .env = "MALLOC_ARENA_MAX"},
    {.name = "openssl", .may = false, .env = "OPENSSL_CONF"},
    {.name = "home", .may = false, .env = "HOME"},
    {.name = "path", .may = false, .env = "PATH"},
    {.name = "a_file", .may = true, .may_bash = true, .file = "data/in.txt"},
    {.name = "a_module_beside_it", .may = true, .may_bash = true, .file = "sitecustomize.py"},
    {.name = "packages_of_the_user",
     .may = false,
     .file = ".local/lib/python3.11/site-packages/x.pth"},
    {.name = "another_workdir", .may = false, .workdir = "/sandbox/a"},
    {.name = "in_tmp", .may = false, .workdir = "/tmp"},
    {.name = "little_memory", .may = false, .lower = {.memory_mb = 127}},
    {.name = "enough_memory", .may = true, .may_bash = true, .lower = {.memory_mb = 128}},
    {.name = "few_processes", .may = false, .lower = {.pids = 31}},
    {.name = "few_files", .may = false, .lower = {.open_files = 63}},
    {.name = "little_cpu", .may = false, .lower = {.cpu_ms = 499}},
    {.name = "arguments", .may = true, .arg = "x"},
    {.name = "of_bash", .may = true, .env = "BASH_COMPAT"},
    {.name = "bash_itself", .may = true, .env = "BASH"},
    {.name = "read_only_in_bash", .may = true, .env = "UID"},
    {.name = "no_name_in_bash", .may = true, .env = "a.b"},
    {.name = "a_digit_first", .may = true, .env = "1A"},
    {.name = "a_digit_later", .may = true, .may_bash = true, .env = "A1"},
    {.name = "a_function", .may = true, .env = "BASH_FUNC_f%%", .value = "() { :; }"},
    {.name = "an_empty_name", .may = true, .env = ""},
    {.name = "too_much_for_bash", .may = true, .env = "BIG", .value = big},
};

static void test_row(void **state)
{
    const struct row *row = *state;
    struct al_env env = {row->env, row->value ? row->value : "value"};
    struct al_file file = {.path = row->file, .mode = 0644};
    struct al_job_spec spec = {
        .workdir = row->workdir ? row->workdir : "/sandbox",
        .quotas = {.cpu_ms = row->lower.cpu_ms ? row->lower.cpu_ms : 5000,
                   .wall_ms = 10000,
                   .memory_mb = row->lower.memory_mb ? row->lower.memory_mb : 256,
                   .pids = row->lower.pids ? row->lower.pids : 64,
                   .open_files = row->lower.open_files ? row->lower.open_files : 64},
        .env = &env,
        .n_env = row->env != NULL,
        .args = &row->arg,
        .n_args = row->arg != NULL,
        .files = &file,
        .n_files = row->file != NULL,
    };
    uint32_t expected = row->may ? 1u << AL_PRESTART_PYTHON | 1u << AL_PRESTART_NODE : 0;
    expected |= row->may_bash ? 1u << AL_PRESTART_BASH : 0;
    assert_int_equal(al_job_may_prestart(&spec), expected);
}

int main(void)
{
    memset(big, 'x', sizeof big - 1);
    struct CMUnitTest tests[sizeof rows / sizeof rows[0]];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    return _cmocka_run_group_tests("may_prestart", tests, sizeof tests / sizeof tests[0], NULL,
                                   NULL);
}
