/*
 * What the launcher measured, and what the caller is told of it. A wait status is written as the
 * kernel makes it: exit code << 8, or a signal's number.
 */
#include "backends/process/outcome.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CODE(n)   ((n) << 8)
#define DUMPED(n) ((n) | 0x80)

struct row {
    const char *name;
    struct al_msg_exit exit;
    const struct al_msg_compiled *compiled; /* NULL: the language has no such step */
    bool cancelled;
    bool over_output;
    enum al_status status;
    enum al_reason reason;
    enum al_limit limit;
    enum al_exit_kind exit_kind;
    int exit_value;
    const char *error;
};

static const struct al_msg_compiled compiled_well = {.wait_status = 0, .duration_us = 7};
static const struct al_msg_compiled compiled_badly = {.wait_status = CODE(2)};
static const struct al_msg_compiled compiler_died = {.wait_status = SIGSEGV};
static const struct al_msg_compiled compiler_killed = {.wait_status = SIGKILL};

#define IS(st, re, li) .status = AL_STATUS_##st, .reason = AL_REASON_##re, .limit = AL_LIMIT_##li
#define ENDED_WITH(n)  .exit_kind = AL_EXIT_CODE, .exit_value = n
#define ENDED_BY(sig)  .exit_kind = AL_EXIT_SIGNAL, .exit_value = sig
#define RAN(wait)      .ran = true, .wait_status = wait
#define CPU_LIMIT_US   5000000
#define WALL_TEXT      "wall_seconds limit of 10 s reached"
#define CPU_TEXT       "cpu_seconds limit of 5 s reached"
#define MEMORY_TEXT    "memory_mb limit of 256 MiB reached"
#define PIDS_TEXT      "pids limit of 64 reached"
#define OUTPUT_TEXT    "output_bytes limit of 1048576 bytes reached"
#define KILLED_BY_9    "killed by signal 9 (Killed)"

