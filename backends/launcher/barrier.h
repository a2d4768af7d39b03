/*
 * The things that stand between a program and the machine, as far as the launcher itself puts them
 * there. The code that does it asks whether it should, and in the product the answer is always yes,
 * known to the compiler: nothing is left of the question. Only the build of the escape suite
 * (tests/escape), which defines AL_ESCAPE_SUITE and is never installed, links an answer of its own,
 * so as to show that each of its attacks is really stopped by what is said to stop it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum al_barrier {
    AL_BARRIER_SECCOMP,      /* the filter of system calls */
    AL_BARRIER_NO_NEW_PRIVS, /* setuid programs give nothing */
    AL_BARRIER_CAPABILITIES, /* all sets are emptied */
    AL_BARRIER_CELL_UID,     /* in its cell, the program is not root */
    AL_BARRIER_OWN_UIDS,     /* of the host, for each job */
    AL_BARRIER_NETNS,
    AL_BARRIER_IPCNS,
    AL_BARRIER_UTSNS,
    AL_BARRIER_CGROUPNS,
    AL_BARRIER_FDS,       /* nobody inherits one */
    AL_BARRIER_ARGUMENTS, /* and environment of the launcher are wiped from its memory */
    AL_BARRIER_DUMPABLE,  /* neither init nor what becomes the program can be looked into */
    AL_BARRIER_HOST_ROOT, /* the host's file system is left and detached */
    AL_BARRIER_READ_ONLY, /* what a cell sees of the host */
    AL_BARRIER_NOSUID,
    AL_BARRIER_NODEV,
    AL_BARRIER_OWN_PROC,  /* a /proc that knows the cell's processes only */
    AL_BARRIER_PROC_MASK, /* parts of it are hidden or read-only */
    AL_BARRIER_WORKDIR,   /* resolved without links */
    AL_BARRIER_DISK,      /* a bound to what the cell can write */
    AL_BARRIER_RLIMITS,
    AL_BARRIER_CGROUP, /* limits of memory and processes */
    AL_BARRIERS,
};

#ifdef AL_ESCAPE_SUITE
bool al_escape_suite_keeps(enum al_barrier barrier);

static inline bool al_barrier_is_on(enum al_barrier barrier)
{
    return al_escape_suite_keeps(barrier);
}
#else
static inline bool al_barrier_is_on(enum al_barrier barrier)
{
    (void)barrier;
    return true;
}
#endif

/* `flags` where the barrier is on, else none of them. */
static inline uint64_t al_barrier_flags(enum al_barrier barrier, uint64_t flags)
{
    return al_barrier_is_on(barrier) ? flags : 0;
}
