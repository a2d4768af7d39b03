#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/api/backend.h"
#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/cgroup_internal.h"

#define SOCKETS_PART 4      /* of memory_mb, which socket buffers may take besides */
#define SHARES_USUAL 1024   /* the kernel's */
#define SHARES_MAX   262144 /* the kernel's */

static int limit_v1(const struct al_cgroups *groups, const char *name,
                    const struct al_quotas *quotas, struct al_err *err)
{
    int memory = groups->dirs[groups->memory].fd;
    uint64_t bytes = (uint64_t)quotas->memory_mb << 20;
    int rc = al_cgroup_write(memory, name, "memory.limit_in_bytes", bytes);
    if (rc == -EINVAL) { /* above the other limit that an earlier call has set, which goes first */
        al_cgroup_write(memory, name, "memory.memsw.limit_in_bytes", bytes);
        rc = al_cgroup_write(memory, name, "memory.limit_in_bytes", bytes);
    }
    if (rc < 0) {
        return al_err_errno(err, -rc, "memory_mb: %u MiB are too few to start a program in",
                            quotas->memory_mb);
    }
    /* Memory plus swap; a kernel without swap accounting has no such file, and then swappiness 0
     * keeps the job out of swap as far as that kernel can. */
    rc = al_cgroup_write(memory, name, "memory.memsw.limit_in_bytes", bytes);
    if (rc == -ENOENT || rc == -EACCES || rc == -EOPNOTSUPP) {
        rc = al_cgroup_write(memory, name, "memory.swappiness", 0);
    }
    if (rc < 0) {
        return al_err_errno(err, -rc, "memory.memsw.limit_in_bytes");
    }
    /* What sockets hold counts apart, and not at all without a limit: a cell's loopback could take
     * the TCP and UDP memory of the whole machine. */
    rc = al_cgroup_write(memory, name, "memory.kmem.tcp.limit_in_bytes", bytes / SOCKETS_PART);
    if (rc < 0 && rc != -ENOENT) {
        return al_err_errno(err, -rc, "memory.kmem.tcp.limit_in_bytes");
    }
    rc = al_cgroup_write(groups->dirs[groups->pids].fd, name, "pids.max", quotas->pids);
    return rc < 0 ? al_err_errno(err, -rc, "pids.max") : 0;
}

static int make_v1(const struct al_cgroups *groups, const char *name, struct al_err *err)
{
    for (size_t i = 0; i < groups->n_dirs; i++) {
        if (mkdirat(groups->dirs[i].fd, name, 0755) < 0) {
            int rc = al_err_errno(err, errno, "mkdir %s/%s", groups->dirs[i].path, name);
            al_cgroup_remove(groups, name);
            return rc;
        }
    }
    return 0;
}

/* By way of `tasks`: a thread that moves itself needs no lock over all of the machine's forks, for
 * which `cgroup.procs` waits 8 ms at the median when nobody has taken it for a while. The caller
 * has one thread. */
static int join_v1(const struct al_cgroups *groups, const char *name, bool counted,
                   struct al_err *err)
{
    char path[64];
    snprintf(path, sizeof path, "%s/tasks", name);
    for (size_t i = 0; i < groups->n_dirs; i++) {
        if (!counted && i == (size_t)groups->pids) {
            continue;
        }
        int rc = al_io_write_file(groups->dirs[i].fd, path, "0");
        if (rc < 0) {
            return al_err_errno(err, -rc, "cannot join %s/%s", groups->dirs[i].path, name);
        }
    }
    return 0;
}

static int64_t cpu_us_v1(const struct al_cgroups *groups, const char *name)
{
    uint64_t ns = al_cgroup_read(groups->dirs[groups->cpuacct].fd, name, "cpuacct.usage");
    return (int64_t)(ns / 1000);
}

static int open_cpu_v1(const struct al_cgroups *groups, const char *name)
{
    return al_cgroup_open(groups->dirs[groups->cpuacct].fd, name, "cpuacct.usage");
}

static bool is_empty_v1(const struct al_cgroups *groups, const char *name)
{
    return al_cgroup_is_zero(groups->dirs[groups->pids].fd, name, "pids.current");
}

static void share_v1(const struct al_cgroups *groups, const char *name, uint32_t percent)
{
    uint64_t shares = (uint64_t)SHARES_USUAL * percent / 100;
    al_cgroup_write(groups->dirs[groups->cpu].fd, name, "cpu.shares",
                    shares < SHARES_MAX ? shares : SHARES_MAX);
}

static void usage_v1(const struct al_cgroups *groups, const char *name, struct al_cgroup_usage *ret)
{
    int memory = groups->dirs[groups->memory].fd;
    int pids = groups->dirs[groups->pids].fd;
    *ret = (struct al_cgroup_usage){
        .cpu_us = cpu_us_v1(groups, name),
        .memory_peak_bytes = al_cgroup_read(memory, name, "memory.max_usage_in_bytes"),
        .oom_kills = (uint32_t)al_cgroup_read_keyed(memory, name, "memory.oom_control", "oom_kill"),
        .pids_denied = (uint32_t)al_cgroup_read_keyed(pids, name, "pids.events", "max"),
        .pids_peak = (uint32_t)al_cgroup_read(pids, name, "pids.peak"),
    };
}

static void kill_group(int dir, const char *name)
{
    char path[NAME_MAX + 32];
    snprintf(path, sizeof path, "%s/cgroup.procs", name);
    al_auto_close int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    al_auto_fclose FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    if (!f) {
        return;
    }
    al_steal_fd(&fd); /* f owns it */
    for (char line[32]; fgets(line, sizeof line, f);) {
        long pid = strtol(line, NULL, 10);
        if (pid > 1) {
            kill((pid_t)pid, SIGKILL);
        }
    }
}

static bool sweep_v1(const struct al_cgroups *groups, bool folder)
{
    return al_cgroup_sweep(groups, folder, kill_group);
}

const struct al_cgroup_ops al_cgroup_v1_ops = {
    .name = "cgroup v1",
    .make = make_v1,
    .join = join_v1,
    .limit = limit_v1,
    .cpu_us = cpu_us_v1,
    .open_cpu = open_cpu_v1,
    .is_empty = is_empty_v1,
    .share = share_v1,
    .usage = usage_v1,
    .remove = al_cgroup_remove,
    .sweep = sweep_v1,
};

int al_cgroups_init_v1(struct al_cgroups *groups, const char *parent, const char *instance,
                       struct al_err *err)
{
    *groups = (struct al_cgroups){.ops = &al_cgroup_v1_ops, .layers = AL_LAYERS_CGROUP};
    static const char *const controllers[] = {"memory", "pids", "cpu", "cpuacct"};
    int *const indices[] = {&groups->memory, &groups->pids, &groups->cpu, &groups->cpuacct};
    for (size_t i = 0; i < 4; i++) {
        char base[AL_CGROUP_PATH_MAX];
        if (!al_cgroup_path(controllers[i], parent, base)) {
            return al_err_set(err, AL_ERR_FAILED_PRECONDITION,
                              "no cgroup hierarchy with the controller '%s' is mounted",
                              controllers[i]);
        }
        int index = al_cgroup_add_dir(groups, base, instance, err);
        if (index < 0) {
            return index;
        }
        *indices[i] = index;
    }
    return 0;
}