static const struct row rows[] = {
    /* by itself */
    {"exit_0", {RAN(0)}, IS(SUCCEEDED, EXIT, NONE), ENDED_WITH(0), .error = ""},
    {"exit_1", {RAN(CODE(1))}, IS(FAILED, EXIT, NONE), ENDED_WITH(1), .error = ""},
    {"exit_137_is_a_code", {RAN(CODE(137))}, IS(FAILED, EXIT, NONE), ENDED_WITH(137), .error = ""},
    {"exit_255", {RAN(CODE(255))}, IS(FAILED, EXIT, NONE), ENDED_WITH(255), .error = ""},
    {"signal_9", {RAN(SIGKILL)}, IS(FAILED, SIGNAL, NONE), ENDED_BY(9), .error = KILLED_BY_9},
    {"signal_with_core",
     {RAN(DUMPED(SIGSEGV))},
     IS(FAILED, SIGNAL, NONE),
     ENDED_BY(11),
     .error = "killed by signal 11 (Segmentation fault)"},
    {"real_time_signal",
     {RAN(40)},
     IS(FAILED, SIGNAL, NONE),
     ENDED_BY(40),
     .error = "killed by signal 40 (Real-time signal 6)"},

    /* limits that the launcher met */
    {"wall",
     {RAN(SIGKILL), .limit = AL_LIMIT_WALL},
     IS(TIMEOUT, LIMIT, WALL),
     ENDED_BY(9),
     .error = WALL_TEXT},
    {"wall_before_exec", {.limit = AL_LIMIT_WALL}, IS(TIMEOUT, LIMIT, WALL), .error = WALL_TEXT},
    {"cpu",
     {RAN(SIGKILL), .limit = AL_LIMIT_CPU, .cpu_us = CPU_LIMIT_US},
     IS(TIMEOUT, LIMIT, CPU),
     ENDED_BY(9),
     .error = CPU_TEXT},
    {"wall_is_named_though_cpu_was_near",
     {RAN(SIGKILL), .limit = AL_LIMIT_WALL, .cpu_us = CPU_LIMIT_US + 1},
     IS(TIMEOUT, LIMIT, WALL),
     ENDED_BY(9),
     .error = WALL_TEXT},
    {"cpu_is_named_though_memory_was_met",
     {RAN(SIGKILL), .limit = AL_LIMIT_CPU, .oom_kills = 1},
     IS(TIMEOUT, LIMIT, CPU),
     ENDED_BY(9),
     .error = CPU_TEXT},

    /* limits that the kernel met */
    {"rlimit_cpu",
     {RAN(SIGKILL), .cpu_us = CPU_LIMIT_US},
     IS(TIMEOUT, LIMIT, CPU),
     ENDED_BY(9),
     .error = CPU_TEXT},
    {"rlimit_cpu_xcpu",
     {RAN(SIGXCPU), .cpu_us = CPU_LIMIT_US + 5},
     IS(TIMEOUT, LIMIT, CPU),
     ENDED_BY(SIGXCPU),
     .error = CPU_TEXT},
    {"signal_just_below_cpu",
     {RAN(SIGKILL), .cpu_us = CPU_LIMIT_US - 1},
     IS(FAILED, SIGNAL, NONE),
     ENDED_BY(9),
     .error = KILLED_BY_9},
    {"exit_though_cpu_was_used_up",
     {RAN(0), .cpu_us = CPU_LIMIT_US},
     IS(SUCCEEDED, EXIT, NONE),
     ENDED_WITH(0),
     .error = ""},
    {"memory",
     {RAN(SIGKILL), .oom_kills = 1},
     IS(FAILED, LIMIT, MEMORY),
     ENDED_BY(9),
     .error = MEMORY_TEXT},
    {"memory_of_a_child_parent_exits_0",
     {RAN(0), .oom_kills = 1},
     IS(FAILED, LIMIT, MEMORY),
     ENDED_WITH(0),
     .error = MEMORY_TEXT},
    {"memory_of_a_child_parent_exits_137",
     {RAN(CODE(137)), .oom_kills = 3},
     IS(FAILED, LIMIT, MEMORY),
     ENDED_WITH(137),
     .error = MEMORY_TEXT},
    {"memory_before_exec",
     {.oom_kills = 1, .error = "the program's process died"},
     IS(FAILED, LIMIT, MEMORY),
     .error = MEMORY_TEXT},
    {"memory_over_pids",
     {RAN(CODE(1)), .oom_kills = 1, .pids_denied = 1},
     IS(FAILED, LIMIT, MEMORY),
     ENDED_WITH(1),
     .error = MEMORY_TEXT},
    {"pids_and_failed",
     {RAN(CODE(1)), .pids_denied = 2},
     IS(FAILED, LIMIT, PIDS),
     ENDED_WITH(1),
     .error = PIDS_TEXT},
    {"pids_and_signalled",
     {RAN(SIGABRT), .pids_denied = 2},
     IS(FAILED, LIMIT, PIDS),
     ENDED_BY(SIGABRT),
     .error = PIDS_TEXT},
    {"pids_but_got_over_it",
     {RAN(0), .pids_denied = 2},
     IS(SUCCEEDED, EXIT, NONE),
     ENDED_WITH(0),
     .error = ""},

    /* output */
    {"output",
     {RAN(SIGKILL), .killed = true},
     .over_output = true,
     IS(FAILED, LIMIT, OUTPUT),
     ENDED_BY(9),
     .error = OUTPUT_TEXT},
    {"output_and_ended_by_itself",
     {RAN(0)},
     .over_output = true,
     IS(FAILED, LIMIT, OUTPUT),
     ENDED_WITH(0),
     .error = OUTPUT_TEXT},
    {"output_and_sigpipe",
     {RAN(SIGPIPE)},
     .over_output = true,
     IS(FAILED, LIMIT, OUTPUT),
     ENDED_BY(SIGPIPE),
     .error = OUTPUT_TEXT},
    {"wall_came_before_the_kill_for_output",
     {RAN(SIGKILL), .limit = AL_LIMIT_WALL},
     .over_output = true,
     IS(TIMEOUT, LIMIT, WALL),
     ENDED_BY(9),
     .error = WALL_TEXT},

    /* cancelled */
    {"cancelled",
     {RAN(SIGKILL), .killed = true},
     .cancelled = true,
     IS(KILLED, CANCELLED, NONE),
     ENDED_BY(9),
     .error = ""},
    {"cancelled_before_exec",
     {.killed = true},
     .cancelled = true,
     IS(KILLED, CANCELLED, NONE),
     .error = ""},
    {"cancelled_in_setup_that_failed_too",
     {.killed = true, .error = "x"},
     .cancelled = true,
     IS(KILLED, CANCELLED, NONE),
     .error = ""},
    {"cancelled_too_late",
     {RAN(0)},
     .cancelled = true,
     IS(SUCCEEDED, EXIT, NONE),
     ENDED_WITH(0),
     .error = ""},
    {"cancelled_too_late_and_failed",
     {RAN(CODE(3))},
     .cancelled = true,
     IS(FAILED, EXIT, NONE),
     ENDED_WITH(3),
     .error = ""},
    {"cancelled_after_the_wall_limit",
     {RAN(SIGKILL), .limit = AL_LIMIT_WALL},
     .cancelled = true,
     IS(TIMEOUT, LIMIT, WALL),
     ENDED_BY(9),
     .error = WALL_TEXT},
    {"cancelled_in_mid_flood",
     {RAN(SIGKILL), .killed = true},
     .cancelled = true,
     .over_output = true,
     IS(KILLED, CANCELLED, NONE),
     ENDED_BY(9),
     .error = ""},
    {"cancelled_in_compile",
     {.killed = true},
     &compiler_killed,
     .cancelled = true,
     IS(KILLED, CANCELLED, NONE),
     .error = ""},
    {"cancelled_after_memory",
     {RAN(SIGKILL), .killed = true, .oom_kills = 1},
     .cancelled = true,
     IS(KILLED, CANCELLED, NONE),
     ENDED_BY(9),
     .error = ""},

    /* the compile step */
    {"compiled_and_ran",
     {RAN(0)},
     &compiled_well,
     IS(SUCCEEDED, EXIT, NONE),
     ENDED_WITH(0),
     .error = ""},
    {"compiled_and_failed",
     {RAN(CODE(4))},
     &compiled_well,
     IS(FAILED, EXIT, NONE),
     ENDED_WITH(4),
     .error = ""},
    {"compile_failed",
     {.ran = false},
     &compiled_badly,
     IS(FAILED, COMPILE, NONE),
     .error = "the compile step failed with exit code 2"},
    {"compiler_crashed",
     {.ran = false},
     &compiler_died,
     IS(FAILED, COMPILE, NONE),
     .error = "the compile step failed with exit code 139"},
    {"compile_met_memory",
     {.oom_kills = 1},
     &compiler_killed,
     IS(FAILED, LIMIT, MEMORY),
     .error = MEMORY_TEXT},
    {"compile_met_wall",
     {.limit = AL_LIMIT_WALL},
     &compiler_killed,
     IS(TIMEOUT, LIMIT, WALL),
     .error = WALL_TEXT},
    {"compile_met_cpu",
     {.limit = AL_LIMIT_CPU},
     &compiler_killed,
     IS(TIMEOUT, LIMIT, CPU),
     .error = CPU_TEXT},
    {"compile_met_pids",
     {.pids_denied = 1},
     &compiled_badly,
     IS(FAILED, LIMIT, PIDS),
     .error = PIDS_TEXT},
    {"compile_got_over_pids",
     {RAN(CODE(1)), .pids_denied = 0},
     &compiled_well,
     IS(FAILED, EXIT, NONE),
     ENDED_WITH(1),
     .error = ""},

    /* the backend's own fault; the error's text is the caller's to report */
    {"setup_failed", {.error = "mount"}, IS(FAILED, BACKEND, NONE), .error = "mount"},
    {"program_could_not_be_started_after_compile",
     {.error = "exec"},
     &compiled_well,
     IS(FAILED, BACKEND, NONE),
     .error = "exec"},
    {"never_ran_and_nobody_knows_why",
     {.ran = false},
     IS(FAILED, BACKEND, NONE),
     .error = "the program did not run"},
};

