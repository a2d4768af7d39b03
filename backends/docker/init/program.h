/* The processes that a container's init starts: a compile step, the program. */
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include "backends/docker/init/items.h"

/* The program's ends of its pipes, or three times a terminal's slave. */
struct al_stage {
    const char *const *argv; /* the first is looked for in al_items_path if it has no '/' */
    bool with_args;          /* followed by the request's */
    int stdio[3];
    bool terminal;
    const struct sock_fprog *filter;
};

/* Written by the child right before exec; in memory that both have. */
struct al_stage_mark {
    int64_t at_ns;
    int64_t cpu_us;
};

struct al_figures;

/* Forks. The status pipe ends without a text once the program is executed. The pid, or -errno. */
pid_t al_stage_start(const struct al_stage *stage, struct al_items *items,
                     const struct al_figures *figures, struct al_stage_mark *mark,
                     int *ret_status_fd);

/* A terminal of that size. 0 and two fds, the master non-blocking. */
int al_stage_open_terminal(struct al_terminal_size size, int *ret_master, int *ret_slave,
                           struct al_err *err);

/* Forks a collector of the globs, which kills what is left of the program. The pid, or -errno. */
pid_t al_stage_collect(const struct al_items *items, const struct sock_fprog *filter, int out,
                       int *ret_status_fd);
