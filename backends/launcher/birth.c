/*
 * A job's cell and processes come to be: its slot and pair of uids, its pipes, init and the process
 * that waits for an assignment. In a cell with a pre-started interpreter there are two: the
 * interpreter, which is the program later, and once that has been exec'd the setter, which takes
 * the assignment, fits the sandbox and the interpreter to it, lets the interpreter go on, and ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/job_internal.h"

/* Of stdout: most of what a program prints goes there. Less is more wakes; it works too. */
#define PIPE_BYTES       (512 << 10)
#define SMALL_PIPE_BYTES (256 << 10)

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

/* --- pipes --- */

int al_job_make_pipe(const struct al_job *job, bool program_reads, int *ret_callers,
                     int *ret_programs, struct al_err *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return al_err_errno(err, errno, "pipe");
    }
    *ret_callers = fds[program_reads];
    *ret_programs = fds[!program_reads];
    uid_t uid = job->plan.program_uid;
    if (fchown(fds[0], uid, uid) < 0 || al_io_set_nonblock(*ret_callers, true) < 0) {
        return al_err_errno(err, errno, "pipe's owner");
    }
    return 0;
}

static int make_pipes(struct al_job *job, struct al_err *err)
{
    struct al_cell_plan *plan = &job->plan;
    if (plan->runtime != AL_RUNTIME_NONE && pipe2(plan->start, O_CLOEXEC) < 0) {
        return al_err_errno(err, errno, "pipe");
    }
    int rc = 0;
    for (int i = 0; i < 3 && rc == 0; i++) {
        rc = al_job_make_pipe(job, i == 0, &job->callers[i], &plan->stdio[i], err);
    }
    if (rc == 0 && fcntl(job->callers[1], F_SETPIPE_SZ, PIPE_BYTES) < 0) {
        fcntl(job->callers[1], F_SETPIPE_SZ, SMALL_PIPE_BYTES);
    }
    return rc;
}

static void close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        al_close_fd(&fds[i]);
    }
}

int al_job_use_terminal(struct al_job *job, struct al_err *err)
{
    int socks[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0) {
        return al_err_errno(err, errno, "socketpair");
    }
    close_all(job->plan.stdio, 3);
    al_close_fd(&job->callers[0]);
    job->plan.stdio[0] = socks[0];
    job->callers[0] = socks[1];
    int rc = al_io_set_nonblock(socks[1], true);
    return rc < 0 ? al_err_errno(err, -rc, "the terminal's socket") : 0;
}

/* --- processes --- */

/* Clones a process that waits for its assignment, and before it the cell, if it is the first. */
static int clone_process(struct al_job *job, enum al_role role, int status_fd, int assign_fd,
                         struct al_process *ret, struct al_err *err)
{
    if (al_role_is_first(role)) {
        int rc = al_cell_create(&job->plan, status_fd, &job->cell, err);
        if (rc < 0) {
            return rc;
        }
        job->init_reaped = false;
        al_job_watch_init(job);
    }
    return al_cell_start(&job->plan, &job->cell, role, assign_fd, status_fd, ret, err);
}

static int start_process(struct al_job *job, enum al_role role, struct al_err *err)
{
    int status[2] = {-1, -1}, assign[2] = {-1, -1};
    struct al_process process;
    int rc = 0;
    if (pipe2(status, O_CLOEXEC | O_NONBLOCK) < 0 ||
        (role != AL_ROLE_INTERPRETER &&
         socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, assign) < 0))
    {
        rc = al_err_errno(err, errno, "pipe");
    }
    job->started = false;
    job->mark = (struct al_mark){0};
    rc = rc < 0 ? rc : clone_process(job, role, status[1], assign[1], &process, err);
    al_close_fd(&status[1]);
    al_close_fd(&assign[1]);
    if (rc < 0) {
        al_close_fd(&status[0]);
        al_close_fd(&assign[0]);
        return rc;
    }
    job->assign_fd = assign[0];
    al_job_watch_process(job, role, &process, status[0]);
    rc = al_cell_is_jail(job->plan.kind) ? al_job_watch_link(job, al_steal_fd(&job->assign_fd), err)
                                         : 0;
    if (role == AL_ROLE_INTERPRETER) {
        close_all(job->plan.stdio, 3);
        al_close_fd(&job->plan.start[0]);
    } else {
        al_close_fd(&job->cell.ready_fd);
        al_close_fd(&job->plan.start[1]); /* the setter's alone: its end must be seen */
    }
    return rc;
}

int al_job_start_setter(struct al_job *job, struct al_err *err)
{
    job->has_setter = true;
    job->plan.interpreter = job->pid;
    return start_process(job, AL_ROLE_SETTER, err);
}

int al_job_start_next(struct al_job *job, enum al_stage stage, struct al_err *err)
{
    job->assignment.stage = stage;
    job->assignment.first = false;
    job->assignment.resized = false;
    if (al_cell_is_jail(job->plan.kind)) { /* its warden starts it */
        job->started = false;
        job->mark = (struct al_mark){0};
        return al_job_start_stage(job, err);
    }
    int rc = start_process(job, AL_ROLE_NEXT, err);
    return rc < 0 ? rc : al_job_start_stage(job, err);
}

