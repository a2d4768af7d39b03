/*
 * Jobs for tests: with a spec of their own, on a backend whose run is given by the test.
 */
#pragma once

#include "service/job.h"

struct al_test_job {
    const char *tenant; /* NULL: "t" */
    const char *code;   /* NULL: "" */
    enum al_lane lane;
    size_t ring_bytes;
    size_t keep_bytes;
    struct al_executor *executor; /* NULL: the job is never submitted or cancelled in a queue */
    void (*run)(struct al_task *task, bool removed);
    struct al_backend *backend; /* NULL: one that has nothing */
    void *owner;
    int64_t deadline_ms;
    int64_t wall_ms;
};

struct al_job *al_test_job_create(const struct al_test_job *from);

/* Ends the job with that status, and drops its output. */
void al_test_job_end(struct al_job *job, enum al_status status);
