/* What a result amounts to, in one line for people. */
#pragma once

#include "client/output.h"
#include "proto/airlock/v1/execution.pb-c.h"

/* "succeeded", "failed" and so on. */
const char *al_status_word(Airlock__V1__JobStatus status);

/* "memory", "cpu" and so on; NULL for no limit. */
const char *al_limit_word(Airlock__V1__Limit limit);

/* Adds "succeeded, exit 0, 23 ms, cpu 0.02 s, memory 9.1 MiB, job 0123456789abcdef", with the limit
 * and the error text where there are any; no newline. */
void al_summary_add(struct al_text *text, const Airlock__V1__ExecutionResult *result, bool colours);

/* The lines after a run on standard error: the compiler's output when it failed; the summary when
 * `wanted`, or when Airlock and not the program failed. `mid_line`: it begins a new line. */
void al_summary_print(const Airlock__V1__ExecutionResult *result, bool wanted, bool mid_line);
