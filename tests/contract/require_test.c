/*
 * A machine on which no cgroup can be had, which a parent that does not exist makes of any: without
 * a word the backends are not available, and where the configuration does without cgroups, what
 * stands in for them does as SECURITY.md says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/runner.h"

#define NO_CGROUPS "[cells]\ncgroup_parent = none/such\n"
#define LESS                                                                            \
    NO_CGROUPS "require = userns pidns netns mountns ipcns utsns cgroupns pivot_root\n" \
               "  own_uid no_capabilities no_new_privs seccomp rlimits\n"

static int start_strict(void **state)
{
    (void)state;
    al_test_start_with(NO_CGROUPS);
    return 0;
}

static int start_with_less(void **state)
{
    (void)state;
    al_test_start_with(LESS);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    al_test_stop();
    return 0;
}

static void test_all_required__not_available(void **state)
{
    (void)state;
    static const enum al_test_backend backends[] = {AL_TEST_NATIVE, AL_TEST_LOCAL};
    for (size_t i = 0; i < 2; i++) {
        const struct al_backend *b = al_test_backend_of(backends[i]);
        assert_false(b->available);
        assert_int_equal(b->isolation, 0);
        assert_non_null(strstr(b->unavailable_reason,
                               "cannot be enforced here: cgroup_memory cgroup_pids cgroup_cpu"));
        assert_non_null(strstr(b->unavailable_reason, "none/such"));
    }
}

static void test_less_required__is_not_claimed(void **state)
{
    (void)state;
    const struct al_backend *b = al_test_backend_of(AL_TEST_NATIVE);
    assert_true(b->available);
    assert_int_equal(b->isolation, AL_LAYERS_ALL & ~AL_LAYERS_CGROUP);
    assert_int_equal(b->capabilities & (AL_CAP_MEMORY_ACCOUNTING | AL_CAP_CPU_ACCOUNTING), 0);
}

static void run(const char *language, const char *code, void (*change)(struct al_job_spec *),
                struct al_test_run *ret)
{
    struct al_backend *b = al_test_backend_of(AL_TEST_NATIVE);
    struct al_job_spec spec = al_test_spec(b, language, code);
    if (change) {
        change(&spec);
    }
    al_test_run(b, &spec, NULL, ret);
    assert_int_equal(ret->rc, 0);
    assert_int_equal(ret->result.isolation, AL_LAYERS_ALL & ~AL_LAYERS_CGROUP);
    assert_int_equal(ret->result.memory_peak_bytes, 0); /* not measured */
    assert_int_equal(ret->result.pids_peak, 0);
}

static void small(struct al_job_spec *s)
{
    s->quotas.memory_mb = 64;
    s->quotas.pids = 8;
    s->quotas.cpu_ms = 500;
}

static const struct row {
    const char *name, *language, *code;
    void (*change)(struct al_job_spec *);
    enum al_status status;
    enum al_limit limit;
    const char *out;
} rows[] = {
    {"python", "python", "print(1)", NULL, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "1\n"},
    {"node", "javascript", "console.log(1)", NULL, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "1\n"},
    {"typescript", "typescript", "const n: number = 1; console.log(n)", NULL, AL_STATUS_SUCCEEDED,
     AL_LIMIT_NONE, "1\n"},
    {"memory_of_a_process", "python",
     "try: bytearray(100 << 20)\nexcept MemoryError: print('no memory')", small,
     AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "no memory\n"},
    {"processes", "python",
     "import os, time\nfor i in range(20):\n try: pid = os.fork()\n except OSError: print(i); "
     "break\n"
     " if pid == 0: time.sleep(30)",
     small, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "7\n"},
    {"cpu_of_a_process", "python", "while True: pass", small, AL_STATUS_TIMEOUT, AL_LIMIT_CPU, ""},
    {"tree_dies", "bash", "setsid sleep 9431.5 & sleep 9431.5 & echo a", NULL, AL_STATUS_SUCCEEDED,
     AL_LIMIT_NONE, "a\n"},
};

static void test_row(void **state)
{
    const struct row *row = *state;
    struct al_test_run r;
    al_test_start_with(LESS);
    if (!al_backend_find_language(al_test_backend_of(AL_TEST_NATIVE), row->language)) {
        al_test_stop();
        skip(); /* a machine without node */
    }
    run(row->language, row->code, row->change, &r);
    if (r.result.status != row->status || r.result.limit_hit != row->limit) {
        fail_msg("status %d limit %d exit %d/%d (%s)\n%.400s", r.result.status, r.result.limit_hit,
                 r.result.exit_kind, r.result.exit_value, r.result.error,
                 (const char *)r.out[AL_STDERR].data);
    }
    assert_string_equal((const char *)r.out[AL_STDOUT].data, row->out);
    assert_true(r.result.cpu_us > 0);
    al_test_run_finish(&r);
    al_test_stop();
    assert_int_equal(al_test_count_processes("9431.5"), 0);
}

#define ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    static struct CMUnitTest tests[2 + ROWS] = {
        cmocka_unit_test_setup_teardown(test_all_required__not_available, start_strict, stop),
        cmocka_unit_test_setup_teardown(test_less_required__is_not_claimed, start_with_less, stop),
    };
    for (size_t i = 0; i < ROWS; i++) {
        tests[2 + i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    return cmocka_run_group_tests_name("require", tests, NULL, NULL);
}
