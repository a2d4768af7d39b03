/* The processes of a job; see main.c. */
#include "backends/docker/init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"

static int make_pipe(int *ret_ours, int *ret_theirs, bool ours_writes)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return -errno;
    }
    *ret_ours = fds[ours_writes];
    *ret_theirs = fds[!ours_writes];
    return al_io_set_nonblock(*ret_ours, true);
}

/* stdin of /dev/null, all output into one pipe. */
static int open_compile_stdio(struct al_init *i, struct al_stage *stage, struct al_err *err)
{
    stage->stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int rc = stage->stdio[0] < 0 ? -errno
                                 : make_pipe(&i->sources[SOURCE_COMPILE], &stage->stdio[1], false);
    stage->stdio[2] = rc < 0 ? -1 : fcntl(stage->stdio[1], F_DUPFD_CLOEXEC, 3);
    return rc < 0 ? al_err_errno(err, -rc, "pipe") : 0;
}

static int open_terminal(struct al_init *i, struct al_stage *stage, struct al_err *err)
{
    int rc = al_stage_open_terminal(i->plan.job.terminal, &i->stdin_fd, &stage->stdio[0], err);
    if (rc == 0 && !al_items_has_env(&i->items, "TERM")) {
        rc = al_items_add_env(&i->items, "TERM", "xterm-256color");
    }
    if (rc < 0) {
        return al_err_errno(err, -rc, "terminal");
    }
    i->sources[SOURCE_STDOUT] = fcntl(i->stdin_fd, F_DUPFD_CLOEXEC, 3);
    stage->stdio[1] = fcntl(stage->stdio[0], F_DUPFD_CLOEXEC, 3);
    stage->stdio[2] = fcntl(stage->stdio[0], F_DUPFD_CLOEXEC, 3);
    stage->terminal = i->terminal = true;
    return 0;
}

static int open_stdio(struct al_init *i, struct al_stage *stage, struct al_err *err)
{
    if (i->plan.job.terminal.rows > 0) {
        return open_terminal(i, stage, err);
    }
    int rc = make_pipe(&i->stdin_fd, &stage->stdio[0], true);
    rc = rc < 0 ? rc : make_pipe(&i->sources[SOURCE_STDOUT], &stage->stdio[1], false);
    rc = rc < 0 ? rc : make_pipe(&i->sources[SOURCE_STDERR], &stage->stdio[2], false);
    return rc < 0 ? al_err_errno(err, -rc, "pipe") : 0;
}

void al_init_start_stage(struct al_init *i, enum al_init_phase phase)
{
    struct al_err err = {0};
    bool run = phase == PHASE_RUN;
    struct al_stage stage = {.argv = run ? i->plan.argv : i->plan.compile,
                             .with_args = run,
                             .filter = &i->filter,
                             .stdio = {-1, -1, -1}};
    i->phase = phase;
    i->started = false;
    int rc = run ? open_stdio(i, &stage, &err) : open_compile_stdio(i, &stage, &err);
    if (rc == 0) {
        i->pid = al_stage_start(&stage, &i->items, &i->figures, i->mark, &i->status_fd);
        rc = i->pid < 0 ? al_err_errno(&err, -i->pid, "cannot start a process") : 0;
    }
    for (int k = 0; k < 3; k++) {
        al_close_fd(&stage.stdio[k]);
    }
    if (rc < 0) {
        al_init_fail(i, err.text);
    }
}

/* Signals wait for exec. */
void al_init_signal(struct al_init *i, int signo)
{
    bool runs = i->started && i->pid > 0 && i->phase <= PHASE_RUN;
    if (runs) {
        kill(-i->pid, signo);
    } else if (i->phase <= PHASE_RUN) {
        i->early_signals |= 1u << signo;
    }
}

static void on_started(struct al_init *i)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    i->started = true;
    i->program_started = i->phase == PHASE_RUN;
    if (!i->announced) {
        i->announced = true;
        al_limits_start(&i->limits, &i->plan.job, i->mark->at_ns, i->mark->cpu_us);
        al_init_say(i, AL_FRAME_CONTROL, data, al_msg_encode_empty(AL_MSG_STARTED, data));
    }
    for (int signo = 1; signo < 32; signo++) {
        if (i->early_signals & 1u << signo) {
            i->early_signals &= ~(1u << signo);
            kill(-i->pid, signo);
        }
    }
}

/* Its end without a text: exec has happened. */
void al_init_read_status(struct al_init *i)
{
    char text[AL_RESULT_ERROR_MAX];
    ssize_t n = TEMP_FAILURE_RETRY(read(i->status_fd, text, sizeof text - 1));
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    al_close_fd(&i->status_fd);
    if (n > 0 && i->phase < PHASE_COLLECTING) {
        text[n] = '\0';
        al_init_fail(i, text);
    } else if (n <= 0 && i->phase < PHASE_KILLING) {
        on_started(i);
    }
}

static int64_t stage_us(const struct al_init *i)
{
    return (al_now_ns() - i->mark->at_ns) / 1000;
}

static void say_compiled(struct al_init *i, int status)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    const struct al_msg_compiled m = {.wait_status = status, .duration_us = stage_us(i)};
    al_init_say(i, AL_FRAME_CONTROL, data, al_msg_encode_compiled(&m, data));
}

static void take_program_end(struct al_init *i, int status)
{
    i->exit.ran = true;
    i->exit.wait_status = status;
    i->exit.duration_us = stage_us(i);
}

static void on_stage_end(struct al_init *i, int status)
{
    i->pid = 0;
    if (i->status_fd >= 0) { /* what a dead child had to say may lie unread */
        al_init_read_status(i);
    }
    if (i->phase == PHASE_COMPILE && i->started) {
        say_compiled(i, status);
        if (status == 0) {
            kill(-1, SIGKILL); /* whatever the step has left */
            al_init_start_stage(i, PHASE_RUN);
            return;
        }
    } else if (i->phase == PHASE_RUN && i->started) {
        take_program_end(i, status);
    } else if (i->phase <= PHASE_RUN) {
        al_init_set_error(i, "the program's process died before it was executed");
    }
    al_init_kill_all(i);
}

/* It was killed, for whatever reason. */
static void on_killed(struct al_init *i, int status)
{
    i->pid = 0;
    if (i->program_started && !i->exit.ran) {
        take_program_end(i, status);
    } else if (i->started && !i->program_started) {
        say_compiled(i, status);
    }
}

void al_init_reap(struct al_init *i)
{
    struct signalfd_siginfo info;
    while (read(i->children_fd, &info, sizeof info) > 0) {
    }
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0) {
            al_init_on_alone(i);
            return;
        }
        if (pid == 0) {
            return;
        }
        if (pid == i->pid && i->phase <= PHASE_RUN) {
            on_stage_end(i, status);
        } else if (pid == i->pid && i->phase == PHASE_KILLING) {
            on_killed(i, status);
        } else if (pid == i->pid) {
            i->pid = 0;
        }
    }
}
