/*
 * The bounded queue in front of the executor: round-robin over the tenants that wait, first in
 * first out within one. Each lane has its own turn order; the bounds hold over both lanes.
 *
 * Not thread-safe: guarded by the executor's lock. The tasks are borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/task.h"

struct al_fair_queue;

/* At most `max` tasks wait, and at most `tenant_max` of one tenant. NULL when memory is out. */
struct al_fair_queue *al_fair_queue_create(uint32_t max, uint32_t tenant_max);

/* Must be empty. NULL is ignored. */
void al_fair_queue_destroy(struct al_fair_queue *queue);

/* -EAGAIN: the queue is full; -EDQUOT: the tenant's share is; -ENOMEM. */
int al_fair_queue_push(struct al_fair_queue *queue, struct al_task *task);

/* Whose turn it is in the lane, without removing it. NULL: nobody waits. */
struct al_task *al_fair_queue_peek(const struct al_fair_queue *queue, enum al_lane lane);

/* Removes a task that is in the queue. If it was its tenant's turn, the next tenant is up. */
void al_fair_queue_remove(struct al_fair_queue *queue, struct al_task *task);

size_t al_fair_queue_length(const struct al_fair_queue *queue);
