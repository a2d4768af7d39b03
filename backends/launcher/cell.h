/*
 * A cell and the processes in it. al_cell_create and al_cell_start run in the launcher and only
 * clone and pass fds; all set-up happens in the children, which report over the status pipe: a line
 * of text when something failed, and the end of the pipe, without text, once the program has been
 * exec'd.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"
#include "backends/launcher/cgroup.h"
#include "backends/launcher/config.h"
#include "backends/launcher/message.h"

struct al_jail;

/* What a cell's processes know from birth. Borrowed, and only read. */
struct al_cell_plan {
    enum al_cell_kind kind;
    const struct al_cells_config *config;
    const struct al_cgroups *cgroups;
    const struct sock_fprog *filter;
    const struct al_jail *jail; /* of a jail: its tool */
    const char *name;           /* of the cell's cgroups */
    uid_t init_uid;             /* host ids; in a native cell they appear as 0 and AL_CELL_UID */
    uid_t program_uid;
    struct al_quotas quotas; /* memory, pids and disk are set at birth */
    int32_t runtime;         /* whose interpreter is started ahead, or AL_RUNTIME_NONE */
    int start[2];            /* then: a pipe on which the interpreter hears of its program; */
    int stdio[3];            /* and its ends of the program's pipes */
    pid_t interpreter;
};

/* What a process in a cell is there for. */
enum al_role {
    AL_ROLE_FIRST,       /* the cell's first: makes its cgroups, awaits init, then its assignment */
    AL_ROLE_NEXT,        /* after a compile step: awaits its assignment */
    AL_ROLE_INTERPRETER, /* the cell's first: execs an interpreter, which awaits its program */
    AL_ROLE_SETTER,      /* awaits the assignment in the interpreter's stead; outside of the cell's
                            pid namespace, so that the program never sees it */
};

static inline bool al_role_is_first(enum al_role role)
{
    return role == AL_ROLE_FIRST || role == AL_ROLE_INTERPRETER;
}

struct al_cell {
    pid_t init_pid;
    int init_pidfd;
    int mounts_fd; /* holds the mount namespace, so that it ends where this is closed last; or -1 */
    int alive_fd;  /* init ends when this end is closed; see al_cell_take */
    int ready_fd;  /* a byte comes when init has built the cell, one more when it has resized it */
};

enum al_stage {
    AL_STAGE_COMPILE,
    AL_STAGE_RUN,
    AL_STAGE_COLLECT, /* no exec: its stdout is the artifacts pipe */
};

/* What a waiting process is told to become. */
struct al_assignment {
    enum al_stage stage;
    bool first;       /* of its cell: unpacks the bundle */
    bool resized;     /* init has been told to: wait for it */
    uint32_t runtime; /* index into the configuration's */
    struct al_msg_spawn spawn;
};

/* What a process says of itself over the status pipe: when it has nothing left to do but wait for
 * its assignment, and right before exec, of which the launcher may come to read late. Error texts
 * never begin with a NUL byte, this does. */
struct al_mark {
    uint64_t tag;   /* 0 */
    int64_t at_ns;  /* of exec, CLOCK_MONOTONIC; or AL_MARK_SETTLED */
    int64_t cpu_us; /* what the cell's group has used so far */
};
#define AL_MARK_SETTLED 0

/* Passed along with it: the bundle, and the program's ends of its pipes, if it has not got them. */
enum {
    AL_STAGE_BUNDLE,
    AL_STAGE_STDIN,
    AL_STAGE_STDOUT,
    AL_STAGE_STDERR,
    AL_STAGE_FDS,
};

struct al_process {
    pid_t pid;
    int pidfd;
};

/* The layers that a cell of the kind has where nothing is missing. */
uint32_t al_cell_possible_layers(enum al_cell_kind kind);

/* Those that it enforces here. Only cgroups and, without root, an own uid can be missing: without
 * another there is no cell. */
uint32_t al_cell_layers(enum al_cell_kind kind, const struct al_cells_config *config,
                        const struct al_cgroups *cgroups);

/* The namespaces of a native cell besides users, processes and mounts, as flags of clone. */
uint64_t al_cell_side_flags(void);

/* What the cell's cgroups are to allow for a job with these quotas. */
struct al_quotas al_cell_quotas(enum al_cell_kind kind, const struct al_quotas *quotas);

/* Whether a cell of the kind can be cloned here at all. */
int al_cell_probe(enum al_cell_kind kind, const struct al_cells_config *config, struct al_err *err);

/* Clones init. On failure nothing is left. */
int al_cell_create(const struct al_cell_plan *plan, int status_fd, struct al_cell *ret,
                   struct al_err *err);

/* Clones a process into the cell, as the launcher's own child. */
int al_cell_start(const struct al_cell_plan *plan, const struct al_cell *cell, enum al_role role,
                  int assign_fd, int status_fd, struct al_process *ret, struct al_err *err);

/* Tells init that the cell is taken: it gives the last of its privileges away, and before that, if
 * `disk_mb` is not 0, the disk another size. */
int al_cell_take(const struct al_cell *cell, uint32_t disk_mb, struct al_err *err);

/* Tells the process at the other end of `assign_fd`; the fds stay the caller's, -1 ends them. */
int al_cell_assign(int assign_fd, const struct al_assignment *assignment,
                   const int fds[AL_STAGE_FDS], struct al_err *err);

/* Kills everything in the cell; init and the program are still to be waited for. */
void al_cell_kill(const struct al_cell *cell);

/* --- the children's sides; they do not return --- */

_Noreturn void al_init_main(const struct al_cell_plan *plan, int alive_fd, int ready_fd,
                            int status_fd);
_Noreturn void al_program_main(const struct al_cell_plan *plan, const struct al_cell *cell,
                               enum al_role role, int assign_fd, int status_fd);
