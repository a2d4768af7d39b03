/*
 * The control groups of an instance's jobs: one ops table a kernel interface (version 1, version
 * 2). A group is named by its cell and lives below the instance's own folder, so that a sweep
 * touches nothing of others. Limits mean the same on both: at the memory limit the kernel kills the
 * process that asks for more, not the job, and counts it; there is no swap; at the pids limit fork
 * fails and is counted; new groups share the processors equally, however many processes each has.
 * All entries need root, or a group that is delegated.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/api/job_spec.h"
#include "backends/base/err.h"

#define AL_CGROUP_DIRS_MAX 4

struct al_cgroup_usage {
    int64_t cpu_us;
    uint64_t memory_peak_bytes; /* 0: this kernel does not say */
    uint32_t oom_kills;
    uint32_t pids_denied;
    uint32_t pids_peak; /* 0: this kernel does not say */
};

struct al_cgroups;

struct al_cgroup_ops {
    const char *name;
    /* Makes the group, without limits. On failure nothing is left. */
    int (*make)(const struct al_cgroups *groups, const char *name, struct al_err *err);
    /* Opens the group for clone3 to start a process in it (CLONE_INTO_CGROUP); the fd is the
     * caller's. `counted` as with join. NULL: the interface cannot, and a process joins by itself.
     */
    int (*open)(const struct al_cgroups *groups, const char *name, bool counted,
                struct al_err *err);
    /* Moves the calling process, which has one thread, in. Not `counted`: it is none of the job's
     * processes, and only what it uses is charged. */
    int (*join)(const struct al_cgroups *groups, const char *name, bool counted,
                struct al_err *err);
    /* Writes the limits; the group may be in use already, and then by less than its limits: else
     * it fails and kills nobody. Needs only the folders' fds and the launcher's own uid, so that a
     * process inside of a cell can still do it. */
    int (*limit)(const struct al_cgroups *groups, const char *name, const struct al_quotas *quotas,
                 struct al_err *err);
    /* User and system time so far; 0 when the group is not there. */
    int64_t (*cpu_us)(const struct al_cgroups *groups, const char *name);
    /* Opens the file that says so, for a process which cannot reach the group: the fd, or -errno.
     */
    int (*open_cpu)(const struct al_cgroups *groups, const char *name);
    /* True when it is certain that no counted process is in the group. */
    bool (*is_empty)(const struct al_cgroups *groups, const char *name);
    /* Sets the group's share of the processors, in percent of a new group's. A failure only leaves
     * the share as it was. */
    void (*share)(const struct al_cgroups *groups, const char *name, uint32_t percent);
    /* What cannot be read stays 0. */
    void (*usage)(const struct al_cgroups *groups, const char *name, struct al_cgroup_usage *ret);
    /* Removes the group. 0 also when there is none; -EBUSY while a dying process holds it. */
    int (*remove)(const struct al_cgroups *groups, const char *name);
    /* Kills every process of every group of the instance and removes the groups, at most for a
     * second; true when none is left. With `folder`, the instance's own folder goes too. */
    bool (*sweep)(const struct al_cgroups *groups, bool folder);
};

struct al_cgroups {
    const struct al_cgroup_ops *ops;
    uint32_t layers; /* enum al_layer that a group enforces here */
    size_t n_dirs;
    struct {
        int fd; /* the instance's folder */
        char path[512];
    } dirs[AL_CGROUP_DIRS_MAX];
    int memory, pids, cpu, cpuacct; /* indices into dirs */
};

/* Finds the hierarchies and makes the instance's folders: version 1 where the memory controller is
 * mounted as such, else version 2. `parent` "": below the launcher's own groups, or in version 2
 * below the nearest group above it that can give its controllers on. */
int al_cgroups_init(struct al_cgroups *groups, const char *parent, const char *instance,
                    struct al_err *err);

/* What such a file says now. */
int64_t al_cgroup_read_cpu_us(int fd);

/* After al_cgroups_init has failed: gives back what it has made. The entries do nothing, layers and
 * n_dirs are 0. */
void al_cgroups_init_none(struct al_cgroups *groups);