static void fill_in(struct al_job *job, enum al_cell_kind kind, const struct al_quotas *quotas,
                    int32_t runtime)
{
    struct al_jobs *jobs = job->jobs;
    uid_t uid = jobs->config->uid_base;
    uid += al_barrier_is_on(AL_BARRIER_OWN_UIDS) ? 2 * job->slot : 0;
    bool rootless = jobs->config->rootless; /* then 0 is the one uid that there is */
    al_job_init_sources(job);
    job->assign_fd = job->bundle_fd = job->compile_out = job->artifacts_out = -1;
    job->cell = (struct al_cell){.init_pidfd = -1, .mounts_fd = -1, .alive_fd = -1, .ready_fd = -1};
    job->init_reaped = true; /* there is none yet */
    snprintf(job->name, sizeof job->name, "%016llx", (unsigned long long)jobs->next_name++);
    job->plan = (struct al_cell_plan){
        .kind = kind,
        .config = jobs->config,
        .cgroups = jobs->cgroups,
        .filter = &jobs->filter,
        .jail = al_cell_is_jail(kind) ? &jobs->jails[al_jail_tool_of(kind)] : NULL,
        .name = job->name,
        .init_uid = rootless ? 0 : uid,
        .program_uid = rootless ? 0 : uid + 1,
        .quotas = al_cell_quotas(kind, quotas),
        .runtime = runtime,
        .start = {-1, -1},
        .stdio = {-1, -1, -1}};
    for (size_t i = 0; i < 3; i++) {
        job->callers[i] = -1;
    }
}

struct al_job *al_job_create(struct al_jobs *jobs, enum al_cell_kind kind,
                             const struct al_quotas *quotas, int32_t runtime, struct al_err *err)
{
    struct al_job *job = take_slot(jobs, err);
    if (!job) {
        return NULL;
    }
    fill_in(job, kind, quotas, runtime);
    enum al_role role = runtime == AL_RUNTIME_NONE ? AL_ROLE_FIRST : AL_ROLE_INTERPRETER;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int rc = timer < 0 || al_job_add_source(job, AL_JOB_TIMER, timer, al_job_on_timer) < 0
                 ? al_err_errno(err, errno, "timerfd")
                 : make_pipes(job, err);
    rc = rc < 0 ? rc : start_process(job, role, err);
    if (rc == 0) {
        return job;
    }
    if (job->init_reaped) {
        al_job_release(job);
    } else {
        al_job_end_cell(job); /* init's end releases it */
    }
    return NULL;
}

/* --- the assignment --- */

bool al_job_fits(const struct al_job *job, const struct al_quotas *quotas)
{
    const struct al_quotas *made = &job->plan.quotas;
    const struct al_quotas asked = al_cell_quotas(job->plan.kind, quotas);
    return asked.memory_mb == made->memory_mb && asked.pids == made->pids &&
           asked.disk_mb == made->disk_mb;
}

/* The cell may have been made with other limits than its job's. */
static int fit_cell(struct al_job *job, struct al_err *err)
{
    const struct al_quotas *quotas = &job->assignment.spawn.quotas;
    const struct al_quotas allowed = al_cell_quotas(job->plan.kind, quotas);
    job->assignment.resized = allowed.disk_mb != job->plan.quotas.disk_mb;
    return al_job_fits(job, quotas)
               ? 0
               : job->jobs->cgroups->ops->limit(job->jobs->cgroups, job->name, &allowed, err);
}

int al_job_start_stage(struct al_job *job, struct al_err *err)
{
    bool compile = job->assignment.stage == AL_STAGE_COMPILE;
    bool collect = job->assignment.stage == AL_STAGE_COLLECT;
    int *stdio = job->plan.stdio;
    int out = compile ? job->compile_out : collect ? job->artifacts_out : stdio[1];
    bool terminal = job->assignment.spawn.terminal.rows > 0;
    const int fds[AL_STAGE_FDS] = {job->bundle_fd,
                                   collect || (compile && terminal) ? out : stdio[0], out,
                                   compile || collect ? out : stdio[2]};
    job->assigned_ns = al_now_ns();
    int rc = job->assignment.first ? fit_cell(job, err) : 0;
    if (rc == 0) {
        rc = al_cell_is_jail(job->plan.kind)
                 ? al_job_order_stage(job, fds, err)
                 : al_cell_assign(job->assign_fd, &job->assignment, fds, err);
    }
    if (rc == 0 && job->assignment.first) {
        const uint32_t disk_mb = job->assignment.spawn.quotas.disk_mb;
        rc = al_cell_take(&job->cell, job->assignment.resized ? disk_mb : 0, err);
    }
    al_close_fd(&job->assign_fd);
    if (collect || (!compile && job->artifacts_out < 0)) {
        al_close_fd(&job->bundle_fd); /* no later stage reads it, and it may be large */
    }
    if (collect) {
        al_close_fd(&job->artifacts_out);
    }
    if (!compile) {
        close_all(stdio, 3); /* the program has its own now: its end must be seen as EOF */
    }
    return rc;
}
