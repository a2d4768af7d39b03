/*
 * Theory of operation. This is pid 1 of a container that runs one job: one thread, one poll loop.
 * It reads the job from its standard input, starts the compile step and the program as children,
 * carries bytes between their pipes (or their terminal) and airlockd, and keeps the job's limits.
 * It has the program's user, since a container without capabilities has one only: it is not
 * dumpable, so that the program can neither trace it nor open its fds, and the kernel keeps signals
 * from inside away from a pid 1 that has no handlers. Output is read only while what was read
 * before has left, so that a slow reader stops the program and nothing grows here. When the program
 * has ended, met a limit or is to die, everything else is killed and reaped, the pipes are emptied,
 * artifacts are collected, EXIT and END are said. The end of standard input means that airlockd is
 * gone, and ends it all at once; should even that not be seen, each phase has its time.
 */
#include "backends/docker/init/init.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/io.h"

#define RECEIVE_NS (60 * INT64_C(1000000000))

enum {
    POLL_DOWN,
    POLL_UP,
    POLL_CHILDREN,
    POLL_STATUS,
    POLL_STDIN,
    POLL_SOURCES,
    POLL_COUNT = POLL_SOURCES + SOURCES,
};

static void keep_limits(struct al_init *i)
{
    if (i->announced && i->phase <= PHASE_RUN && al_now_ns() >= i->limits.next_ns) {
        uint8_t data[AL_MSG_BYTES_MAX];
        int64_t cpu_us = al_figures_cpu_us(&i->figures);
        enum al_limit limit = al_limits_check(&i->limits, al_now_ns(), cpu_us);
        if (limit != AL_LIMIT_NONE) {
            i->exit.limit = limit;
            al_init_kill_all(i);
            return;
        }
        struct al_msg_usage usage = {.cpu_us = al_limits_news_us(&i->limits, cpu_us)};
        if (usage.cpu_us > 0 && al_init_has_room(i)) {
            al_init_say(i, AL_FRAME_CONTROL, data, al_msg_encode_usage(&usage, data));
        }
    }
    if (i->deadline_ns == 0 || al_now_ns() < i->deadline_ns) {
        return;
    }
    if (i->phase == PHASE_ROOM) {
        al_init_on_room(i);
        return;
    }
    if (i->phase == PHASE_COLLECTING) {
        i->deadline_ns = al_now_ns() + AL_INIT_MARGIN_NS;
        kill(-1, SIGKILL); /* what it has sent by then counts */
        return;
    }
    al_init_die(i->phase == PHASE_RECEIVING ? "the job did not come" : "nobody takes what is left");
}

static int timeout_ms(const struct al_init *i)
{
    int64_t until_ns = i->deadline_ns > 0 ? i->deadline_ns : INT64_MAX;
    if (i->announced && i->phase <= PHASE_RUN && i->limits.next_ns < until_ns) {
        until_ns = i->limits.next_ns;
    }
    if (until_ns == INT64_MAX) {
        return -1;
    }
    int64_t left_ms = (until_ns - al_now_ns() + 999999) / 1000000;
    return left_ms < 0 ? 0 : left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

static void wait_for_events(struct al_init *i, struct pollfd *fds)
{
    fds[POLL_DOWN] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    fds[POLL_UP] = (struct pollfd){.fd = i->out.len > 0 ? STDOUT_FILENO : -1, .events = POLLOUT};
    fds[POLL_CHILDREN] = (struct pollfd){.fd = i->children_fd, .events = POLLIN};
    fds[POLL_STATUS] = (struct pollfd){.fd = i->status_fd, .events = POLLIN};
    fds[POLL_STDIN] =
        (struct pollfd){.fd = i->started && i->in.len > 0 ? i->stdin_fd : -1, .events = POLLOUT};
    for (int s = 0; s < SOURCES; s++) {
        fds[POLL_SOURCES + s] =
            (struct pollfd){.fd = al_init_has_room(i) ? i->sources[s] : -1, .events = POLLIN};
    }
    if (poll(fds, POLL_COUNT, timeout_ms(i)) < 0 && errno != EINTR) {
        al_init_die("poll");
    }
}

static void step(struct al_init *i)
{
    struct pollfd fds[POLL_COUNT];
    wait_for_events(i, fds);
    if (fds[POLL_STATUS].revents) {
        al_init_read_status(i);
    }
    if (fds[POLL_DOWN].revents) {
        al_init_read_down(i);
    }
    for (int s = 0; s < SOURCES; s++) {
        if (fds[POLL_SOURCES + s].revents && i->sources[s] >= 0) {
            al_init_read_source(i, (enum al_init_source)s);
        }
    }
    al_init_reap(i);
    keep_limits(i);
    al_init_write_stdin(i);
    al_init_write_up(i);
}

static int set_up(struct al_init *i)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigaddset(&children, SIGPIPE);
    i->children_fd = sigprocmask(SIG_BLOCK, &children, NULL) < 0
                         ? -1
                         : signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    i->mark =
        mmap(NULL, sizeof *i->mark, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (i->children_fd < 0 || i->mark == MAP_FAILED || prctl(PR_SET_DUMPABLE, 0) < 0 ||
        al_io_set_nonblock(STDIN_FILENO, true) < 0 || al_io_set_nonblock(STDOUT_FILENO, true) < 0)
    {
        return -errno;
    }
    al_frame_reader_init(&i->reader, false);
    al_buf_init(&i->out, AL_INIT_OUT_MAX);
    al_buf_init(&i->in, AL_FRAME_STDIN_WINDOW);
    al_figures_open(&i->figures);
    i->deadline_ns = al_now_ns() + RECEIVE_NS;
    return 0;
}

int main(void)
{
    static struct al_init init = {
        .sources = {-1, -1, -1, -1}, .stdin_fd = -1, .status_fd = -1, .items.workdir = -1};
    if (getpid() != 1) {
        al_init_die("this is the first process of a container and nothing else");
    }
    if (set_up(&init) < 0) {
        al_init_die("cannot begin");
    }
    while (init.phase != PHASE_LEAVING || init.out.len > 0) {
        step(&init);
    }
    return 0;
}
