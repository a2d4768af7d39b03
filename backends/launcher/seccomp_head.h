/* What libseccomp has no words for: the first instructions of the filter. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#define AL_SECCOMP_HEAD_MAX 32

/* Fills `ret` and returns the number of instructions. What they do not decide goes on behind their
 * last one. */
size_t al_seccomp_head(struct sock_filter ret[AL_SECCOMP_HEAD_MAX]);
