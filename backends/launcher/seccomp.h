/*
 * The system-call filter of native cells, compiled once when the launcher starts, so that a job
 * only loads it.
 */
#pragma once

#include <linux/filter.h>

#include "backends/base/err.h"

/* The program is owned by the caller (free ->filter) and is good for prctl(PR_SET_SECCOMP) and
 * seccomp(2). */
int al_seccomp_build(struct sock_fprog *ret, struct al_err *err);
