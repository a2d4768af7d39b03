/*
 * The system-call filter of native cells, compiled once when the launcher starts, so that a job
 * only loads it.
 */
#pragma once

#include <linux/filter.h>

#include "backends/base/err.h"

/* RLIMIT_CORE of every program: no core file, and with 1 (not with 0) the kernel does not start the
 * host's crash handler either, as root and outside of the cell. The filter keeps a program from
 * changing it. */
#define AL_CORE_LIMIT 1

/* The program is owned by the caller (free ->filter) and is good for prctl(PR_SET_SECCOMP) and
 * seccomp(2). */
int al_seccomp_build(struct sock_fprog *ret, struct al_err *err);
