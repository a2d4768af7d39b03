#include "client/exit_code.h"

#include <stdbool.h>

#define CODE_MAX   255
#define SIGNAL_MAX 64

static int code_of_program(const Airlock__V1__ExecutionResult *result)
{
    switch (result->exit_case) {
    case AIRLOCK__V1__EXECUTION_RESULT__EXIT_EXIT_CODE:
        if (result->exit_code > 0 && result->exit_code <= CODE_MAX) {
            return result->exit_code;
        }
        return AL_EXIT_AIRLOCK;
    case AIRLOCK__V1__EXECUTION_RESULT__EXIT_TERM_SIGNAL:
        if (result->term_signal > 0 && result->term_signal <= SIGNAL_MAX) {
            return AL_EXIT_SIGNAL + result->term_signal;
        }
        return AL_EXIT_AIRLOCK;
    default:
        return AL_EXIT_AIRLOCK;
    }
}

static int code_of_compiler(const Airlock__V1__CompileResult *compile)
{
    return compile && compile->exit_code > 0 && compile->exit_code <= CODE_MAX ? compile->exit_code
                                                                               : 1;
}

static int code_of_limit(Airlock__V1__Limit limit)
{
    bool time = limit == AIRLOCK__V1__LIMIT__LIMIT_CPU || limit == AIRLOCK__V1__LIMIT__LIMIT_WALL;
    return time ? AL_EXIT_TIMEOUT : AL_EXIT_KILLED;
}

static int code_of_failure(const Airlock__V1__ExecutionResult *result)
{
    switch (result->reason) {
    case AIRLOCK__V1__REASON__REASON_EXIT:
    case AIRLOCK__V1__REASON__REASON_SIGNAL:
        return code_of_program(result);
    case AIRLOCK__V1__REASON__REASON_LIMIT:
        return code_of_limit(result->limit_hit);
    case AIRLOCK__V1__REASON__REASON_COMPILE:
        return code_of_compiler(result->compile);
    case AIRLOCK__V1__REASON__REASON_CANCELLED:
        return AL_EXIT_KILLED;
    default:
        return AL_EXIT_AIRLOCK;
    }
}

int al_exit_code_of_result(const Airlock__V1__ExecutionResult *result)
{
    switch (result->status) {
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_SUCCEEDED:
        return 0;
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_FAILED:
        return code_of_failure(result);
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_TIMEOUT:
        return AL_EXIT_TIMEOUT;
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED:
        return result->reason == AIRLOCK__V1__REASON__REASON_INTERRUPTED ? AL_EXIT_AIRLOCK
                                                                         : AL_EXIT_KILLED;
    default:
        return AL_EXIT_AIRLOCK;
    }
}

int al_exit_code_of_status(grpc_status_code code)
{
    return code == GRPC_STATUS_DEADLINE_EXCEEDED ? AL_EXIT_TIMEOUT : AL_EXIT_AIRLOCK;
}
