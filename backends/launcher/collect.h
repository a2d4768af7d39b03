/*
 * The collector: a process in a job's cell, cloned once the program has ended, that sends the
 * files which the job's globs name. It has the program's user, filter and cgroups, and no
 * privilege; what it sends is hostile bytes for airlockd.
 */
#pragma once

#include "backends/launcher/message.h"

/* The launcher kills a collector that takes longer: what it has sent by then counts. */
#define AL_COLLECT_MAX_NS (5 * (int64_t)1000000000)

struct al_collect {
    int out;             /* write end of the artifacts pipe */
    int bundle;          /* the job's: holds the globs */
    int status_fd;       /* for an error */
    const char *root;    /* the folder that workdir is below, which no program can replace */
    const char *workdir; /* relative to root */
    uint64_t bytes_max;  /* of all contents together */
};

/* In the process itself, with the job's uid and without privileges. Closes all other fds. Does not
 * return. */
_Noreturn void al_collect_main(const struct al_collect *collect);
