/*
 * What the executor runs. Embedded in its owner, who fills in the upper half before
 * al_executor_submit and keeps it alive until `run` has been called or the submission has failed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum al_lane {
    AL_LANE_RUNS,
    AL_LANE_STREAMS,
    AL_LANE_QUERIES, /* what reads records from disk, and never waits for a program */
};
#define AL_LANES 3

enum al_task_state {
    AL_TASK_NEW,
    AL_TASK_QUEUED,
    AL_TASK_TAKEN, /* given to a thread, or removed: `run` was or will be called, once */
};

struct al_tenant_queue;

struct al_task {
    /* Called once, without locks: on a thread of the executor's, or with `removed` on the thread
     * that took the task out of the queue; then it must not block. The task may be gone when it
     * returns. */
    void (*run)(struct al_task *task, bool removed);
    enum al_lane lane;
    const char *tenant;
    size_t memory_bytes; /* reserved when it starts, see al_executor_return_memory */

    /* The executor's, under its lock. */
    enum al_task_state state;
    uint64_t ticket;  /* order of submission over everything */
    uint64_t charged; /* memory reserved at the moment */
    struct al_tenant_queue *queue;
    struct al_task *prev;
    struct al_task *next;
};
