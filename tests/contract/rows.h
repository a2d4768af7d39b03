/*
 * Rows of the contract: a program, what its caller does, and how that ends, the same on every
 * backend that the row holds for.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/runner.h"

/* al_row.runs_on: every backend that runs programs and has these capabilities. */
#define AL_WITH(capabilities) ((uint64_t)(capabilities) << 32)

/* al_row.exit_value: not looked at. */
#define AL_ANY_EXIT (-1)

/* A row's program can say "@NAP@": seconds to sleep that no other run has, by which what is left of
 * it is found. */
struct al_row {
    const char *name;
    uint64_t runs_on; /* enum al_test_backend bits, or AL_WITH() */
    const char *language;
    const char *code;
    void (*change)(struct al_job_spec *spec); /* may be NULL */
    struct al_test_caller caller;
    enum al_status status;
    enum al_reason reason;
    enum al_limit limit;
    enum al_exit_kind exit_kind;
    int exit_value;
    int within_ms;       /* the run must have returned by then; 0: not looked at */
    const char *out;     /* exact stdout; NULL: not looked at */
    const char *err;     /* exact stderr; NULL: not looked at */
    const char *out_has; /* part of stdout */
    const char *err_has; /* part of stderr */
    void (*check)(const struct al_test_run *run); /* may be NULL */
};

#define SUCCEEDS .status = AL_STATUS_SUCCEEDED, .reason = AL_REASON_EXIT, .exit_kind = AL_EXIT_CODE
#define EXITS(n) \
    .status = AL_STATUS_FAILED, .reason = AL_REASON_EXIT, .exit_kind = AL_EXIT_CODE, .exit_value = n
#define DIES_OF(sig)                                                                     \
    .status = AL_STATUS_FAILED, .reason = AL_REASON_SIGNAL, .exit_kind = AL_EXIT_SIGNAL, \
    .exit_value = sig
#define MEETS(s, l) \
    .status = (s), .reason = AL_REASON_LIMIT, .limit = (l), .exit_value = AL_ANY_EXIT
#define IS_KILLED \
    .status = AL_STATUS_KILLED, .reason = AL_REASON_CANCELLED, .exit_value = AL_ANY_EXIT

/* al_row.check of a program with a nap: all of it is gone. */
void al_rows_check_nothing_left(const struct al_test_run *run);

/* Says which suite this is and what the backends claim, for matrix.py. After al_test_start. */
void al_rows_print_claims(const char *suite);

/* Runs the rows on every backend, or those whose BACKEND/ROW contains one of the arguments. Returns
 * main's value. */
int al_rows_main(const char *group, const struct al_row *rows, size_t n, int argc, char **argv);
