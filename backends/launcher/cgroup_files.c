/* The files of a group, and the end of groups: the same in every version. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/cgroup_internal.h"

#define SWEEP_MS      1000
#define FILE_PATH_MAX 128

int al_cgroup_open(int dir, const char *name, const char *file)
{
    char path[FILE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", name, file);
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Version 1 says nanoseconds and nothing else, version 2 "usage_usec N" first. */
int64_t al_cgroup_read_cpu_us(int fd)
{
    static const char key[] = "usage_usec ";
    char text[512];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return strncmp(text, key, sizeof key - 1) == 0 ? strtoll(text + sizeof key - 1, NULL, 10)
                                                   : strtoll(text, NULL, 10) / 1000;
}

int al_cgroup_write(int dir, const char *name, const char *file, uint64_t value)
{
    char path[FILE_PATH_MAX], text[32];
    snprintf(path, sizeof path, "%s/%s", name, file);
    snprintf(text, sizeof text, "%" PRIu64, value);
    return al_io_write_file(dir, path, text);
}

uint64_t al_cgroup_read(int dir, const char *name, const char *file)
{
    char path[FILE_PATH_MAX], text[64];
    snprintf(path, sizeof path, "%s/%s", name, file);
    return al_io_read_file(dir, path, text, sizeof text) > 0 ? strtoull(text, NULL, 10) : 0;
}

bool al_cgroup_is_zero(int dir, const char *name, const char *file)
{
    char path[FILE_PATH_MAX], text[16];
    snprintf(path, sizeof path, "%s/%s", name, file);
    return al_io_read_file(dir, path, text, sizeof text) > 0 && strcmp(text, "0\n") == 0;
}

uint64_t al_cgroup_read_keyed(int dir, const char *name, const char *file, const char *key)
{
    char path[FILE_PATH_MAX], text[512];
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

int al_cgroup_remove(const struct al_cgroups *groups, const char *name)
{
    int result = 0;
    for (size_t i = 0; i < groups->n_dirs; i++) {
        if (unlinkat(groups->dirs[i].fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
            result = -errno;
        }
    }
    return result;
}

/* One pass over a hierarchy; how many groups are left. */
static size_t sweep_dir(const struct al_cgroups *groups, int dir,
                        void (*kill_group)(int dir, const char *name))
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
            left += groups->ops->remove(groups, e->d_name) < 0;
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

bool al_cgroup_sweep(const struct al_cgroups *groups, bool folder,
                     void (*kill_group)(int dir, const char *name))
{
    int64_t deadline_ms = al_now_ms() + SWEEP_MS;
    bool gone[AL_CGROUP_DIRS_MAX] = {false};
    for (;;) {
        size_t left = 0;
        for (size_t i = 0; i < groups->n_dirs; i++) {
            left += sweep_dir(groups, groups->dirs[i].fd, kill_group);
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
