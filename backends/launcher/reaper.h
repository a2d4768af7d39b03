/*
 * A second privileged process that removes what ended jobs leave (their cgroups and
 * mounts), so that waiting for the kernel never stalls the next SPAWN nor the job's own EXIT. When
 * the launcher is gone, however it went, the reaper kills what is left of the instance, removes its
 * folders, and ends.
 */
#pragma once

#include <stdbool.h>

#include "backends/base/err.h"
#include "backends/launcher/cgroup.h"

/* Forks the reaper; *ret_fd is the launcher's end of its socket. */
int al_reaper_start(const struct al_cgroups *groups, int *ret_fd, struct al_err *err);

/* Hands over an ended job, and its mount namespace, which ends with the last fd of it (-1: none;
 * the caller's own is to be closed by the caller). Never blocks: false when the reaper is too far
 * behind to take it. */
bool al_reaper_remove(int fd, const char *job_id, int mounts_fd);
