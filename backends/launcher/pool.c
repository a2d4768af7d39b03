/*
 * Theory of operation. Making a cell (namespaces, mounts, cgroups) takes a few milliseconds that a
 * caller would wait for. So some native cells are made ahead: each is used once, by whatever job
 * comes next, and a timer makes new ones, one at a time, so that a SPAWN never waits for more than
 * one. They are made with the limits that the latest job had, since most jobs ask for the same as
 * the one before; a job that does not, changes them. Without a waiting cell the job gets a new one:
 * the same code, only later. A cell that dies waiting is not replaced before the next job, which
 * then meets the cause itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backends/base/log.h"
#include "backends/launcher/job_internal.h"

#define REFILL_NS 1000000 /* after a job was started: its own first steps go before */

static struct al_job *take_slot(struct al_jobs *jobs, struct al_err *err)
{
    if (jobs->n_used == jobs->config->jobs_max) {
        al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED, "[cells] jobs_max of %u cells are in use",
                   jobs->config->jobs_max);
        return NULL;
    }
    struct al_job *job = calloc(1, sizeof *job);
    if (!job) {
        al_err_errno(err, ENOMEM, "job");
        return NULL;
    }
    /* Round robin: a pair of uids rests as long as it can before it is used again. */
    while (jobs->slots[jobs->next_slot % jobs->config->jobs_max]) {
        jobs->next_slot++;
    }
    job->slot = jobs->next_slot++ % jobs->config->jobs_max;
    job->jobs = jobs;
    jobs->slots[job->slot] = job;
    jobs->n_used++;
    return job;
}

static struct al_job *make_cell(struct al_jobs *jobs, enum al_cell_kind kind,
                                const struct al_quotas *quotas, struct al_err *err)
{
    struct al_job *job = take_slot(jobs, err);
    if (!job) {
        return NULL;
    }
    al_job_init_sources(job);
    job->assign_fd = job->bundle_fd = job->compile_out = -1;
    for (size_t i = 0; i < 3; i++) {
        job->stdio[i] = job->callers[i] = -1;
    }
    job->cell = (struct al_cell){.init_pidfd = -1, .mounts_fd = -1, .alive_fd = -1, .ready_fd = -1};
    job->init_reaped = true; /* there is none yet */
    snprintf(job->name, sizeof job->name, "%016llx", (unsigned long long)jobs->next_name++);
    uid_t uid = jobs->config->uid_base + 2 * job->slot;
    job->plan = (struct al_cell_plan){.kind = kind,
                                      .config = jobs->config,
                                      .cgroups = jobs->cgroups,
                                      .filter = &jobs->filter,
                                      .name = job->name,
                                      .init_uid = uid,
                                      .program_uid = uid + 1,
                                      .quotas = *quotas};
    if (al_job_make_cell(job, err) == 0) {
        return job;
    }
    if (job->init_reaped) {
        al_job_release(job);
    } else {
        al_job_end_cell(job); /* init's end releases it */
    }
    return NULL;
}

static void arm_refill(const struct al_jobs *jobs)
{
    struct itimerspec when = {.it_value.tv_nsec = REFILL_NS};
    timerfd_settime(jobs->refill.fd, 0, &when, NULL);
}

static void on_refill(struct al_source *source)
{
    struct al_jobs *jobs = (struct al_jobs *)((char *)source - offsetof(struct al_jobs, refill));
    struct al_err err = {0};
    uint64_t count;
    if (read(source->fd, &count, sizeof count) != (ssize_t)sizeof count ||
        jobs->n_pool >= jobs->config->prepared)
    {
        return;
    }
    struct al_job *job = make_cell(jobs, AL_CELL_NATIVE, &jobs->usual, &err);
    if (!job) {
        return; /* the next job meets the same and tells its caller */
    }
    job->waiting = true;
    jobs->pool[jobs->n_pool++] = job;
    if (jobs->n_pool < jobs->config->prepared) {
        arm_refill(jobs);
    }
}

static void take_out(struct al_jobs *jobs, uint32_t i)
{
    jobs->n_pool--;
    memmove(&jobs->pool[i], &jobs->pool[i + 1], (jobs->n_pool - i) * sizeof(struct al_job *));
}

void al_pool_lost(struct al_jobs *jobs, const struct al_job *job)
{
    for (uint32_t i = 0; i < jobs->n_pool; i++) {
        if (jobs->pool[i] == job) {
            take_out(jobs, i);
            al_log_warn("a cell that was made ahead died: %s", job->exit.error);
            return;
        }
    }
}

/* One with other limits can be changed only when its process does not set them any more. */
static struct al_job *find_waiting(struct al_jobs *jobs, const struct al_quotas *quotas)
{
    for (uint32_t i = 0; i < jobs->n_pool; i++) {
        struct al_job *job = jobs->pool[i];
        if (al_job_fits(job, quotas) || job->settled) {
            take_out(jobs, i);
            job->waiting = false;
            return job;
        }
    }
    return NULL;
}

struct al_job *al_pool_get(struct al_jobs *jobs, enum al_cell_kind kind,
                           const struct al_quotas *quotas, struct al_err *err)
{
    struct al_job *job = NULL;
    if (kind == AL_CELL_NATIVE) {
        jobs->usual = *quotas;
        job = find_waiting(jobs, quotas);
        if (jobs->config->prepared > 0) {
            arm_refill(jobs);
        }
    }
    return job ? job : make_cell(jobs, kind, quotas, err);
}

int al_pool_init(struct al_jobs *jobs)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    jobs->refill = (struct al_source){.fd = fd, .fn = on_refill};
    if (fd < 0 || al_loop_add(jobs->loop, &jobs->refill) < 0) {
        return -errno;
    }
    if (jobs->available[AL_CELL_NATIVE] && jobs->config->prepared > 0) {
        arm_refill(jobs);
    }
    return 0;
}
