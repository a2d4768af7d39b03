/*
 * From a RunRequest to a job that waits or runs: shared by Run and Stream.
 */
#pragma once

#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/arena.h"
#include "service/job.h"
#include "service/service.h"

struct al_admission {
    const Airlock__V1__RunRequest *message;
    const char *tenant_metadata; /* NULL: none */
    enum al_lane lane;
    struct al_terminal_size terminal; /* rows 0: none */
    void (*run)(struct al_task *task, bool removed);
    void *owner;         /* al_job_owner */
    int64_t deadline_ms; /* CLOCK_MONOTONIC; 0: none */
    int64_t linger_ms;   /* 0: the job ends with its call */
};

/* A call's hold on its job. Zeroed: none. */
struct al_admitted {
    struct al_job *job; /* a reference */
    size_t request_bytes;
};

/* Validates the request and makes the job; it is in the table, but not yet submitted. Takes over
 * *arena, in which the message is, and leaves NULL. CQ thread; never blocks. */
int al_admit(struct al_service *service, const struct al_admission *admission,
             struct al_arena **arena, struct al_admitted *ret, struct al_err *err);

/* Hands the job to the executor. On failure `run` is not called and the job is forgotten. */
int al_admit_submit(struct al_service *service, struct al_admitted *admitted, struct al_err *err);

/* What the job's `run` does: takes it through the pipeline, or ends it when it was `removed` from
 * the queue. Executor's thread, or the one that removed it. */
void al_admit_run(struct al_service *service, struct al_job *job, bool removed);

/* The job's run has ended, but its output may still be read: gives back the memory of the request,
 * and what of the output's is not used. */
void al_admit_ended(struct al_service *service, struct al_admitted *admitted);

/* The call has ended, and the job's run with it: output, memory and reference are given back. */
void al_admit_release(struct al_service *service, struct al_admitted *admitted);
