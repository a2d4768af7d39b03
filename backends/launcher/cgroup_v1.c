#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/api/backend.h"
#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/cgroup.h"

#define SWEEP_MS     1000
#define SOCKETS_PART 4 /* of memory_mb, which socket buffers may take besides */

static int write_value(int dir, const char *name, const char *file, uint64_t value)
{
    char path[128], text[32];
    snprintf(path, sizeof path, "%s/%s", name, file);
    snprintf(text, sizeof text, "%" PRIu64, value);
    return al_io_write_file(dir, path, text);
}

static uint64_t read_value(int dir, const char *name, const char *file)
{
    char path[128], text[64];
    snprintf(path, sizeof path, "%s/%s", name, file);
    return al_io_read_file(dir, path, text, sizeof text) > 0 ? strtoull(text, NULL, 10) : 0;
}

/* The number behind `key` in a file of "key number" lines. */
static uint64_t read_keyed(int dir, const char *name, const char *file, const char *key)
{
    char path[128], text[512];
    snprintf(path, sizeof path, "%s/%s", name, file);
    if (al_io_read_file(dir, path, text, sizeof text) <= 0) {
        return 0;
    }
    size_t n = strlen(key);
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ' ') {
            return strtoull(line + n, NULL, 10);
        }
    }
    return 0;
}

static int remove_v1(const struct al_cgroups *groups, const char *name)
{
    int result = 0;
    for (size_t i = 0; i < groups->n_dirs; i++) {
        if (unlinkat(groups->dirs[i].fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
            result = -errno;
        }
    }
    return result;
}

static int limit_v1(const struct al_cgroups *groups, const char *name,
                    const struct al_quotas *quotas, struct al_err *err)
{
    int memory = groups->dirs[groups->memory].fd;
    uint64_t bytes = (uint64_t)quotas->memory_mb << 20;
    int rc = write_value(memory, name, "memory.limit_in_bytes", bytes);
    if (rc == -EINVAL) { /* above the other limit that an earlier call has set, which goes first */
        write_value(memory, name, "memory.memsw.limit_in_bytes", bytes);
        rc = write_value(memory, name, "memory.limit_in_bytes", bytes);
    }
    if (rc < 0) {
        return al_err_errno(err, -rc, "memory_mb: %u MiB are too few to start a program in",
                            quotas->memory_mb);
    }
    /* Memory plus swap; a kernel without swap accounting has no such file, and then swappiness 0
     * keeps the job out of swap as far as that kernel can. */
    rc = write_value(memory, name, "memory.memsw.limit_in_bytes", bytes);
    if (rc == -ENOENT || rc == -EACCES || rc == -EOPNOTSUPP) {
        rc = write_value(memory, name, "memory.swappiness", 0);
    }
    if (rc < 0) {
        return al_err_errno(err, -rc, "memory.memsw.limit_in_bytes");
    }
    /* What sockets hold counts apart, and not at all without a limit: a cell's loopback could take
     * the TCP and UDP memory of the whole machine. */
    rc = write_value(memory, name, "memory.kmem.tcp.limit_in_bytes", bytes / SOCKETS_PART);
    if (rc < 0 && rc != -ENOENT) {
        return al_err_errno(err, -rc, "memory.kmem.tcp.limit_in_bytes");
    }
    rc = write_value(groups->dirs[groups->pids].fd, name, "pids.max", quotas->pids);
    return rc < 0 ? al_err_errno(err, -rc, "pids.max") : 0;
}

static int make_v1(const struct al_cgroups *groups, const char *name, struct al_err *err)
{
    for (size_t i = 0; i < groups->n_dirs; i++) {
        if (mkdirat(groups->dirs[i].fd, name, 0755) < 0) {
            int rc = al_err_errno(err, errno, "mkdir %s/%s", groups->dirs[i].path, name);
            remove_v1(groups, name);
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
    uint64_t ns = read_value(groups->dirs[groups->cpuacct].fd, name, "cpuacct.usage");
    return (int64_t)(ns / 1000);
}

static bool is_empty_v1(const struct al_cgroups *groups, const char *name)
{
    char path[128], text[16];
    snprintf(path, sizeof path, "%s/pids.current", name);
    return al_io_read_file(groups->dirs[groups->pids].fd, path, text, sizeof text) > 0 &&
           strcmp(text, "0\n") == 0;
}

static void share_v1(const struct al_cgroups *groups, const char *name, uint32_t percent)
{
    write_value(groups->dirs[groups->cpu].fd, name, "cpu.shares", AL_CGROUP_SHARES * percent / 100);
}

static void usage_v1(const struct al_cgroups *groups, const char *name, struct al_cgroup_usage *ret)
{
    int memory = groups->dirs[groups->memory].fd;
    int pids = groups->dirs[groups->pids].fd;
    *ret = (struct al_cgroup_usage){
        .cpu_us = cpu_us_v1(groups, name),
        .memory_peak_bytes = read_value(memory, name, "memory.max_usage_in_bytes"),
        .oom_kills = (uint32_t)read_keyed(memory, name, "memory.oom_control", "oom_kill"),
        .pids_denied = (uint32_t)read_keyed(pids, name, "pids.events", "max"),
        .pids_peak = (uint32_t)read_value(pids, name, "pids.peak"),
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

/* One pass over a hierarchy; how many groups are left. */
static size_t sweep_dir(int dir)
{
    al_auto_close int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    al_auto_closedir DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        return 0;
    }
    al_steal_fd(&fd); /* d owns it */
    size_t left = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_type == DT_DIR && e->d_name[0] != '.') {
            kill_group(dir, e->d_name);
            left += unlinkat(dir, e->d_name, AT_REMOVEDIR) < 0 && errno != ENOENT;
        }
    }
    return left;
}

/* Each once only: a folder that is there again is the next launcher's. How many are left: a process
 * that was just being born may have made a group behind the sweep. */
static size_t remove_folders(const struct al_cgroups *groups, bool gone[AL_CGROUP_DIRS_MAX])
{
    size_t left = 0;
    for (size_t i = 0; i < groups->n_dirs; i++) {
        gone[i] = gone[i] || rmdir(groups->dirs[i].path) == 0;
        left += !gone[i];
    }
    return left;
}

static bool sweep_v1(const struct al_cgroups *groups, bool folder)
{
    int64_t deadline_ms = al_now_ms() + SWEEP_MS;
    bool gone[AL_CGROUP_DIRS_MAX] = {false};
    for (;;) {
        size_t left = 0;
        for (size_t i = 0; i < groups->n_dirs; i++) {
            left += sweep_dir(groups->dirs[i].fd);
        }
        if (left == 0 && folder) {
            left = remove_folders(groups, gone);
        }
        if (left == 0 || al_now_ms() > deadline_ms) {
            return left == 0;
        }
        usleep(5000);
    }
}

const struct al_cgroup_ops al_cgroup_v1_ops = {
    .name = "cgroup v1",
    .layers = AL_LAYER_CGROUP_MEMORY | AL_LAYER_CGROUP_PIDS | AL_LAYER_CGROUP_CPU,
    .make = make_v1,
    .limit = limit_v1,
    .join = join_v1,
    .cpu_us = cpu_us_v1,
    .is_empty = is_empty_v1,
    .share = share_v1,
    .usage = usage_v1,
    .remove = remove_v1,
    .sweep = sweep_v1,
};
