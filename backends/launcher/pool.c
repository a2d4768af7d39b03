/*
 * Theory of operation. Making a cell (namespaces, mounts, cgroups) takes a few milliseconds that a
 * caller would wait for, starting an interpreter ten more. So cells are made ahead, one at a time
 * and by a timer, so that a SPAWN never waits for more than one of them. The timer runs at once
 * when few are left, else when the last job has ended: a job that runs has the machine to itself
 * then. They are made with the limits that the latest job had, since most jobs ask for the same as
 * the one before; a job that does not, changes them. Without a waiting cell the job gets a new one:
 * the same code, only later. When a cell could not be made, or dies waiting, its pool stays as it
 * is until the next job, which then meets the cause itself.
 */
#include "backends/launcher/pool.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "backends/launcher/job_internal.h"

#define BARE_BASE      4 /* of a tool's jails: from its first job on */
#define STARTED_BASE   2
#define START_MB       128 /* what an interpreter or a tool starts in, whatever the jobs ask for */
#define START_PIDS     32
#define JAIL_LEAST_MB  32
#define REFILL_NS      1000000 /* after a job was started: its own first steps go before */
#define REFILL_CALM_NS 10000000
#define REVIEW_NS      10000000000

static void arm(const struct al_pools *pools, int64_t in_ns)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = in_ns / 1000000000, .tv_nsec = in_ns % 1000000000}};
    timerfd_settime(pools->timer.fd, 0, &when, NULL);
}

static void take_out(struct al_pool *pool, uint32_t i)
{
    pool->n--;
    memmove(&pool->waiting[i], &pool->waiting[i + 1], (pool->n - i) * sizeof pool->waiting[0]);
    pool->idle = pool->n < pool->idle ? pool->n : pool->idle;
}

static void end_waiting(struct al_pool *pool, uint32_t i)
{
    struct al_job *job = pool->waiting[i];
    take_out(pool, i);
    job->waiting = false;
    al_job_end_cell(job);
}

/* --- filling --- */

/* The emptiest one that is not full. */
static struct al_pool *find_hungriest(struct al_pools *pools)
{
    struct al_pool *found = NULL;
    for (uint32_t i = 0; i < pools->n; i++) {
        struct al_pool *pool = &pools->pool[i];
        if (!pool->broken && pool->n < pool->want &&
            (!found || (uint64_t)pool->n * found->want < (uint64_t)found->n * pool->want))
        {
            found = pool;
        }
    }
    return found;
}

static void review(struct al_pools *pools)
{
    pools->review_ns = 0;
    for (uint32_t i = 0; i < pools->n; i++) {
        struct al_pool *pool = &pools->pool[i];
        uint32_t want = pool->want - (pool->idle + 1) / 2;
        pool->want = want > pool->base ? want : pool->base;
        while (pool->n > pool->want) {
            end_waiting(pool, 0);
        }
        pool->idle = pool->n;
        if (pool->want > pool->base) {
            pools->review_ns = al_now_ns() + REVIEW_NS;
        }
    }
}

static void break_off(struct al_pool *pool)
{
    pool->broken = true;
    pool->want = pool->base;
}

static void make_one(struct al_jobs *jobs, struct al_pool *pool)
{
    struct al_err err = {0};
    struct al_job *job = al_job_create(jobs, pool->kind, &pool->usual, pool->runtime, &err);
    if (job) {
        job->waiting = true;
        pool->waiting[pool->n++] = job;
    } else {
        break_off(pool); /* the next job meets the same, and tells its caller */
    }
}

static bool are_low(const struct al_pools *pools)
{
    for (uint32_t i = 0; i < pools->n; i++) {
        if (!pools->pool[i].broken && pools->pool[i].n * 2 < pools->pool[i].want) {
            return true;
        }
    }
    return false;
}

static void on_timer(struct al_source *source)
{
    struct al_jobs *jobs =
        (struct al_jobs *)((char *)source - offsetof(struct al_jobs, pools.timer));
    struct al_pools *pools = &jobs->pools;
    uint64_t count;
    if (read(source->fd, &count, sizeof count) != (ssize_t)sizeof count) {
        return;
    }
    if (pools->review_ns != 0 && al_now_ns() >= pools->review_ns) {
        review(pools);
    }
    struct al_pool *pool = find_hungriest(pools);
    bool later = jobs->n_running > 0 && !are_low(pools);
    if (pool && !later) {
        make_one(jobs, pool);
    }
    if (!later && find_hungriest(pools)) {
        arm(pools, REFILL_NS);
    } else if (pools->review_ns != 0) {
        arm(pools, REVIEW_NS);
    }
}

void al_pools_at_rest(struct al_jobs *jobs)
{
    if (jobs->pools.n > 0) {
        arm(&jobs->pools, REFILL_NS);
    }
}

void al_pools_lost(struct al_jobs *jobs, const struct al_job *job)
{
    for (uint32_t p = 0; p < jobs->pools.n; p++) {
        struct al_pool *pool = &jobs->pools.pool[p];
        for (uint32_t i = 0; i < pool->n; i++) {
            if (pool->waiting[i] == job) {
                take_out(pool, i);
                break_off(pool);
                al_log_warn("a cell that was made ahead died: %s", job->exit.error);
                return;
            }
        }
    }
}

/* --- taking --- */

static bool has_disk(const struct al_job *job, const struct al_quotas *quotas)
{
    return job->plan.quotas.disk_mb == quotas->disk_mb;
}

/* Limits can be changed only when the cell's process does not set them any more, and an interpreter
 * can be told its program only when there is somebody to do it. A jail's disk cannot be changed. */
