/*
 * The control groups of an instance's jobs: one ops table a kernel interface. Version 1 today;
 * version 2 joins as a second table. All entries need root. A group is named by its job id and
 * lives below the instance's own folder, so that a sweep touches nothing of others.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/api/job_spec.h"
#include "backends/base/err.h"

#define AL_CGROUP_DIRS_MAX 4

/* Version 1's cpu.shares of a new group, and the most; the kernel's own. */
#define AL_CGROUP_SHARES     1024
#define AL_CGROUP_SHARES_MAX 262144

struct al_cgroup_usage {
    int64_t cpu_us;
    uint64_t memory_peak_bytes;
    uint32_t oom_kills;
    uint32_t pids_denied;
    uint32_t pids_peak; /* 0: this kernel does not say */
};

struct al_cgroups;

struct al_cgroup_ops {
    const char *name;
    uint32_t layers; /* enum al_layer that a group enforces */
    /* Makes the group, without limits. On failure nothing is left. */
    int (*make)(const struct al_cgroups *groups, const char *name, struct al_err *err);
    /* Writes the limits; the group may be in use already. Needs only the folders' fds and root's
     * own uid, so that a process inside of a cell can still do it. */
    int (*limit)(const struct al_cgroups *groups, const char *name, const struct al_quotas *quotas,
                 struct al_err *err);
    /* Moves the calling process, which has one thread, in. Not `counted`: it is none of the job's
     * processes, and only what it uses is charged. */
    int (*join)(const struct al_cgroups *groups, const char *name, bool counted,
                struct al_err *err);
    /* User and system time so far; 0 when the group is not there. */
    int64_t (*cpu_us)(const struct al_cgroups *groups, const char *name);
    /* True when it is certain that no counted process is in the group. */
    bool (*is_empty)(const struct al_cgroups *groups, const char *name);
    /* Sets the group's share of the processors, in percent of a new group's. NULL: all groups are
     * equal. A failure only leaves the share as it was. */
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
    size_t n_dirs;
    struct {
        int fd; /* the instance's folder */
        char path[512];
    } dirs[AL_CGROUP_DIRS_MAX];
    int memory, pids, cpu, cpuacct; /* indices into dirs */
};

/* Finds the hierarchies and makes the instance's folders. `parent` "": below the launcher's own
 * groups. */
int al_cgroups_init(struct al_cgroups *groups, const char *parent, const char *instance,
                    struct al_err *err);

extern const struct al_cgroup_ops al_cgroup_v1_ops;
