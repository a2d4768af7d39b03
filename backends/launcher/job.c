/*
 * Theory of operation. A cell's life: init and a first process cloned, which waits → SPAWN: the
 * process is told its assignment, pipes are sent (SPAWNED) → the status pipe ends without text:
 * exec happened (STARTED), the wall clock runs → the process ends: a compile step is reported
 * (COMPILED) and followed by the program; a program's end by itself, if artifacts are wanted, is
 * followed by a collector, which has a time of its own → the cgroup's figures are read (before the
 * collector), init is killed and with it all that is left, both are reaped → EXIT, at once if
 * nothing is left to be killed, and everything is released. A limit, a KILL or a closed control
 * socket just kill init; the rest follows by itself. Each fd of a job is a source of the loop; no
 * handler waits for anything.
 */
#include "backends/launcher/job_internal.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"

static struct al_source *source_of(struct al_job *job, enum al_job_source_index i)
{
    return &job->sources[i].base;
}

void al_job_drop_source(struct al_job *job, enum al_job_source_index i)
{
    al_loop_remove(job->jobs->loop, source_of(job, i));
    al_close_fd(&source_of(job, i)->fd);
}

void al_job_init_sources(struct al_job *job)
{
    for (size_t i = 0; i < AL_JOB_COUNT; i++) {
        job->sources[i] = (struct al_job_source){.base = {.fd = -1}, .job = job};
    }
}

int al_job_add_source(struct al_job *job, enum al_job_source_index i, int fd,
                      void (*fn)(struct al_source *))
{
    job->sources[i] = (struct al_job_source){.base = {.fd = fd, .fn = fn}, .job = job};
    return al_loop_add(job->jobs->loop, source_of(job, i));
}

static struct al_job *job_of(struct al_source *source)
{
    return ((struct al_job_source *)source)->job;
}

void al_job_end_cell(struct al_job *job)
{
    job->ending = true;
    al_cell_kill(&job->cell);
    if (job->setter > 0) {
        kill(job->setter, SIGKILL); /* not yet reaped, so it is still that one */
    }
    if (source_of(job, AL_JOB_TIMER)->fd >= 0) {
        al_job_arm_timer(job, al_now_ns() + AL_STRAY_CHECK_NS);
    }
}

static void kill_for_caller(struct al_job *job)
{
    if (!job->ending && !job->init_reaped) {
        job->exit.killed = true;
        al_job_end_cell(job);
    }
}

/* A peer that does not read loses its job: it must not hold up the others. */
void al_job_send(struct al_job *job, const void *data, size_t len, const int *fds, size_t n)
{
    struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
    int fd = source_of(job, AL_JOB_CONTROL)->fd;
    if (fd >= 0 && al_io_send_fds(fd, &iov, 1, fds, n, false) < 0) {
        al_job_drop_source(job, AL_JOB_CONTROL);
        kill_for_caller(job);
    }
}

void al_job_set_error(struct al_job *job, const char *text)
{
    if (job->exit.error[0] == '\0') {
        al_err_copy_text(job->exit.error, sizeof job->exit.error, text);
    }
}

/* --- its processes --- */

static void on_status(struct al_source *source);

/* What a dead child had to say may lie unread, or come in the same wake. */
static void drain_status(struct al_job *job)
{
    if (source_of(job, AL_JOB_STATUS)->fd >= 0) {
        on_status(source_of(job, AL_JOB_STATUS));
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
        al_job_set_error(job, "the cell's init died");
        job->ending = true; /* the kernel kills the rest */
    }
    al_job_drop_source(job, AL_JOB_INIT);
    job->cell.init_pidfd = -1; /* its number may soon be another job's */
    al_job_finish_if_dead(job);
}

/* --- stages --- */

static void take_compile_result(struct al_job *job, int wait_status, int64_t duration_us)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    struct al_msg_compiled m = {.wait_status = wait_status, .duration_us = duration_us};
    al_job_send(job, data, al_msg_encode_compiled(&m, data), NULL, 0);
    al_close_fd(&job->compile_out);
    struct al_err err = {0};
    if (source_of(job, AL_JOB_CONTROL)->fd >= 0) {
        al_job_on_control(source_of(job, AL_JOB_CONTROL)); /* a KILL that is there comes first */
    }
    if (wait_status != 0 || job->ending) {
        al_job_end_cell(job);
        return;
    }
    if (al_job_start_next(job, AL_STAGE_RUN, &err) < 0) {
        al_job_set_error(job, err.text);
        al_job_end_cell(job);
    }
}