static bool is_ready(const struct al_pool *pool, struct al_job *job, const struct al_quotas *quotas)
{
    if (!al_cell_is_jail(pool->kind)) {
        return job->settled || (pool->runtime == AL_RUNTIME_NONE && al_job_fits(job, quotas));
    }
    al_job_hear_warden(job);
    return job->settled && has_disk(job, quotas);
}

/* More shall wait, since there was none; where there were some with another disk, others. */
static void want_more(struct al_pools *pools, struct al_pool *pool, const struct al_quotas *quotas)
{
    pool->broken = false;
    if (al_cell_is_jail(pool->kind) && pool->n > 0 && !has_disk(pool->waiting[0], quotas)) {
        end_waiting(pool, 0);
    } else if (pool->base == 0) {
        pool->base = pool->want = BARE_BASE < pool->max ? BARE_BASE : pool->max;
    } else {
        pool->want = pool->want * 2 < pool->max ? pool->want * 2 : pool->max;
    }
    pools->review_ns = pools->review_ns ? pools->review_ns : al_now_ns() + REVIEW_NS;
}

static struct al_job *take_from(struct al_pools *pools, struct al_pool *pool,
                                const struct al_quotas *quotas)
{
    for (uint32_t i = 0; i < pool->n; i++) {
        struct al_job *job = pool->waiting[i];
        if (is_ready(pool, job, quotas) && al_job_can_start(job)) {
            take_out(pool, i);
            job->waiting = false;
            pool->broken = false;
            return job;
        }
    }
    want_more(pools, pool, quotas);
    return NULL;
}

/* What a cell is to be made with for jobs like this one: enough for itself and its interpreter to
 * start in, since the job's own limits come with the job. */
static struct al_quotas usual_for(const struct al_quotas *quotas)
{
    struct al_quotas usual = *quotas;
    usual.memory_mb = usual.memory_mb > START_MB ? usual.memory_mb : START_MB;
    usual.pids = usual.pids > START_PIDS ? usual.pids : START_PIDS;
    return usual;
}

static bool may_use(const struct al_jobs *jobs, const struct al_pool *pool,
                    const struct al_msg_spawn *spawn, int32_t runtime)
{
    const bool may_prestart = spawn->may_prestart & 1u << jobs->config->runtimes[runtime].prestart;
    if (al_cell_is_jail(pool->kind) && spawn->quotas.memory_mb < JAIL_LEAST_MB) {
        return false; /* its tool may have used more than that */
    }
    return pool->runtime == AL_RUNTIME_NONE || (pool->runtime == runtime && may_prestart);
}

struct al_job *al_pools_take(struct al_jobs *jobs, const struct al_msg_spawn *spawn,
                             int32_t runtime)
{
    struct al_pools *pools = &jobs->pools;
    struct al_job *job = NULL;
    bool may_wait = false;                  /* cells of its kind */
    for (uint32_t i = pools->n; i-- > 0;) { /* the bare ones come last */
        struct al_pool *pool = &pools->pool[i];
        if (pool->kind != spawn->kind) {
            continue;
        }
        may_wait = true;
        pool->usual = usual_for(&spawn->quotas);
        if (!job && may_use(jobs, pool, spawn, runtime)) {
            job = take_from(pools, pool, &spawn->quotas);
        }
    }
    if (may_wait) {
        arm(pools, are_low(pools) ? REFILL_NS : REFILL_CALM_NS);
    }
    return job;
}

static void add_pool(struct al_pools *pools, enum al_cell_kind kind, int32_t runtime, uint32_t base,
                     uint32_t max)
{
    const struct al_quotas usual = {.memory_mb = 256, .pids = 64, .disk_mb = 64};
    base = base < max ? base : max;
    if (max > 0) {
        pools->pool[pools->n++] = (struct al_pool){.kind = kind,
                                                   .usual = usual,
                                                   .runtime = runtime,
                                                   .base = base,
                                                   .max = max,
                                                   .want = base};
    }
}

/* A tool is configured more often than it is used, so that its cells wait for a first job. */
static void add_pools(struct al_jobs *jobs)
{
    static const enum al_cell_kind jails[] = {AL_CELL_BUBBLEWRAP, AL_CELL_FIREJAIL};
    const struct al_cells_config *config = jobs->config;
    for (size_t i = 0; i < sizeof jails / sizeof jails[0]; i++) {
        if (jobs->available[jails[i]]) {
            add_pool(&jobs->pools, jails[i], AL_RUNTIME_NONE, 0, config->prepared);
        }
    }
    if (!jobs->available[AL_CELL_NATIVE]) {
        return;
    }
    add_pool(&jobs->pools, AL_CELL_NATIVE, AL_RUNTIME_NONE, BARE_BASE, config->prepared);
    for (size_t i = 0; i < config->n_runtimes; i++) {
        if (config->runtimes[i].prestart != AL_PRESTART_NONE) {
            add_pool(&jobs->pools, AL_CELL_NATIVE, (int32_t)i, STARTED_BASE, config->prestarted);
        }
    }
}

int al_pools_init(struct al_jobs *jobs)
{
    struct al_pools *pools = &jobs->pools;
    pools->timer = (struct al_source){
        .fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), .fn = on_timer};
    if (pools->timer.fd < 0 || al_loop_add(jobs->loop, &pools->timer) < 0) {
        return -errno;
    }
    add_pools(jobs);
    if (pools->n > 0) {
        arm(pools, REFILL_NS);
    }
    return 0;
}
