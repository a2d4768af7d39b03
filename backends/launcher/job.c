/*
 * Theory of operation. A job's life: SPAWN → cell and first process cloned, pipes sent (SPAWNED) →
 * the status pipe ends without text: exec happened (STARTED), the wall clock runs → the process
 * ends: a compile step is reported (COMPILED) and followed by the program, a program's end ends the
 * job → init is killed and with it all that is left → both are reaped, the cgroup's figures are
 * read → EXIT, and everything is released. A limit, a KILL or a closed control socket just kill
 * init; the rest follows by itself. Each fd of a job is a source of the loop; no handler waits for
 * anything.
 */
#include "backends/launcher/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "backends/launcher/reaper.h"

#define SETUP_MAX_NS     (20 * (int64_t)1000000000) /* a cell that is not built by then is a fault */
#define CPU_CHECK_MIN_NS 2000000                    /* below a scheduler tick nothing is gained */
#define PIPE_BYTES       (256 << 10)

enum source_index {
    SRC_CONTROL,
    SRC_STATUS,
    SRC_PROCESS,
    SRC_INIT,
    SRC_TIMER,
    SRC_COUNT,
};

struct job_source {
    struct al_source base;
    struct al_job *job;
};

struct al_job {
    struct al_jobs *jobs;
    uint32_t slot;
    struct al_msg_spawn spawn;
    struct al_cell_plan plan;
    struct al_cell cell;
    struct job_source sources[SRC_COUNT];
    int bundle_fd;
    struct al_stage_fds fds;
    int compile_out; /* the compile step's end of its pipe */
    enum al_stage stage;
    pid_t pid;      /* of the stage's process; 0 once it is reaped */
    bool started;   /* the stage has been exec'd */
    bool announced; /* STARTED was sent */
    bool ending;    /* init was killed on purpose */
    bool init_reaped;
    int64_t stage_started_ns;
    int64_t wall_deadline_ns;
    struct al_msg_exit exit;
};

static struct al_source *source_of(struct al_job *job, enum source_index i)
{
    return &job->sources[i].base;
}

static void drop_source(struct al_job *job, enum source_index i)
{
    al_loop_remove(job->jobs->loop, source_of(job, i));
    al_close_fd(&source_of(job, i)->fd);
}

static int add_source(struct al_job *job, enum source_index i, int fd,
                      void (*fn)(struct al_source *))
{
    job->sources[i] = (struct job_source){.base = {.fd = fd, .fn = fn}, .job = job};
    return al_loop_add(job->jobs->loop, source_of(job, i));
}

static struct al_job *job_of(struct al_source *source)
{
    return ((struct job_source *)source)->job;
}

/* A peer that does not read loses its job: it must not hold up the others. */
static void send_control(struct al_job *job, const void *data, size_t len, const int *fds, size_t n)
{
    struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
    int fd = source_of(job, SRC_CONTROL)->fd;
    if (fd >= 0 && al_io_send_fds(fd, &iov, 1, fds, n) < 0) {
        drop_source(job, SRC_CONTROL);
    }
}

static void end_cell(struct al_job *job)
{
    job->ending = true;
    al_cell_kill(&job->cell);
}

/* True when the stage's process has ended by itself and only waits to be reaped: then no limit has
 * ended it. */