static void take_exit(struct al_job *job, int wait_status, int64_t duration_us)
{
    job->exit.ran = job->started;
    job->exit.wait_status = wait_status;
    job->exit.duration_us = duration_us;
    if (!job->started && !job->ending) {
        al_job_set_error(job, "the program's process died before it was executed");
    }
    if (job->started && !job->ending && job->artifacts_out >= 0) {
        al_job_start_collector(job);
    } else {
        al_job_end(job);
    }
}

static int64_t time_us(const struct timeval *t)
{
    return (int64_t)t->tv_sec * 1000000 + t->tv_usec;
}

void al_job_stage_ended(struct al_job *job, int wait_status)
{
    int64_t duration_us = job->started ? (al_now_ns() - job->stage_started_ns) / 1000 : 0;
    if (job->started && job->assignment.stage == AL_STAGE_COMPILE) {
        take_compile_result(job, wait_status, duration_us);
    } else {
        take_exit(job, wait_status, duration_us);
    }
}

static void on_process(struct al_source *source)
{
    struct al_job *job = job_of(source);
    int status = 0;
    struct rusage used;
    if (wait4(job->pid, &status, WNOHANG, &used) != job->pid) {
        return;
    }
    if (job->assignment.stage != AL_STAGE_COLLECT) {
        job->reaped_cpu_us += time_us(&used.ru_utime) + time_us(&used.ru_stime);
    }
    job->pid = 0;
    al_job_drop_source(job, AL_JOB_PROCESS);
    drain_status(job);
    if (al_cell_is_jail(job->plan.kind)) {
        al_job_tool_ended(job, status);
    } else if (job->assignment.stage == AL_STAGE_COLLECT) {
        al_job_end(job);
    } else if (job->started && job->setter > 0 && !job->ending) {
        /* Its setter, which is about to end, knows whether it was told its program at all. */
        job->exit.wait_status = status;
        job->exit.duration_us = (al_now_ns() - job->stage_started_ns) / 1000;
    } else {
        al_job_stage_ended(job, status);
    }
    al_job_finish_if_dead(job);
}

/* Not between an interpreter's being told its program and the end of the setter that does it: the
 * setter would have to say that the program was never started. */
static bool can_be_signalled(const struct al_job *job)
{
    return job->pid > 0 && job->started && job->setter == 0;
}

/* Safe from a lying peer: the group is that of a child not yet reaped, so the number is not reused,
 * and the signal goes to that job only. In a jail it is the warden's child, and likewise. */
static void deliver(struct al_job *job, int signo)
{
    if (al_cell_is_jail(job->plan.kind)) {
        al_job_order_signal(job, signo);
    } else {
        kill(-job->pid, signo);
    }
}

/* One that comes before exec waits for it, which a collector never does. */
static void signal_program(struct al_job *job, int signo)
{
    if (can_be_signalled(job)) {
        deliver(job, signo);
    } else {
        job->early_signals |= 1u << signo;
    }
}

static void send_early_signals(struct al_job *job)
{
    for (int signo = 1; job->early_signals && can_be_signalled(job); signo++) {
        if (job->early_signals & 1u << signo) {
            job->early_signals &= ~(1u << signo);
            deliver(job, signo);
        }
    }
}

static void on_setter(struct al_source *source)
{
    struct al_job *job = job_of(source);
    if (waitpid(job->setter, NULL, WNOHANG) == job->setter) {
        job->setter = 0;
        al_job_drop_source(job, AL_JOB_SETTER);
        drain_status(job);
        if (job->pid == 0 && job->started && !job->ending) {
            take_exit(job, job->exit.wait_status, job->exit.duration_us);
        }
        send_early_signals(job);
        al_job_finish_if_dead(job);
    }
}

/* What the process has said of itself holds as far as it can be true. */
static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

void al_job_stage_started(struct al_job *job)
{
    int64_t now_ns = al_now_ns();
    int64_t cpu_us = al_job_cpu_us(job);
    bool marked = job->mark.at_ns != 0;
    job->started = true;
    job->stage_started_ns = marked ? clamp(job->mark.at_ns, job->assigned_ns, now_ns) : now_ns;
    send_early_signals(job);
    if (job->announced) {
        return; /* the program after its compile step: the same clock goes on */
    }
    job->announced = true;
    job->cpu_before_us = marked ? clamp(job->mark.cpu_us, 0, cpu_us) : cpu_us;
    job->wall_deadline_ns = job->stage_started_ns + job->assignment.spawn.quotas.wall_ms * 1000000;
    al_job_arm_limits(job, now_ns, cpu_us - job->cpu_before_us);
    uint8_t data[AL_MSG_BYTES_MAX];
    al_job_send(job, data, al_msg_encode_empty(AL_MSG_STARTED, data), NULL, 0);
}

