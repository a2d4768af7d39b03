/*
 * Runs one task a thread, top to bottom. Threads have small stacks, are made when they are needed
 * and kept. Two lanes with a number of slots each: a Stream that lasts for hours takes no slot from
 * Runs. What finds no slot, or no memory, waits in one bounded, tenant-fair queue.
 *
 * Memory: a task starts only when its `memory_bytes` fit into the budget of all. Whoever came first
 * gets it first, over both lanes: a large task is not starved by small ones. One that is larger
 * than the whole budget runs when nothing else does.
 *
 * Thread-safe. The lock inside is never held across a task's callback.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/err.h"
#include "service/task.h"

struct al_executor;

struct al_executor_limits {
    uint32_t slots[AL_LANES];
    uint32_t queue_max;        /* tasks that wait, of all tenants */
    uint32_t queue_tenant_max; /* of one */
    uint64_t memory_bytes;
};

/* NULL when memory is out. */
struct al_executor *al_executor_create(const struct al_executor_limits *limits);

/* Waits for the tasks that run. None may wait any more. NULL is ignored. */
void al_executor_destroy(struct al_executor *executor);

/* Starts the task or queues it. AL_ERR_RESOURCE_EXHAUSTED when the queue is full: `run` is not
 * called then. Never blocks. */
int al_executor_submit(struct al_executor *executor, struct al_task *task, struct al_err *err);

/* If the task still waits: takes it out and calls its `run` with `removed`, here and now. Returns
 * whether it did. */
bool al_executor_remove(struct al_executor *executor, struct al_task *task);

/* Gives back what the task reserved beyond `keep` bytes, if it did. It has run, and needs no more
 * than that from now on. */
void al_executor_return_memory(struct al_executor *executor, struct al_task *task, uint64_t keep);