static const struct al_job_spec spec = {
    .quotas = {
        .cpu_ms = 5000, .wall_ms = 10000, .memory_mb = 256, .pids = 64, .output_bytes = 1 << 20}};

static void test_row(void **state)
{
    const struct row *row = *state;
    struct al_result r;
    al_result_init(&r);
    if (row->compiled) {
        al_outcome_compiled(row->compiled, &r);
    }
    al_outcome_exit(&spec, &row->exit, row->cancelled, row->over_output, &r);
    if (r.status != row->status || r.reason != row->reason || r.limit_hit != row->limit ||
        r.exit_kind != row->exit_kind || r.exit_value != row->exit_value)
    {
        fail_msg("status %d/%d limit %d exit %d/%d (%s)", r.status, r.reason, r.limit_hit,
                 r.exit_kind, r.exit_value, r.error);
    }
    assert_string_equal(r.error, row->error);
    assert_true(al_status_is_terminal(r.status));
    al_result_finish(&r);
}

static void test_figures__are_carried_over(void **state)
{
    (void)state;
    const struct al_msg_exit e = {.ran = true,
                                  .duration_us = 11,
                                  .cpu_us = 22,
                                  .memory_peak_bytes = 33,
                                  .pids_peak = 44,
                                  .prestarted = true,
                                  .layers = AL_LAYER_USERNS | AL_LAYER_SECCOMP};
    const struct al_msg_compiled c = {.wait_status = CODE(3), .duration_us = 55};
    struct al_result r;
    al_result_init(&r);
    al_outcome_compiled(&c, &r);
    al_outcome_exit(&spec, &e, false, false, &r);
    assert_int_equal(r.duration_us, 11);
    assert_int_equal(r.cpu_us, 22);
    assert_int_equal(r.memory_peak_bytes, 33);
    assert_int_equal(r.pids_peak, 44);
    assert_true(r.prestarted);
    assert_int_equal(r.isolation, AL_LAYER_USERNS | AL_LAYER_SECCOMP);
    assert_true(r.compile.present);
    assert_int_equal(r.compile.duration_us, 55);
    assert_int_equal(r.compile.exit_code, 3);
    al_result_finish(&r);
}

static void test_texts__name_fractions(void **state)
{
    (void)state;
    static const struct al_job_spec quick = {.quotas = {.cpu_ms = 1, .wall_ms = 2500}};
    const struct al_msg_exit wall = {.limit = AL_LIMIT_WALL}, cpu = {.limit = AL_LIMIT_CPU};
    struct al_result r;
    al_result_init(&r);
    al_outcome_exit(&quick, &wall, false, false, &r);
    assert_string_equal(r.error, "wall_seconds limit of 2.5 s reached");
    al_outcome_exit(&quick, &cpu, false, false, &r);
    assert_string_equal(r.error, "cpu_seconds limit of 0.001 s reached");
    al_result_finish(&r);
}

#define ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures__are_carried_over),
        cmocka_unit_test(test_texts__name_fractions),
    };
    static struct CMUnitTest table[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        table[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    int failed = cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("outcome rows", table, NULL, NULL);
}
