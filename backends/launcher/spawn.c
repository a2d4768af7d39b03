/* From SPAWN to a running cell: what the launcher checks, the job's slot, its pipes, and the
 * answer. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "backends/launcher/job_internal.h"

#define SETUP_MAX_NS (20 * (int64_t)1000000000) /* a cell that is not built by then is a fault */

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

static void refuse(int control_fd, const struct al_err *err)
{
    struct al_msg_refused m;
    al_err_copy_text(m.text, sizeof m.text, err->text);
    uint8_t data[AL_MSG_BYTES_MAX];
    struct iovec iov = {.iov_base = data, .iov_len = al_msg_encode_refused(&m, data)};
    al_io_send_fds(control_fd, &iov, 1, NULL, 0, false);
}

/* airlockd's ends of the pipes that only some jobs have; -1: none. */
struct extra {
    int artifacts;
    int compile;
};

static int make_extra_pipes(struct al_job *job, struct extra *ret, struct al_err *err)
{
    int rc = 0;
    if (job->assignment.spawn.quotas.artifact_bytes > 0) {
        rc = al_job_make_pipe(job, false, &ret->artifacts, &job->artifacts_out, err);
    }
    if (rc == 0 && job->assignment.stage == AL_STAGE_COMPILE) {
        rc = al_job_make_pipe(job, false, &ret->compile, &job->compile_out, err);
    }
    return rc;
}

/* The fds go with it. */
static void say_spawned(struct al_job *job, const struct extra *extra)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    int fds[AL_IO_FDS_MAX] = {job->callers[0], job->callers[1], job->callers[2]};
    size_t n = 3;
    if (extra->artifacts >= 0) {
        fds[n++] = extra->artifacts;
    }
    if (extra->compile >= 0) {
        fds[n++] = extra->compile;
    }
    al_job_send(job, data, al_msg_encode_empty(AL_MSG_SPAWNED, data), fds, n);
    for (size_t i = 0; i < 3; i++) {
        al_close_fd(&job->callers[i]);
    }
}

/* From here on the job's own end, and an error, come as EXIT. */
static void assign(struct al_job *job, struct al_err *err)
{
    struct extra extra = {-1, -1};
    int rc = make_extra_pipes(job, &extra, err);
    if (rc == 0 && job->assignment.spawn.terminal.rows > 0) {
        rc = al_job_use_terminal(job, err);
    }
    rc = rc < 0 ? rc : al_job_start_stage(job, err);
    if (rc == 0) {
        say_spawned(job, &extra);
        al_job_arm_timer(job, al_now_ns() + SETUP_MAX_NS);
    } else {
        uint8_t data[AL_MSG_BYTES_MAX];
        struct al_msg_refused m;
        al_err_copy_text(m.text, sizeof m.text, err->text);
        al_job_send(job, data, al_msg_encode_refused(&m, data), NULL, 0);
        al_job_end_cell(job);
    }
    al_close_fd(&extra.artifacts);
    al_close_fd(&extra.compile);
}

/* One that was made ahead, or else a new one. */
static struct al_job *get_cell(struct al_jobs *jobs, const struct al_msg_spawn *spawn,
                               int32_t runtime, struct al_err *err)
{
    struct al_job *job = al_pools_take(jobs, spawn, runtime);
    return job ? job : al_job_create(jobs, spawn->kind, &spawn->quotas, AL_RUNTIME_NONE, err);
}

void al_jobs_spawn(struct al_jobs *jobs, const struct al_msg_spawn *spawn, int control_fd,
                   int bundle_fd)
{
    struct al_err err = {0};
    const struct al_runtime *runtime = NULL;
    struct al_job *job = NULL;
    if (check_spawn(jobs, spawn, bundle_fd, &runtime, &err) == 0 && runtime) {
        job = get_cell(jobs, spawn, (int32_t)(runtime - jobs->config->runtimes), &err);
    }
    if (!job) {
        refuse(control_fd, &err);
        close(control_fd);
        close(bundle_fd);
        return;
    }
    bool compile = runtime->compile.n > 0;
    job->assignment =
        (struct al_assignment){.stage = compile ? AL_STAGE_COMPILE : AL_STAGE_RUN,
                               .first = true,
                               .runtime = (uint32_t)(runtime - jobs->config->runtimes),
                               .spawn = *spawn};
    job->bundle_fd = bundle_fd;
    job->assigned = true;
    jobs->n_running++;
    if (al_job_add_source(job, AL_JOB_CONTROL, control_fd, al_job_on_control) < 0) {
        al_job_end_cell(job); /* not a socket: nobody to answer */
        return;
    }
    assign(job, &err);
}

int al_jobs_init(struct al_jobs *jobs)
{
    jobs->slots = calloc(jobs->config->jobs_max, sizeof(struct al_job *));
    jobs->next_name =
        (uint64_t)al_wall_ns(); /* not that of a group which an earlier run left busy */
    return jobs->slots ? al_pools_init(jobs) : -ENOMEM;
}
