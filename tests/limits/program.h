/*
 * The program that the jobs of the limit suite run (worker.c), and what it says of itself.
 */
#pragma once

#include "tests/support/runner.h"

#define WORKER_STEPS_MAX 6

/* What it says it has done; what it did not say is 0. */
struct worker_said {
    int64_t memory_kib, cpu_us, wall_us;
};

/* Reads the program from the test's runfiles; ends the process when it is not there. */
void worker_init(void);

/* A bash job with the program as the file ./worker. `code` NULL: runs it with the steps as its
 * arguments (up to WORKER_STEPS_MAX, ended by NULL; borrowed). */
struct al_job_spec worker_spec(const struct al_backend *backend, const char *code,
                               const char *const *steps);

/* From the last whole line of the job's output; false when that is something else. */
bool worker_read(const struct al_test_run *run, struct worker_said *ret);
