#include "service/executor.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "service/fair_queue.h"

/* A job's thread goes through gRPC's write path and a backend's pump; neither needs a quarter of
 * this. */
#define STACK_BYTES (256u << 10)

struct worker {
    struct al_executor *executor;
    pthread_t thread;
    pthread_cond_t wake;
    struct al_task *task;     /* given by whoever took this worker off the idle list */
    struct worker *next_idle; /* last in, first out: the warmest first */
    struct worker *next;      /* of all */
};

struct al_executor {
    struct al_executor_limits limits;
    pthread_attr_t thread_attr;
    pthread_mutex_t lock; /* guards everything below, workers included */
    uint32_t busy[AL_LANES];
    uint64_t memory_used;
    uint64_t last_ticket;
    struct al_fair_queue *queue;
    struct worker *idle;
    struct worker *workers;
    bool stopping;
};

struct al_executor *al_executor_create(const struct al_executor_limits *limits)
{
    struct al_executor *executor = calloc(1, sizeof *executor);
    if (!executor) {
        return NULL;
    }
    executor->limits = *limits;
    executor->queue = al_fair_queue_create(limits->queue_max, limits->queue_tenant_max);
    if (!executor->queue) {
        free(executor);
        return NULL;
    }
    pthread_attr_init(&executor->thread_attr);
    pthread_attr_setstacksize(&executor->thread_attr, STACK_BYTES);
    pthread_mutex_init(&executor->lock, NULL);
    return executor;
}

void al_executor_destroy(struct al_executor *executor)
{
    if (!executor) {
        return;
    }
    pthread_mutex_lock(&executor->lock);
    executor->stopping = true;
    for (struct worker *worker = executor->idle; worker; worker = worker->next_idle) {
        pthread_cond_signal(&worker->wake);
    }
    struct worker *next = executor->workers;
    pthread_mutex_unlock(&executor->lock);
    while (next) {
        struct worker *worker = next;
        pthread_join(worker->thread, NULL);
        next = worker->next;
        pthread_cond_destroy(&worker->wake);
        free(worker);
    }
    al_fair_queue_destroy(executor->queue);
    pthread_mutex_destroy(&executor->lock);
    pthread_attr_destroy(&executor->thread_attr);
    free(executor);
}

/* What a task counts: one that is larger than the whole budget gets all of it. */
static uint64_t charge_of(const struct al_executor *executor, const struct al_task *task)
{
    uint64_t budget = executor->limits.memory_bytes;
    return task->memory_bytes < budget ? task->memory_bytes : budget;
}

static bool fits(const struct al_executor *executor, const struct al_task *task)
{
    return charge_of(executor, task) <= executor->limits.memory_bytes - executor->memory_used;
}

static bool has_slot(const struct al_executor *executor, enum al_lane lane)
{
    return executor->busy[lane] < executor->limits.slots[lane];
}

/* The task that may start now, or NULL. The oldest of those that have a slot decides: while it does
 * not fit, nobody passes it. `candidate` is one more that is not in the queue, or NULL. */
static struct al_task *next_startable(const struct al_executor *executor, struct al_task *candidate)
{
    struct al_task *oldest = NULL;
    for (enum al_lane lane = 0; lane < AL_LANES; lane++) {
        struct al_task *task = NULL;
        if (has_slot(executor, lane)) {
            task = al_fair_queue_peek(executor->queue, lane);
        }
        if (task && (!oldest || task->ticket < oldest->ticket)) {
            oldest = task;
        }
    }
    if (!oldest && candidate && has_slot(executor, candidate->lane)) {
        oldest = candidate;
    }
    return oldest && fits(executor, oldest) ? oldest : NULL;
}

static void take(struct al_executor *executor, struct al_task *task)
{
    if (task->state == AL_TASK_QUEUED) {
        al_fair_queue_remove(executor->queue, task);
    }
    task->state = AL_TASK_TAKEN;
    executor->busy[task->lane]++;
    task->charged = charge_of(executor, task);
    executor->memory_used += task->charged;
}