/* Takes the marks off the front of what was read; the rest is moved up. */
static ssize_t take_marks(struct al_job *job, char *text, ssize_t len)
{
    const ssize_t size = sizeof job->mark;
    while (len >= size && text[0] == '\0') {
        struct al_mark mark;
        memcpy(&mark, text, sizeof mark);
        if (mark.at_ns == AL_MARK_SETTLED) {
            job->settled = true;
        } else {
            job->mark = mark;
        }
        memmove(text, text + size, (size_t)(len - size));
        len -= size;
    }
    return len;
}

void al_job_fail(struct al_job *job, const char *text)
{
    al_job_set_error(job, text);
    al_job_end_cell(job);
}

/* The pipe's end without a word. */
static void on_status_end(struct al_job *job)
{
    bool prestarted = job->plan.runtime != AL_RUNTIME_NONE;
    struct al_err err = {0};
    if (job->ending || job->started) {
        return;
    }
    if (prestarted && !job->has_setter) {
        if (al_job_start_setter(job, &err) < 0) { /* the interpreter has been exec'd */
            al_job_fail(job, err.text);
        }
    } else if (job->waiting) {
        al_job_fail(job, "its process died waiting");
    } else if (prestarted) {
        al_job_fail(job, "the process that starts the program died");
    } else if (job->mark.at_ns == 0) {
        al_job_fail(job, "the program's process died before it was executed");
    } else {
        al_job_stage_started(job);
    }
}

/* Until the pipe ends, says why it failed, or has no more for now. */
static void on_status(struct al_source *source)
{
    struct al_job *job = job_of(source);
    char text[PIPE_BUF];
    ssize_t got;
    ssize_t rest;
    if (al_cell_is_jail(job->plan.kind)) {
        al_job_hear_tool(job);
        return;
    }
    do {
        got = read(source->fd, text, sizeof text - 1);
        if (got < 0) {
            return; /* EAGAIN */
        }
        rest = take_marks(job, text, got);
        if (job->plan.runtime != AL_RUNTIME_NONE && job->mark.at_ns != 0 && !job->started &&
            !job->ending) {
            al_job_stage_started(
                job); /* the interpreter goes on while its setter is still ending */
        }
    } while (got > 0 && rest == 0);
    text[rest] = '\0';
    al_job_drop_source(job, AL_JOB_STATUS);
    if (job->assignment.stage == AL_STAGE_COLLECT) {
        al_job_collector_said(text);
    } else if (rest > 0) {
        job->started = false; /* nor has an interpreter, of which its setter says this */
        al_job_fail(job, text);
    } else {
        on_status_end(job);
    }
}

/* --- control --- */

void al_job_on_control(struct al_source *source)
{
    struct al_job *job = job_of(source);
    uint8_t data[AL_MSG_BYTES_MAX];
    struct al_msg_signal sig;
    ssize_t got = TEMP_FAILURE_RETRY(recv(source->fd, data, sizeof data, MSG_DONTWAIT));
    if (got < 0 && errno == EAGAIN) {
        return;
    }
    if (got > 0 && al_msg_decode_signal(data, (size_t)got, &sig) == 0) {
        signal_program(job, sig.signo);
        return;
    }
    al_job_hear_warden(job);
    bool is_kill = got > 0 && al_msg_decode_empty(AL_MSG_KILL, data, (size_t)got) == 0;
    if (!is_kill) {
        al_job_drop_source(job,
                           AL_JOB_CONTROL); /* closed, or nonsense: nobody is there to be told */
    }
    if (!is_kill || !al_job_has_ended(job)) {
        kill_for_caller(job);
    } else if (job->assignment.stage == AL_STAGE_COLLECT && !job->ending) {
        al_job_end_cell(job); /* nobody waits for the artifacts any more */
    }
}

/* --- the start --- */

/* A launcher that cannot see its children end is of no use: it ends, and all of them with it. */
static void watch(struct al_job *job, enum al_job_source_index i, int fd,
                  void (*fn)(struct al_source *))
{
    if (al_job_add_source(job, i, fd, fn) < 0) {
        job->jobs->loop->stop = true;
    }
}

void al_job_watch_init(struct al_job *job)
{
    watch(job, AL_JOB_INIT, job->cell.init_pidfd, on_init);
}

void al_job_watch_process(struct al_job *job, enum al_role role, const struct al_process *process,
                          int status_fd)
{
    bool is_setter = role == AL_ROLE_SETTER;
    *(is_setter ? &job->setter : &job->pid) = process->pid;
    watch(job, is_setter ? AL_JOB_SETTER : AL_JOB_PROCESS, process->pidfd,
          is_setter ? on_setter : on_process);
    watch(job, AL_JOB_STATUS, status_fd, on_status);
}
