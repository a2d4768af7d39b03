/*
 * A job's group has its memory and CPU limits, and below it "run", in which its processes are and
 * are counted. A process that is charged to the job but none of its own (not `counted`) is in "set"
 * beside it. The sums of both are the group's own figures.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/api/backend.h"
#include "backends/base/io.h"
#include "backends/launcher/cgroup_internal.h"

#define PART_MAX   128
#define WEIGHT_MAX 10000 /* the kernel's; a new group has 100 */

static int dir_of(const struct al_cgroups *groups)
{
    return groups->dirs[0].fd; /* one hierarchy has them all */
}

#define RUN "run"
#define SET "set"

static const char *path_of(const char *name, const char *part, char ret[PART_MAX])
{
    snprintf(ret, PART_MAX, "%s/%s", name, part);
    return ret;
}

static int make_part(const struct al_cgroups *groups, const char *path, struct al_err *err)
{
    if (mkdirat(dir_of(groups), path, 0755) < 0 && errno != EEXIST) {
        return al_err_errno(err, errno, "mkdir %s/%s", groups->dirs[0].path, path);
    }
    return 0;
}

static int remove_v2(const struct al_cgroups *groups, const char *name)
{
    char path[PART_MAX];
    al_cgroup_remove(groups, path_of(name, RUN, path));
    al_cgroup_remove(groups, path_of(name, SET, path));
    return al_cgroup_remove(groups, name); /* busy while one of them is */
}

static int write_text(const struct al_cgroups *groups, const char *name, const char *file,
                      const char *text, struct al_err *err)
{
    char path[PART_MAX];
    int rc = al_io_write_file(dir_of(groups), path_of(name, file, path), text);
    return rc < 0 ? al_err_errno(err, -rc, "%s", file) : 0;
}

static int make_v2(const struct al_cgroups *groups, const char *name, struct al_err *err)
{
    char path[PART_MAX];
    if (mkdirat(dir_of(groups), name, 0755) < 0) {
        return al_err_errno(err, errno, "mkdir %s/%s", groups->dirs[0].path, name);
    }
    int rc = make_part(groups, path_of(name, RUN, path), err);
    if (rc == 0 && groups->layers & AL_LAYER_CGROUP_PIDS) {
        rc = write_text(groups, name, "cgroup.subtree_control", "+pids", err);
    }
    if (rc < 0) {
        remove_v2(groups, name);
    }
    return rc;
}

/* A process that is born in its group takes no lock; one that moves by way of cgroup.procs stops
 * all of the machine's forks, and waits for that some milliseconds. */
static int open_v2(const struct al_cgroups *groups, const char *name, bool counted,
                   struct al_err *err)
{
    char path[PART_MAX];
    int rc = make_part(groups, path_of(name, counted ? RUN : SET, path), err);
    if (rc < 0) {
        return rc;
    }
    int fd = openat(dir_of(groups), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? al_err_errno(err, errno, "open %s/%s", groups->dirs[0].path, path) : fd;
}

static int join_v2(const struct al_cgroups *groups, const char *name, bool counted,
                   struct al_err *err)
{
    char path[PART_MAX];
    int rc = make_part(groups, path_of(name, counted ? RUN : SET, path), err);
    return rc < 0 ? rc : write_text(groups, path, "cgroup.procs", "0", err);
}

/* Where version 1 refuses a limit below what is used, this one kills. What can be reclaimed is (a
 * kernel before 5.19 has no such file, and then it counts as used). */
static int narrow_memory(int dir, const char *name, uint64_t bytes)
{
    uint64_t used = al_cgroup_read(dir, name, "memory.current");
    if (used > bytes) {
        al_cgroup_write(dir, name, "memory.reclaim", used - bytes);
        used = al_cgroup_read(dir, name, "memory.current");
    }
    return used > bytes ? -EBUSY : al_cgroup_write(dir, name, "memory.max", bytes);
}

static int limit_memory(int dir, const char *name, uint32_t mb, struct al_err *err)
{
    /* A kernel without swap accounting has no such file. */
    int rc = al_cgroup_write(dir, name, "memory.swap.max", 0);
    if (rc < 0 && rc != -ENOENT) {
        return al_err_errno(err, -rc, "memory.swap.max");
    }
    rc = narrow_memory(dir, name, (uint64_t)mb << 20);
    return rc < 0
               ? al_err_errno(err, -rc, "memory_mb: %u MiB are too few to start a program in", mb)
               : 0;
}

static int limit_v2(const struct al_cgroups *groups, const char *name,
                    const struct al_quotas *quotas, struct al_err *err)
{
    char path[PART_MAX];
    int dir = dir_of(groups);
    int rc = groups->layers & AL_LAYER_CGROUP_MEMORY
                 ? limit_memory(dir, name, quotas->memory_mb, err)
                 : 0;
    if (rc < 0 || !(groups->layers & AL_LAYER_CGROUP_PIDS)) {
        return rc;
    }
    rc = al_cgroup_write(dir, path_of(name, RUN, path), "pids.max", quotas->pids);
    return rc < 0 ? al_err_errno(err, -rc, "pids.max") : 0;
}

static int64_t cpu_us_v2(const struct al_cgroups *groups, const char *name)
{
    return (int64_t)al_cgroup_read_keyed(dir_of(groups), name, "cpu.stat", "usage_usec");
}

static int open_cpu_v2(const struct al_cgroups *groups, const char *name)
{
    return al_cgroup_open(dir_of(groups), name, "cpu.stat");
}

static bool is_empty_v2(const struct al_cgroups *groups, const char *name)
{
    char run[PART_MAX];
    return al_cgroup_is_zero(dir_of(groups), path_of(name, RUN, run), "pids.current");
}

static void share_v2(const struct al_cgroups *groups, const char *name, uint32_t percent)
{
    al_cgroup_write(dir_of(groups), name, "cpu.weight",
                    percent < WEIGHT_MAX ? percent : WEIGHT_MAX);
}

static void usage_v2(const struct al_cgroups *groups, const char *name, struct al_cgroup_usage *ret)
{
    char run[PART_MAX];
    int dir = dir_of(groups);
    path_of(name, RUN, run);
    *ret = (struct al_cgroup_usage){
        .cpu_us = cpu_us_v2(groups, name),
        .memory_peak_bytes = al_cgroup_read(dir, name, "memory.peak"),
        .oom_kills = (uint32_t)al_cgroup_read_keyed(dir, name, "memory.events", "oom_kill"),
        .pids_denied = (uint32_t)al_cgroup_read_keyed(dir, run, "pids.events", "max"),
        .pids_peak = (uint32_t)al_cgroup_read(dir, run, "pids.peak"),
    };
}

static void kill_group(int dir, const char *name)
{
    al_cgroup_write(dir, name, "cgroup.kill", 1);
}

static bool sweep_v2(const struct al_cgroups *groups, bool folder)
{
    return al_cgroup_sweep(groups, folder, kill_group);
}

const struct al_cgroup_ops al_cgroup_v2_ops = {
    .name = "cgroup v2",
    .make = make_v2,
    .open = open_v2,
    .join = join_v2,
    .limit = limit_v2,
    .cpu_us = cpu_us_v2,
    .open_cpu = open_cpu_v2,
    .is_empty = is_empty_v2,
    .share = share_v2,
    .usage = usage_v2,
    .remove = remove_v2,
    .sweep = sweep_v2,
};