/* Sleeps until it has a task; NULL: the executor stops. Called and returns with the lock held. */
static struct al_task *wait_for_task(struct worker *worker)
{
    struct al_executor *executor = worker->executor;
    struct al_task *task = worker->task ? NULL : next_startable(executor, NULL);
    if (task) {
        take(executor, task);
        return task;
    }
    if (!worker->task) {
        worker->next_idle = executor->idle;
        executor->idle = worker;
    }
    while (!worker->task && !executor->stopping) {
        pthread_cond_wait(&worker->wake, &executor->lock);
    }
    task = worker->task;
    worker->task = NULL;
    return task;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct al_executor *executor = worker->executor;
    struct al_task *task;
    pthread_mutex_lock(&executor->lock);
    while ((task = wait_for_task(worker))) {
        enum al_lane lane = task->lane;
        pthread_mutex_unlock(&executor->lock);
        task->run(task, false);
        pthread_mutex_lock(&executor->lock);
        executor->busy[lane]--;
    }
    pthread_mutex_unlock(&executor->lock);
    return NULL;
}

/* A worker off the idle list, or a new one; NULL when no thread can be had. */
static struct worker *get_worker(struct al_executor *executor)
{
    struct worker *worker = executor->idle;
    if (worker) {
        executor->idle = worker->next_idle;
        return worker;
    }
    worker = calloc(1, sizeof *worker);
    if (!worker) {
        return NULL;
    }
    worker->executor = executor;
    pthread_cond_init(&worker->wake, NULL);
    if (pthread_create(&worker->thread, &executor->thread_attr, work, worker) != 0) {
        pthread_cond_destroy(&worker->wake);
        free(worker);
        return NULL;
    }
    worker->next = executor->workers;
    executor->workers = worker;
    return worker;
}

/* Hands everything that may start to a worker. Without a thread for it, it stays queued for the
 * next worker that gets free. */
static void dispatch(struct al_executor *executor)
{
    struct al_task *task;
    while ((task = next_startable(executor, NULL))) {
        struct worker *worker = get_worker(executor);
        if (!worker) {
            return;
        }
        take(executor, task);
        worker->task = task;
        pthread_cond_signal(&worker->wake);
    }
}

static int enqueue(struct al_executor *executor, struct al_task *task, struct al_err *err)
{
    if (!executor->workers) {
        return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED, "the server cannot start a thread");
    }
    switch (al_fair_queue_push(executor->queue, task)) {
    case 0:
        task->state = AL_TASK_QUEUED;
        return 0;
    case -EDQUOT:
        return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED,
                          "too many jobs of tenant %s are waiting (%u)", task->tenant,
                          executor->limits.queue_tenant_max);
    case -EAGAIN:
        return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED, "too many jobs are waiting (%u)",
                          executor->limits.queue_max);
    default:
        return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED, "the server is out of memory");
    }
}

int al_executor_submit(struct al_executor *executor, struct al_task *task, struct al_err *err)
{
    int r = 0;
    struct worker *worker = NULL;
    pthread_mutex_lock(&executor->lock);
    assert(task->state == AL_TASK_NEW);
    task->ticket = ++executor->last_ticket;
    if (next_startable(executor, task) == task && (worker = get_worker(executor))) {
        take(executor, task);
        worker->task = task;
    } else {
        r = enqueue(executor, task, err);
    }
    pthread_mutex_unlock(&executor->lock);
    if (worker) {
        pthread_cond_signal(&worker->wake);
    }
    return r;
}

bool al_executor_remove(struct al_executor *executor, struct al_task *task)
{
    pthread_mutex_lock(&executor->lock);
    bool removed = task->state == AL_TASK_QUEUED;
    if (removed) {
        al_fair_queue_remove(executor->queue, task);
        task->state = AL_TASK_TAKEN;
        dispatch(executor); /* another may have waited behind this one */
    }
    pthread_mutex_unlock(&executor->lock);
    if (removed) {
        task->run(task, true);
    }
    return removed;
}

void al_executor_return_memory(struct al_executor *executor, struct al_task *task, uint64_t keep)
{
    pthread_mutex_lock(&executor->lock);
    if (task->charged > keep) {
        executor->memory_used -= task->charged - keep;
        task->charged = keep;
        dispatch(executor);
    }
    pthread_mutex_unlock(&executor->lock);
}