static bool has_ended(const struct al_job *job)
{
    siginfo_t info = {0};
    return job->pid == 0 ||
           (waitid(P_PID, (id_t)job->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0);
}

static void kill_for_limit(struct al_job *job, enum al_limit limit)
{
    if (!job->ending && !has_ended(job)) {
        job->exit.limit = limit;
        end_cell(job);
    }
}

static void set_error(struct al_job *job, const char *text)
{
    if (job->exit.error[0] == '\0') {
        size_t n = strnlen(text, sizeof job->exit.error - 1);
        memcpy(job->exit.error, text, n);
        job->exit.error[n] = '\0';
    }
}

/* --- the end --- */

static void release(struct al_job *job)
{
    struct al_jobs *jobs = job->jobs;
    for (size_t i = 0; i < SRC_COUNT; i++) {
        drop_source(job, (enum source_index)i);
    }
    int *const fds[] = {&job->bundle_fd,     &job->compile_out,   &job->fds.stdin_fd,
                        &job->fds.stdout_fd, &job->fds.stderr_fd, &job->fds.status_fd,
                        &job->cell.alive_fd, &job->cell.ready_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        al_close_fd(fds[i]);
    }
    jobs->slots[job->slot] = NULL;
    jobs->n_running--;
    free(job);
}

static void read_usage(struct al_job *job)
{
    struct al_cgroup_usage usage;
    job->jobs->cgroups->ops->usage(job->jobs->cgroups, job->spawn.job_id, &usage);
    struct al_msg_exit *e = &job->exit;
    e->cpu_us = usage.cpu_us;
    e->memory_peak_bytes = usage.memory_peak_bytes;
    e->oom_kills = usage.oom_kills;
    e->pids_denied = usage.pids_denied;
    e->pids_peak = usage.pids_peak;
    e->layers = al_cell_layers(job->spawn.kind, job->jobs->cgroups);
}

static void finish_if_dead(struct al_job *job)
{
    if (job->pid != 0 || !job->init_reaped) {
        return;
    }
    read_usage(job);
    uint8_t data[AL_MSG_BYTES_MAX];
    send_control(job, data, al_msg_encode_exit(&job->exit, data), NULL, 0);
    al_reaper_remove(job->jobs->reaper_fd, job->spawn.job_id);
    release(job);
}

static void on_status(struct al_source *source);

/* What a dead child had to say may lie unread, or come in the same wake. */
static void drain_status(struct al_job *job)
{
    if (source_of(job, SRC_STATUS)->fd >= 0) {
        on_status(source_of(job, SRC_STATUS));
    }
}

static void on_init(struct al_source *source)
{
    struct al_job *job = job_of(source);
    waitpid(job->cell.init_pid, NULL, 0);
    job->init_reaped = true;
    if (!job->ending) {
        drain_status(job);
    }
    if (!job->ending) {
        set_error(job, "the cell's init died");
        job->ending = true; /* the kernel kills the rest */
    }
    drop_source(job, SRC_INIT);
    finish_if_dead(job);
}

/* --- stages --- */

static int start_stage(struct al_job *job, bool first, struct al_err *err);

static void take_compile_result(struct al_job *job, int wait_status, int64_t duration_us)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    struct al_msg_compiled m = {.wait_status = wait_status, .duration_us = duration_us};
    send_control(job, data, al_msg_encode_compiled(&m, data), NULL, 0);
    al_close_fd(&job->compile_out);
    struct al_err err = {0};
    if (wait_status != 0 || job->ending) {
        end_cell(job);
        return;
    }
    job->stage = AL_STAGE_RUN;
    if (start_stage(job, false, &err) < 0) {
        set_error(job, err.text);
        end_cell(job);
    }
}

static void on_process(struct al_source *source)
{
    struct al_job *job = job_of(source);
    int status = 0;
    if (waitpid(job->pid, &status, WNOHANG) != job->pid) {
        return;
    }
    int64_t duration_us = job->started ? (al_now_ns() - job->stage_started_ns) / 1000 : 0;
    job->pid = 0;
    drop_source(job, SRC_PROCESS);
    drain_status(job);
    if (job->started && job->stage == AL_STAGE_COMPILE) {
        take_compile_result(job, status, duration_us);
    } else {
        job->exit.ran = job->started;
        job->exit.wait_status = status;
        job->exit.duration_us = duration_us;
        if (!job->started && !job->ending) {
            set_error(job, "the program's process died before it was executed");
        }
        end_cell(job);
    }
    finish_if_dead(job);
}

