/*
 * A job's end: its figures, EXIT, and all that it holds.
 */
#include "backends/launcher/job_internal.h"

#include <stdlib.h>

#include "backends/base/cleanup.h"
#include "backends/launcher/reaper.h"

void al_job_release(struct al_job *job)
{
    struct al_jobs *jobs = job->jobs;
    for (size_t i = 0; i < AL_JOB_COUNT; i++) {
        al_job_drop_source(job, (enum al_job_source_index)i);
    }
    int *const fds[] = {&job->bundle_fd,     &job->compile_out,   &job->artifacts_out,
                        &job->assign_fd,     &job->cell.alive_fd, &job->cell.ready_fd,
                        &job->cell.mounts_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        al_close_fd(fds[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        al_close_fd(&job->plan.stdio[i]);
        al_close_fd(&job->callers[i]);
    }
    al_close_fd(&job->plan.start[0]);
    al_close_fd(&job->plan.start[1]);
    jobs->slots[job->slot] = NULL;
    jobs->n_used--;
    if (job->assigned && --jobs->n_running == 0) {
        al_pools_at_rest(jobs);
    }
    free(job);
}

void al_job_read_usage(struct al_job *job)
{
    struct al_cgroup_usage usage;
    job->jobs->cgroups->ops->usage(job->jobs->cgroups, job->name, &usage);
    struct al_msg_exit *e = &job->exit;
    e->cpu_us = usage.cpu_us > job->cpu_before_us ? usage.cpu_us - job->cpu_before_us : 0;
    e->cpu_us = job->jobs->cgroups->n_dirs > 0 ? e->cpu_us : job->reaped_cpu_us;
    e->memory_peak_bytes = usage.memory_peak_bytes;
    e->oom_kills = usage.oom_kills;
    e->pids_denied = usage.pids_denied;
    const uint32_t extra = al_cell_quotas(job->plan.kind, &(struct al_quotas){0}).pids;
    e->pids_peak = usage.pids_peak > extra ? usage.pids_peak - extra : 0;
    e->prestarted = job->plan.runtime != AL_RUNTIME_NONE;
    e->layers = al_cell_layers(job->plan.kind, job->jobs->config, job->jobs->cgroups);
}

static void say_exit(struct al_job *job)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    if (job->assignment.stage != AL_STAGE_COLLECT) {
        al_job_read_usage(job);
    }
    al_job_send(job, data, al_msg_encode_exit(&job->exit, data), NULL, 0);
    job->exit_said = true;
}

void al_job_finish_if_dead(struct al_job *job)
{
    if (job->pid != 0 || job->setter != 0 || !job->init_reaped) {
        return;
    }
    if (job->waiting) {
        al_pools_lost(job->jobs, job);
    }
    if (!job->exit_said) {
        say_exit(job);
    }
    if (!al_reaper_remove(job->jobs->reaper_fd, job->name, job->cell.mounts_fd)) {
        job->jobs->cgroups->ops->remove(job->jobs->cgroups, job->name); /* slower, not later */
    }
    al_job_release(job);
}

void al_job_end(struct al_job *job)
{
    if (job->assigned && job->setter == 0 &&
        job->jobs->cgroups->ops->is_empty(job->jobs->cgroups, job->name))
    {
        say_exit(job);
    }
    al_job_end_cell(job);
}
