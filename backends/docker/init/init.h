/* The first process of a container: what its parts share. One thread; see main.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/buf.h"
#include "backends/docker/frame.h"
#include "backends/docker/init/figures.h"
#include "backends/docker/init/items.h"
#include "backends/docker/init/limits.h"
#include "backends/docker/init/program.h"

#define AL_INIT_MARGIN_NS (30 * INT64_C(1000000000)) /* for all that is no program's doing */
#define AL_INIT_OUT_MAX   (1u << 20) /* content is read below a quarter of it only */

enum al_init_phase {
    PHASE_RECEIVING,
    PHASE_COMPILE,
    PHASE_RUN,
    PHASE_KILLING, /* until nothing is left but this process */
    PHASE_ROOM,    /* until airlockd has made some for the collector */
    PHASE_COLLECTING,
    PHASE_LEAVING, /* until all is written */
};

/* Where output comes from. */
enum al_init_source {
    SOURCE_STDOUT,
    SOURCE_STDERR,
    SOURCE_COMPILE,
    SOURCE_ARTIFACTS,
    SOURCES,
};

struct al_init {
    enum al_init_phase phase;
    struct al_frame_reader reader;
    struct al_buf job_text; /* what the plan points into */
    struct al_buf filter_text;
    struct sock_fprog filter; /* len 0: it has not come */
    struct al_container_plan plan;
    struct al_items items;
    struct al_figures figures;
    struct al_limits limits;
    struct al_stage_mark *mark;
    struct al_buf out; /* to airlockd */
    int sources[SOURCES];
    int stdin_fd;
    struct al_buf in; /* stdin that the program has not read */
    bool stdin_ended;
    uint32_t stdin_taken; /* not said yet */
    int status_fd;
    int children_fd;
    pid_t pid;
    bool started, announced, terminal;
    bool program_started; /* not only a compile step */
    uint32_t early_signals;
    int64_t deadline_ns; /* of this phase; 0: none */
    struct al_msg_exit exit;
};

/* --- talk.c --- */

/* Says what is wrong for people, and ends the container. */
_Noreturn void al_init_die(const char *what);
void al_init_say(struct al_init *i, enum al_frame_type type, const void *data, size_t n);

void al_init_read_down(struct al_init *i);
void al_init_write_up(struct al_init *i);
bool al_init_has_room(const struct al_init *i);
void al_init_read_source(struct al_init *i, enum al_init_source source);
void al_init_write_stdin(struct al_init *i);

/* --- receive.c --- */

/* One frame of a job that has not begun. */
void al_init_receive(struct al_init *i, const struct al_frame *f);

/* --- stage.c --- */

void al_init_start_stage(struct al_init *i, enum al_init_phase phase);
void al_init_read_status(struct al_init *i);
void al_init_signal(struct al_init *i, int signo);
void al_init_reap(struct al_init *i);

/* --- end.c --- */

/* Ends the job: everything but this process dies. */
void al_init_kill_all(struct al_init *i);
void al_init_kill_for_caller(struct al_init *i);
/* The same, for a reason of ours. */
void al_init_fail(struct al_init *i, const char *text);
void al_init_set_error(struct al_init *i, const char *text);
/* There are no children any more. */
void al_init_on_alone(struct al_init *i);
/* There is more memory, or there will be none. */
void al_init_on_room(struct al_init *i);