static void arm_timer(struct al_job *job, int64_t at_ns)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000}};
    timerfd_settime(source_of(job, SRC_TIMER)->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* At the wall deadline, or when the CPU limit could be met at the earliest with every core busy. */
static void arm_limits(struct al_job *job, int64_t now_ns, int64_t cpu_us)
{
    static long cores;
    cores = cores > 0 ? cores : sysconf(_SC_NPROCESSORS_ONLN);
    int64_t left_ns = (job->spawn.quotas.cpu_ms * 1000 - cpu_us) * 1000 / (cores > 0 ? cores : 1);
    left_ns = left_ns > CPU_CHECK_MIN_NS ? left_ns : CPU_CHECK_MIN_NS;
    int64_t cpu_check_ns = now_ns + left_ns;
    arm_timer(job, cpu_check_ns < job->wall_deadline_ns ? cpu_check_ns : job->wall_deadline_ns);
}

static void on_timer(struct al_source *source)
{
    struct al_job *job = job_of(source);
    uint64_t count;
    if (read(source->fd, &count, sizeof count) != (ssize_t)sizeof count || job->ending) {
        return;
    }
    int64_t now_ns = al_now_ns();
    if (!job->announced) {
        set_error(job, "the cell was not ready in time");
        end_cell(job);
        return;
    }
    if (now_ns >= job->wall_deadline_ns) {
        kill_for_limit(job, AL_LIMIT_WALL);
        return;
    }
    int64_t cpu_us = job->jobs->cgroups->ops->cpu_us(job->jobs->cgroups, job->spawn.job_id);
    if (cpu_us >= job->spawn.quotas.cpu_ms * 1000) {
        kill_for_limit(job, AL_LIMIT_CPU);
    } else {
        arm_limits(job, now_ns, cpu_us);
    }
}

static void on_started(struct al_job *job)
{
    int64_t now_ns = al_now_ns();
    job->started = true;
    job->stage_started_ns = now_ns;
    if (job->announced) {
        return; /* the program after its compile step: the same clock goes on */
    }
    job->announced = true;
    job->wall_deadline_ns = now_ns + job->spawn.quotas.wall_ms * 1000000;
    arm_limits(job, now_ns, 0);
    uint8_t data[AL_MSG_BYTES_MAX];
    send_control(job, data, al_msg_encode_empty(AL_MSG_STARTED, data), NULL, 0);
}

static void on_status(struct al_source *source)
{
    struct al_job *job = job_of(source);
    char text[PIPE_BUF];
    ssize_t got = read(source->fd, text, sizeof text - 1);
    if (got < 0) {
        return; /* EAGAIN: called on the chance */
    }
    text[got] = '\0';
    drop_source(job, SRC_STATUS);
    if (got > 0) {
        set_error(job, text);
        end_cell(job);
    } else if (!job->ending) {
        on_started(job);
    }
}

/* --- control --- */

static void on_control(struct al_source *source)
{
    struct al_job *job = job_of(source);
    uint8_t data[AL_MSG_BYTES_MAX];
    struct al_msg_signal sig;
    ssize_t got = TEMP_FAILURE_RETRY(recv(source->fd, data, sizeof data, MSG_DONTWAIT));
    if (got < 0 && errno == EAGAIN) {
        return;
    }
    if (got > 0 && al_msg_decode_signal(data, (size_t)got, &sig) == 0) {
        /* Safe from a lying peer: the group is that of a child not yet reaped, so the number is not
         * reused, and the signal goes to that job only. */
        if (job->pid > 0 && job->started) {
            kill(-job->pid, sig.signo);
        }
        return;
    }
    bool is_kill = got > 0 && al_msg_decode_empty(AL_MSG_KILL, data, (size_t)got) == 0;
    if (!is_kill) {
        drop_source(job, SRC_CONTROL); /* closed, or nonsense: nobody is there to be told */
    }
    if (!job->ending && (!is_kill || !has_ended(job))) {
        job->exit.killed = true;
        end_cell(job);
    }
}

/* --- the start --- */

static int start_stage(struct al_job *job, bool first, struct al_err *err)
{
    int status[2];
    if (pipe2(status, O_CLOEXEC | O_NONBLOCK) < 0) {
        return al_err_errno(err, errno, "pipe");
    }
    struct al_stage_fds fds = job->fds;
    fds.bundle_fd = job->bundle_fd;
    fds.status_fd = status[1];
    if (job->stage == AL_STAGE_COMPILE) {
        fds.stdout_fd = fds.stderr_fd = job->compile_out;
    }
    if (add_source(job, SRC_STATUS, status[0], on_status) < 0) {
        close(status[1]);
        return al_err_errno(err, errno, "epoll");
    }
    job->started = false;
    struct al_process process;
    int rc = first ? al_cell_create(&job->plan, status[1], &job->cell, err) : 0;
    if (rc == 0 && first) {
        job->init_reaped = false;
        add_source(job, SRC_INIT, job->cell.init_pidfd, on_init);
    }
    rc =
        rc < 0 ? rc : al_cell_start(&job->plan, &job->cell, job->stage, first, &fds, &process, err);
    close(status[1]);
    al_close_fd(&job->cell.ready_fd);
    if (rc < 0) {
        return rc;
    }
    job->pid = process.pid;
    add_source(job, SRC_PROCESS, process.pidfd, on_process);
    if (job->stage == AL_STAGE_RUN) { /* the program has its own now: its end must be seen as EOF */
        al_close_fd(&job->fds.stdin_fd);
        al_close_fd(&job->fds.stdout_fd);
        al_close_fd(&job->fds.stderr_fd);
    }
    return 0;
}

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
    for (size_t i = 0; i < SRC_COUNT; i++) {
        job->sources[i] = (struct job_source){.base = {.fd = -1}, .job = job};
    }
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
    if (timer < 0 || add_source(job, SRC_TIMER, timer, on_timer) < 0) {
        return al_err_errno(err, errno, "timerfd");
    }
    arm_timer(job, al_now_ns() + SETUP_MAX_NS);
    int mine[PIPES] = {-1, -1, -1, -1};
    int rc = make_pipes(job, mine, err);
    rc = rc < 0 ? rc : start_stage(job, true, err);
    if (!job->init_reaped || rc == 0) { /* there is a cell: its end, and the error, come as EXIT */
        uint8_t data[AL_MSG_BYTES_MAX];
        size_t n = mine[3] >= 0 ? 4 : 3;
        send_control(job, data, al_msg_encode_empty(AL_MSG_SPAWNED, data), mine, n);
        if (rc < 0) {
            set_error(job, err->text);
            end_cell(job);
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
            release(job);
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
    rc = add_source(job, SRC_CONTROL, control_fd, on_control);
    rc = rc < 0 ? al_err_errno(&err, -rc, "epoll") : start_job(job, &err);
    if (rc < 0) {
        refuse(control_fd, &err);
        release(job);
    }
}

int al_jobs_init(struct al_jobs *jobs)
{
    jobs->slots = calloc(jobs->config->jobs_max, sizeof(struct al_job *));
    return jobs->slots ? 0 : -ENOMEM;
}

void al_jobs_kill_all(struct al_jobs *jobs)
{
    for (uint32_t i = 0; i < jobs->config->jobs_max; i++) {
        if (jobs->slots[i] && !jobs->slots[i]->init_reaped) {
            al_cell_kill(&jobs->slots[i]->cell);
        }
    }
    for (uint32_t i = 0; i < jobs->config->jobs_max; i++) {
        struct al_job *job = jobs->slots[i];
        if (job && job->pid > 0) {
            waitpid(job->pid, NULL,
                    0); /* first: init ends only after every other process of its namespace */
        }
        if (job && !job->init_reaped) {
            waitpid(job->cell.init_pid, NULL, 0);
        }
    }
}
