/*
 * The warden: our process inside a jail of bubblewrap's or firejail's, which the tool starts in the
 * program's place. It is this very binary, executed anew, with nothing but one end of a socket, its
 * link, and a file of its cgroup. It checks that the jail has the layers that it is to have, and
 * then does what the launcher orders: start a stage, which it waits for, pass signals on to it,
 * become the collector. It has the program's user and no privilege. Of all that the launcher says
 * of a job, only whether the program has been executed and how it ended is the warden's word.
 */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

#include "backends/base/err.h"
#include "backends/launcher/cell.h"
#include "backends/launcher/config.h"

#define AL_WARDEN_OPTION     "--warden"
#define AL_WARDEN_FILTER_MAX 512
#define AL_WARDEN_WORDS_MAX  12288 /* two lists of AL_ARGV_MAX words of a configuration's line */

/* Kinds of namespaces, in the order of their layers (enum al_layer). */
#define AL_WARDEN_NAMESPACES 7

/* Both sides are one binary: a datagram is one of these structs as it lies in memory. */
enum al_order_type {
    AL_ORDER_CHECK = 1, /* the first one */
    AL_ORDER_STAGE,     /* its fds, AL_STAGE_FDS as for any assignment, come along */
    AL_ORDER_SIGNAL,
};

struct al_order_check {
    enum al_order_type type;
    uint32_t layers;                        /* that the jail must have */
    uint64_t outside[AL_WARDEN_NAMESPACES]; /* the launcher's own namespaces, by inode */
    bool user_namespace;                    /* for the warden to make */
    uint32_t n_filter; /* a filter for the warden to load; 0: the tool was given it */
    struct sock_filter filter[AL_WARDEN_FILTER_MAX];
};

struct al_order_stage {
    enum al_order_type type;
    struct al_assignment assignment;
    char code_file[AL_RUNTIME_NAME_MAX];
    char output_file[AL_RUNTIME_NAME_MAX];
    uint32_t n_argv, n_compile;
    char words[AL_WARDEN_WORDS_MAX]; /* of argv, then of compile; each with its NUL */
};

struct al_order_signal {
    enum al_order_type type;
    int32_t signo;
};

/* A stage's process itself says, in a datagram of its own (struct al_mark), that it is about to
 * exec: what it becomes may end the warden before that comes to say it. */
enum al_report_type {
    AL_REPORT_READY = 1, /* the jail is as it should be: waits for a stage */
    AL_REPORT_ENDED,     /* it has ended, with `wait_status` */
    AL_REPORT_FAILED,    /* why it could not begin, or the jail is none */
};

struct al_report {
    enum al_report_type type;
    int32_t wait_status;
    char text[AL_ERR_TEXT_MAX];
};

/* The namespaces of the calling process; 0 for those that the kernel does not have. */
void al_warden_namespaces(uint64_t ret[AL_WARDEN_NAMESPACES]);

/* Fills in what the stage's runtime is. -E2BIG when it has too many words. */
int al_order_stage_init(struct al_order_stage *ret, const struct al_assignment *assignment,
                        const struct al_runtime *runtime);

/* The runtime that the order has; the words lie in the order. False when it is malformed. */
bool al_order_stage_runtime(struct al_order_stage *order, struct al_runtime *ret);

/* `cpu_fd`: a file that says what CPU time the job's cgroup has used. */
_Noreturn void al_warden_main(int link_fd, int cpu_fd);
