/* How a job ends; see main.c. */
#include "backends/docker/init/init.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/collect.h"

#define ROOM_BYTES ((uint64_t)AL_CONTAINER_ROOM_MB << 20)
#define ROOM_NS    (10 * INT64_C(1000000000)) /* for airlockd to make it */

void al_init_set_error(struct al_init *i, const char *text)
{
    if (i->exit.error[0] == '\0') {
        al_err_copy_text(i->exit.error, sizeof i->exit.error, text);
    }
}

/* For what is left to be read: as long as airlockd waits for a reader, and more. */
static void leave_time(struct al_init *i)
{
    i->deadline_ns = al_now_ns() + i->plan.job.patience_ms * 1000000 + AL_INIT_MARGIN_NS;
}

/* The kernel lets no fork slip by; whoever is left becomes this process's child. */
void al_init_kill_all(struct al_init *i)
{
    if (i->phase < PHASE_KILLING) {
        i->phase = PHASE_KILLING;
        leave_time(i);
        kill(-1, SIGKILL);
    }
}

void al_init_fail(struct al_init *i, const char *text)
{
    al_init_set_error(i, text);
    al_init_kill_all(i);
}

static bool is_drained(const struct al_init *i)
{
    for (int s = 0; s < SOURCES; s++) {
        if (i->sources[s] >= 0) {
            return false;
        }
    }
    return true;
}

static void say_exit(struct al_init *i)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    al_init_say(i, AL_FRAME_CONTROL, data, al_msg_encode_exit(&i->exit, data));
    al_init_say(i, AL_FRAME_END, NULL, 0);
    i->phase = PHASE_LEAVING;
    leave_time(i);
}

static void read_figures(struct al_init *i)
{
    int64_t cpu_us = al_figures_cpu_us(&i->figures);
    i->exit.cpu_us = al_limits_used_us(&i->limits, cpu_us);
    al_figures_read(&i->figures, &i->exit);
}

static bool wants_artifacts(const struct al_init *i)
{
    return i->items.n_globs > 0 && i->exit.ran && !i->exit.killed && i->exit.limit == AL_LIMIT_NONE;
}

static void start_collector(struct al_init *i)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        say_exit(i);
        return;
    }
    i->pid = al_stage_collect(&i->items, &i->filter, fds[1], &i->status_fd);
    close(fds[1]);
    i->sources[SOURCE_ARTIFACTS] = fds[0];
    al_io_set_nonblock(fds[0], true);
    i->phase = PHASE_COLLECTING;
    i->deadline_ns = al_now_ns() + AL_COLLECT_MAX_NS;
}

/* Once nobody else is left. */
void al_init_on_alone(struct al_init *i)
{
    if (i->phase == PHASE_KILLING && is_drained(i)) {
        read_figures(i);
        if (!wants_artifacts(i)) {
            say_exit(i);
        } else if (al_figures_memory_left(&i->figures) < ROOM_BYTES) {
            al_init_say(i, AL_FRAME_ROOM, NULL, 0);
            i->phase = PHASE_ROOM;
            i->deadline_ns = al_now_ns() + ROOM_NS;
        } else {
            start_collector(i);
        }
    } else if (i->phase == PHASE_COLLECTING && is_drained(i)) {
        say_exit(i);
    }
}

void al_init_on_room(struct al_init *i)
{
    if (i->phase == PHASE_ROOM) {
        start_collector(i);
    }
}

void al_init_kill_for_caller(struct al_init *i)
{
    if (i->phase == PHASE_COLLECTING) {
        kill(-1, SIGKILL);
        return;
    }
    i->exit.killed |= i->phase < PHASE_KILLING;
    al_init_kill_all(i);
}
