/* What the process' exit code says about a job or a call. Pure. */
#pragma once

#include <grpc/status.h>

#include "proto/airlock/v1/execution.pb-c.h"

#define AL_EXIT_TIMEOUT 124
#define AL_EXIT_AIRLOCK 125 /* Airlock's own errors, usage, blocked and over-quota requests */
#define AL_EXIT_KILLED  137 /* memory, pids and output limits, kills */
#define AL_EXIT_SIGNAL  128 /* + n */

/* The program's exit code, 128 + n after a signal of its own, or one of the above. Never 0 for a
 * job that did not succeed. */
int al_exit_code_of_result(const Airlock__V1__ExecutionResult *result);

/* Of a call that was not OK. */
int al_exit_code_of_status(grpc_status_code code);
