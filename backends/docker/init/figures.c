#include "backends/docker/init/figures.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backends/api/backend.h"
#include "backends/base/cleanup.h"
#include "backends/base/io.h"

#define CGROUPS   "/sys/fs/cgroup"
#define TEXT_MAX  4096
#define NO_NUMBER UINT64_MAX

/* A file of one number; "max" is none. */
static uint64_t read_number(int dir, const char *path)
{
    char text[64];
    if (dir < 0 || al_io_read_file(dir, path, text, sizeof text) <= 0 ||
        !isdigit((unsigned char)text[0]))
    {
        return NO_NUMBER;
    }
    return strtoull(text, NULL, 10);
}

/* The number behind "key " at the beginning of a line, else 0. */
static uint64_t read_keyed(int dir, const char *path, const char *key)
{
    char text[TEXT_MAX];
    const size_t n = strlen(key);
    if (dir < 0 || al_io_read_file(dir, path, text, sizeof text) <= 0) {
        return 0;
    }
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ' ') {
            return strtoull(line + n + 1, NULL, 10);
        }
    }
    return 0;
}

static uint32_t count_oom_kills(const struct al_figures *f)
{
    const char *file = f->v2 ? "memory.events" : "memory/memory.oom_control";
    return (uint32_t)read_keyed(f->dir, file, "oom_kill");
}

static uint32_t count_pids_denied(const struct al_figures *f)
{
    return (uint32_t)read_keyed(f->dir, f->v2 ? "pids.events" : "pids/pids.events", "max");
}

void al_figures_open(struct al_figures *f)
{
    *f = (struct al_figures){.dir = open(CGROUPS, O_PATH | O_DIRECTORY | O_CLOEXEC), .cpu = -1};
    if (f->dir >= 0) {
        f->v2 = faccessat(f->dir, "cgroup.controllers", F_OK, 0) == 0;
        f->cpu = openat(f->dir, f->v2 ? "cpu.stat" : "cpuacct/cpuacct.usage", O_RDONLY | O_CLOEXEC);
    }
    f->oom_kills_before = count_oom_kills(f);
    f->pids_denied_before = count_pids_denied(f);
}

int64_t al_figures_cpu_us(const struct al_figures *f)
{
    char text[TEXT_MAX];
    ssize_t n = f->cpu < 0 ? -1 : pread(f->cpu, text, sizeof text - 1, 0);
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    if (!f->v2) {
        return (int64_t)(strtoull(text, NULL, 10) / 1000);
    }
    const char *at = strstr(text, "usage_usec ");
    return at ? (int64_t)strtoull(at + strlen("usage_usec "), NULL, 10) : 0;
}

void al_figures_read(const struct al_figures *f, struct al_msg_exit *ret)
{
    uint64_t peak = read_number(f->dir, f->v2 ? "memory.peak" : "memory/memory.max_usage_in_bytes");
    ret->memory_peak_bytes = peak == NO_NUMBER ? 0 : peak;
    ret->oom_kills = count_oom_kills(f) - f->oom_kills_before;
    ret->pids_denied = count_pids_denied(f) - f->pids_denied_before;
}

uint64_t al_figures_memory_left(const struct al_figures *f)
{
    uint64_t limit = read_number(f->dir, f->v2 ? "memory.max" : "memory/memory.limit_in_bytes");
    uint64_t used = read_number(f->dir, f->v2 ? "memory.current" : "memory/memory.usage_in_bytes");
    return limit == NO_NUMBER || used == NO_NUMBER ? UINT64_MAX : limit > used ? limit - used : 0;
}

/* --- layers --- */

/* Whether each line of /proc/self/status that begins so has that value. */
static bool status_says(const char *status, const char *prefix, const char *value)
{
    bool found = false;
    for (const char *line = status; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, prefix, strlen(prefix)) != 0) {
            continue;
        }
        const char *at = strchr(line, ':');
        at = at ? at + 1 + strspn(at + 1, " \t") : line;
        if (strncmp(at, value, strlen(value)) != 0 || at[strlen(value)] != '\n') {
            return false;
        }
        found = true;
    }
    return found;
}

static uint32_t process_layers(void)
{
    char status[TEXT_MAX];
    uint32_t layers = getpid() == 1 ? AL_LAYER_PIDNS : 0;
    if (al_io_read_file(AT_FDCWD, "/proc/self/status", status, sizeof status) <= 0) {
        return layers;
    }
    layers |= status_says(status, "Cap", "0000000000000000") ? AL_LAYER_NO_CAPABILITIES : 0;
    layers |= status_says(status, "NoNewPrivs:", "1") ? AL_LAYER_NO_NEW_PRIVS : 0;
    return layers | AL_LAYER_SECCOMP; /* ours, or nothing is run */
}

/* Every line "ID:CONTROLLERS:/": the root of the namespace is the container's own group. */
static bool has_cgroup_namespace(void)
{
    char text[TEXT_MAX];
    if (al_io_read_file(AT_FDCWD, "/proc/self/cgroup", text, sizeof text) <= 0) {
        return false;
    }
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        const char *path = strrchr(line, ':');
        if (path && strcmp(path, ":/") != 0) {
            return false;
        }
    }
    return true;
}

/* Two lines of heading, then one for each interface. */
static bool has_only_loopback(void)
{
    char text[TEXT_MAX];
    int others = 0;
    if (al_io_read_file(AT_FDCWD, "/proc/net/dev", text, sizeof text) <= 0) {
        return false;
    }
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *colon = strchr(line, ':');
        line += strspn(line, " ");
        others += colon && strncmp(line, "lo:", 3) != 0;
    }
    return others == 0;
}

static uint32_t namespace_layers(void)
{
    char name[64] = "", map[128] = "";
    struct statvfs root;
    unsigned inside = 1, outside = 0, n = 0;
    uint32_t layers = AL_LAYER_IPCNS; /* as asked for: there is nothing to see it by */
    gethostname(name, sizeof name - 1);
    layers |= strcmp(name, AL_CONTAINER_HOST_NAME) == 0 ? AL_LAYER_UTSNS : 0;
    layers |= has_cgroup_namespace() ? AL_LAYER_CGROUPNS : 0;
    layers |= has_only_loopback() ? AL_LAYER_NETNS : 0;
    if (statvfs("/", &root) == 0 && (root.f_flag & ST_RDONLY)) {
        layers |= AL_LAYER_MOUNTNS | AL_LAYER_PIVOT_ROOT;
    }
    if (al_io_read_file(AT_FDCWD, "/proc/self/uid_map", map, sizeof map) > 0 &&
        sscanf(map, "%u %u %u", &inside, &outside, &n) == 3 &&
        !(inside == 0 && outside == 0 && n == UINT32_MAX))
    {
        layers |= AL_LAYER_USERNS;
    }
    return layers;
}

uint32_t al_figures_layers(const struct al_figures *f, const struct al_container_job *job)
{
    uint32_t layers = process_layers() | namespace_layers() | AL_LAYER_RLIMITS;
    uint64_t memory = read_number(f->dir, f->v2 ? "memory.max" : "memory/memory.limit_in_bytes");
    uint64_t pids = read_number(f->dir, f->v2 ? "pids.max" : "pids/pids.max");
    layers |= memory <= (uint64_t)job->memory_mb << 20 ? AL_LAYER_CGROUP_MEMORY : 0;
    layers |= pids <= job->pids + AL_CONTAINER_OWN_PIDS ? AL_LAYER_CGROUP_PIDS : 0;
    layers |= f->cpu >= 0 ? AL_LAYER_CGROUP_CPU : 0;
    return layers;
}
