#include "client/exit_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define STATUS(name) AIRLOCK__V1__JOB_STATUS__JOB_STATUS_##name
#define REASON(name) AIRLOCK__V1__REASON__REASON_##name
#define LIMIT(name)  AIRLOCK__V1__LIMIT__LIMIT_##name
#define NONE         AIRLOCK__V1__EXECUTION_RESULT__EXIT__NOT_SET
#define CODE         AIRLOCK__V1__EXECUTION_RESULT__EXIT_EXIT_CODE
#define SIG          AIRLOCK__V1__EXECUTION_RESULT__EXIT_TERM_SIGNAL

struct row {
    const char *name;
    Airlock__V1__JobStatus status;
    Airlock__V1__Reason reason;
    Airlock__V1__Limit limit;
    Airlock__V1__ExecutionResult__ExitCase exit_case;
    int exit;
    int compile; /* -1: no compile step */
    int expected;
};

static const struct row rows[] = {
    {"success", STATUS(SUCCEEDED), REASON(EXIT), LIMIT(UNSPECIFIED), CODE, 0, -1, 0},
    {"exit 7", STATUS(FAILED), REASON(EXIT), LIMIT(UNSPECIFIED), CODE, 7, -1, 7},
    {"exit 255", STATUS(FAILED), REASON(EXIT), LIMIT(UNSPECIFIED), CODE, 255, -1, 255},
    {"failed with exit 0", STATUS(FAILED), REASON(EXIT), LIMIT(UNSPECIFIED), CODE, 0, -1, 125},
    {"exit 256", STATUS(FAILED), REASON(EXIT), LIMIT(UNSPECIFIED), CODE, 256, -1, 125},
    {"failed without an exit", STATUS(FAILED), REASON(EXIT), LIMIT(UNSPECIFIED), NONE, 0, -1, 125},
    {"SIGSEGV", STATUS(FAILED), REASON(SIGNAL), LIMIT(UNSPECIFIED), SIG, 11, -1, 139},
    {"SIGKILL of its own", STATUS(FAILED), REASON(SIGNAL), LIMIT(UNSPECIFIED), SIG, 9, -1, 137},
    {"last signal", STATUS(FAILED), REASON(SIGNAL), LIMIT(UNSPECIFIED), SIG, 64, -1, 192},
    {"no signal", STATUS(FAILED), REASON(SIGNAL), LIMIT(UNSPECIFIED), SIG, 0, -1, 125},
    {"wall", STATUS(TIMEOUT), REASON(LIMIT), LIMIT(WALL), SIG, 9, -1, 124},
    {"cpu", STATUS(TIMEOUT), REASON(LIMIT), LIMIT(CPU), SIG, 24, -1, 124},
    {"memory", STATUS(FAILED), REASON(LIMIT), LIMIT(MEMORY), SIG, 9, -1, 137},
    {"memory, program exits", STATUS(FAILED), REASON(LIMIT), LIMIT(MEMORY), CODE, 1, -1, 137},
    {"pids", STATUS(FAILED), REASON(LIMIT), LIMIT(PIDS), CODE, 1, -1, 137},
    {"output", STATUS(FAILED), REASON(LIMIT), LIMIT(OUTPUT), SIG, 9, -1, 137},
    {"failed for wall", STATUS(FAILED), REASON(LIMIT), LIMIT(WALL), NONE, 0, -1, 124},
    {"killed", STATUS(KILLED), REASON(CANCELLED), LIMIT(UNSPECIFIED), SIG, 9, -1, 137},
    {"restart", STATUS(KILLED), REASON(INTERRUPTED), LIMIT(UNSPECIFIED), NONE, 0, -1, 125},
    {"failed by restart", STATUS(FAILED), REASON(INTERRUPTED), LIMIT(UNSPECIFIED), NONE, 0, -1,
     125},
    {"backend", STATUS(FAILED), REASON(BACKEND), LIMIT(UNSPECIFIED), NONE, 0, -1, 125},
    {"compile", STATUS(FAILED), REASON(COMPILE), LIMIT(UNSPECIFIED), NONE, 0, 2, 2},
    {"compile without a code", STATUS(FAILED), REASON(COMPILE), LIMIT(UNSPECIFIED), NONE, 0, 0, 1},
    {"compile unknown", STATUS(FAILED), REASON(COMPILE), LIMIT(UNSPECIFIED), NONE, 0, -1, 1},
    {"over quota", STATUS(QUOTA_EXCEEDED), REASON(QUOTA), LIMIT(UNSPECIFIED), NONE, 0, -1, 125},
    {"blocked", STATUS(EGRESS_BLOCKED), REASON(EGRESS), LIMIT(UNSPECIFIED), NONE, 0, -1, 125},
    {"not ended", STATUS(RUNNING), REASON(UNSPECIFIED), LIMIT(UNSPECIFIED), NONE, 0, -1, 125},
    {"no status", STATUS(UNSPECIFIED), REASON(UNSPECIFIED), LIMIT(UNSPECIFIED), CODE, 0, -1, 125},
    {"new status", (Airlock__V1__JobStatus)99, REASON(EXIT), LIMIT(UNSPECIFIED), CODE, 0, -1, 125},
};

#define ROWS (sizeof rows / sizeof *rows)

static void test_exit_code_of_result__row(void **state)
{
    const struct row *row = *state;
    Airlock__V1__ExecutionResult result = AIRLOCK__V1__EXECUTION_RESULT__INIT;
    Airlock__V1__CompileResult compile = AIRLOCK__V1__COMPILE_RESULT__INIT;
    result.status = row->status;
    result.reason = row->reason;
    result.limit_hit = row->limit;
    result.exit_case = row->exit_case;
    if (row->exit_case == SIG) {
        result.term_signal = row->exit;
    } else {
        result.exit_code = row->exit;
    }
    if (row->compile >= 0) {
        compile.exit_code = row->compile;
        result.compile = &compile;
    }
    assert_int_equal(al_exit_code_of_result(&result), row->expected);
}

static void test_exit_code_of_status__is_125_except_for_time(void **state)
{
    (void)state;
    assert_int_equal(al_exit_code_of_status(GRPC_STATUS_DEADLINE_EXCEEDED), 124);
    assert_int_equal(al_exit_code_of_status(GRPC_STATUS_UNAVAILABLE), 125);
    assert_int_equal(al_exit_code_of_status(GRPC_STATUS_INVALID_ARGUMENT), 125);
    assert_int_equal(al_exit_code_of_status(GRPC_STATUS_CANCELLED), 125);
}

int main(void)
{
    struct CMUnitTest tests[ROWS + 1] = {
        cmocka_unit_test(test_exit_code_of_status__is_125_except_for_time),
    };
    for (size_t i = 0; i < ROWS; i++) {
        tests[1 + i] = (struct CMUnitTest){.name = rows[i].name,
                                           .test_func = test_exit_code_of_result__row,
                                           .initial_state = (void *)&rows[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
