/* From SPAWN to a running cell: what the launcher checks, the job's slot, its pipes, and the
 * answer. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "backends/launcher/job_internal.h"

#define SETUP_MAX_NS (20 * (int64_t)1000000000) /* a cell that is not built by then is a fault */
#define PIPE_BYTES   (256 << 10)

/* Makes a pipe that the job's user may open again through /dev/stdout; *ret_mine does not block. */
static int make_pipe(struct al_job *job, bool program_reads, int *ret_mine, int *ret_programs,
                     struct al_err *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return al_err_errno(err, errno, "pipe");
    }
    *ret_mine = fds[program_reads];
    *ret_programs = fds[!program_reads];
    uid_t uid = job->plan.program_uid;
    if (fchown(fds[0], uid, uid) < 0 || al_io_set_nonblock(*ret_mine, true) < 0) {
        return al_err_errno(err, errno, "pipe's owner");
    }
    if (!program_reads) {
        fcntl(fds[0], F_SETPIPE_SZ, PIPE_BYTES); /* fewer wakes; the default size works too */
    }
    return 0;
}

#define PIPES 4

static int make_pipes(struct al_job *job, int mine[PIPES], struct al_err *err)
{
    struct al_stage_fds *f = &job->fds;
    int rc = make_pipe(job, true, &mine[0], &f->stdin_fd, err);
    rc = rc < 0 ? rc : make_pipe(job, false, &mine[1], &f->stdout_fd, err);
    rc = rc < 0 ? rc : make_pipe(job, false, &mine[2], &f->stderr_fd, err);
    if (rc == 0 && job->plan.runtime->compile.n > 0) {
        rc = make_pipe(job, false, &mine[3], &job->compile_out, err);
        job->stage = AL_STAGE_COMPILE;
    }
    return rc;
}

static bool workdir_is_valid(const char *dir)
{
    size_t base = strncmp(dir, "/sandbox", 8) == 0 ? 8 : strncmp(dir, "/tmp", 4) == 0 ? 4 : 0;
    if (base == 0 || (dir[base] != '\0' && dir[base] != '/')) {
        return false;
    }
    for (const char *at = dir + base; *at; at += strcspn(at, "/")) {
        at++; /* the slash */
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.')) {
            return false;
        }
    }
    return true;
}

static bool within_maxima(const struct al_quotas *q, const struct al_quotas *max)
{
    return q->cpu_ms <= max->cpu_ms && q->wall_ms <= max->wall_ms &&
           q->memory_mb <= max->memory_mb && q->pids <= max->pids &&
           q->file_size_mb <= max->file_size_mb && q->open_files <= max->open_files &&
           q->disk_mb <= max->disk_mb;
}

/* airlockd has checked all this; the launcher believes nothing of it. */
static int check_spawn(const struct al_jobs *jobs, const struct al_msg_spawn *spawn, int bundle_fd,
                       const struct al_runtime **ret_runtime, struct al_err *err)
{
    if (!jobs->available[spawn->kind]) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "this kind of cell is not available");
    }
    *ret_runtime = al_cells_config_runtime(jobs->config, spawn->runtime);
    if (!*ret_runtime) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "no runtime %.80s", spawn->runtime);
    }
    if (!workdir_is_valid(spawn->workdir)) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "workdir is not below /sandbox or /tmp");
    }
    if (!within_maxima(&spawn->quotas, &jobs->config->maxima)) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "a quota is above its configured maximum");
    }
    if (al_bundle_check_fd(bundle_fd) < 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "the bundle is not a sealed memfd");
    }
    return 0;
}

static struct al_job *take_slot(struct al_jobs *jobs, struct al_err *err)
{
    if (jobs->n_running == jobs->config->jobs_max) {
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
    jobs->n_running++;
    al_job_init_sources(job);
    job->bundle_fd = job->compile_out = -1;
    job->fds = (struct al_stage_fds){-1, -1, -1, -1, -1};
    job->cell = (struct al_cell){.init_pidfd = -1, .alive_fd = -1, .ready_fd = -1};
    job->stage = AL_STAGE_RUN;
    job->init_reaped = true; /* there is none yet */
    return job;
}

static int start_job(struct al_job *job, struct al_err *err)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer < 0 || al_job_add_source(job, AL_JOB_TIMER, timer, al_job_on_timer) < 0) {
        return al_err_errno(err, errno, "timerfd");
    }
    al_job_arm_timer(job, al_now_ns() + SETUP_MAX_NS);
    int mine[PIPES] = {-1, -1, -1, -1};
    int rc = make_pipes(job, mine, err);
    rc = rc < 0 ? rc : al_job_start_stage(job, true, err);
    if (!job->init_reaped || rc == 0) { /* there is a cell: its end, and the error, come as EXIT */
        uint8_t data[AL_MSG_BYTES_MAX];
        size_t n = mine[3] >= 0 ? 4 : 3;
        al_job_send(job, data, al_msg_encode_empty(AL_MSG_SPAWNED, data), mine, n);
        if (rc < 0) {
            al_job_set_error(job, err->text);
            al_job_end_cell(job);
            rc = 0;
        }
    }
    for (size_t i = 0; i < PIPES; i++) {
        al_close_fd(&mine[i]);
    }
    return rc;
}

static void refuse(int control_fd, const struct al_err *err)
{
    struct al_msg_refused m = {0};
    memcpy(m.text, err->text, strnlen(err->text, sizeof m.text - 1));
    uint8_t data[AL_MSG_BYTES_MAX];
    struct iovec iov = {.iov_base = data, .iov_len = al_msg_encode_refused(&m, data)};
    al_io_send_fds(control_fd, &iov, 1, NULL, 0);
}

void al_jobs_spawn(struct al_jobs *jobs, const struct al_msg_spawn *spawn, int control_fd,
                   int bundle_fd)
{
    struct al_err err = {0};
    const struct al_runtime *runtime = NULL;
    int rc = check_spawn(jobs, spawn, bundle_fd, &runtime, &err);
    struct al_job *job = rc < 0 ? NULL : take_slot(jobs, &err);
    if (!job || al_io_set_nonblock(control_fd, true) < 0) {
        refuse(control_fd, &err);
        close(control_fd);
        close(bundle_fd);
        if (job) {
            al_job_release(job);
        }
        return;
    }
    job->spawn = *spawn;
    job->plan = (struct al_cell_plan){.cgroups = jobs->cgroups,
                                      .filter = &jobs->filter,
                                      .runtime = runtime,
                                      .spawn = &job->spawn,
                                      .init_uid = jobs->config->uid_base + 2 * job->slot,
                                      .program_uid = jobs->config->uid_base + 2 * job->slot + 1};
    job->bundle_fd = bundle_fd;
    rc = al_job_add_source(job, AL_JOB_CONTROL, control_fd, al_job_on_control);
    rc = rc < 0 ? al_err_errno(&err, -rc, "epoll") : start_job(job, &err);
    if (rc < 0) {
        refuse(control_fd, &err);
        al_job_release(job);
    }
}

int al_jobs_init(struct al_jobs *jobs)
{
    jobs->slots = calloc(jobs->config->jobs_max, sizeof(struct al_job *));
    return jobs->slots ? 0 : -ENOMEM;
}
