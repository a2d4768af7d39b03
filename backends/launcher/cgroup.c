#include "backends/launcher/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"

#define LOCK_MS 3000 /* a dead launcher's reaper sweeps for a second at most */

/* True when `list` (comma-separated, ending at a space, newline, colon or NUL) has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (;;) {
        size_t len = strcspn(list, ", \n:");
        if (len == n && memcmp(list, word, n) == 0) {
            return true;
        }
        if (list[len] != ',') {
            return false;
        }
        list += len + 1;
    }
}

/* The launcher's own group in the controller's hierarchy, "/" when it cannot be told. */
static void own_group(const char *controller, char *ret, size_t size)
{
    snprintf(ret, size, "/");
    al_auto_fclose FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];
    while (f && fgets(line, sizeof line, f)) {
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (path && has_word(names + 1, controller)) {
            path[strcspn(path, "\n")] = '\0';
            snprintf(ret, size, "%s", path + 1);
            return;
        }
    }
}

/* Where the controller's version 1 hierarchy is mounted, and which of its folders is the mount's
 * root. */
static bool find_mount(const char *controller, char *ret_point, char *ret_root, size_t size)
{
    al_auto_fclose FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[4096];
    while (f && fgets(line, sizeof line, f)) {
        char *type = strstr(line, " - cgroup ");
        char root[256], point[256];
        if (!type || sscanf(line, "%*s %*s %*s %255s %255s", root, point) != 2) {
            continue;
        }
        char *options = strchr(type + strlen(" - cgroup "), ' ');
        if (options && has_word(options + 1, controller)) {
            snprintf(ret_point, size, "%s", point);
            snprintf(ret_root, size, "%s", root);
            return true;
        }
    }
    return false;
}

/* Opens (and makes) an instance's folder and locks it. The lock belongs to the launcher and its
 * reaper, which share the open file: a start waits until the reaper of a dead launcher has swept
 * and removed the folder, and a second launcher of a living instance is refused. */
static int lock_dir(const char *path, struct al_err *err)
{
    int64_t deadline_ms = al_now_ms() + LOCK_MS;
    do {
        struct stat opened, there;
        if (mkdir(path, 0755) < 0 && errno != EEXIST) {
            return al_err_errno(err, errno, "cannot make the cgroup %s", path);
        }
        al_auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &opened) == 0 &&
            stat(path, &there) == 0 && opened.st_ino == there.st_ino)
        {
            return al_steal_fd(&fd);
        }
        usleep(5000);
    } while (al_now_ms() < deadline_ms);
    return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED,
                      "the cgroup %s belongs to another launcher of this data-dir", path);
}

/* Opens (and makes) the instance's folder of a controller; the index of it, or -errno. */
static int open_dir(struct al_cgroups *groups, const char *controller, const char *parent,
                    const char *instance, struct al_err *err)
{
    char point[256], root[256], own[512], path[1200];
    if (!find_mount(controller, point, root, sizeof point)) {
        return al_err_set(
            err, AL_ERR_FAILED_PRECONDITION,
            "no cgroup v1 hierarchy with the controller '%s' is mounted (v2 is not supported yet)",
            controller);
    }
    own_group(controller, own, sizeof own);
    const char *below = parent[0] ? parent : own;
    size_t n = strlen(root);
    if (!parent[0] && n > 1 && strncmp(own, root, n) == 0) {
        below = own + n;
    }
    below += strspn(below, "/");
    int len =
        snprintf(path, sizeof path, "%s%s%s/airlock-%s", point, *below ? "/" : "", below, instance);
    if (len >= (int)sizeof groups->dirs[0].path) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "the cgroup path %s is too long", path);
    }
    for (size_t i = 0; i < groups->n_dirs; i++) {
        if (strcmp(groups->dirs[i].path, path) == 0) {
            return (int)i; /* cpu and cpuacct share a hierarchy on most machines */
        }
    }
    int fd = lock_dir(path, err);
    if (fd < 0) {
        return fd;
    }
    groups->dirs[groups->n_dirs].fd = fd;
    memcpy(groups->dirs[groups->n_dirs].path, path, (size_t)len + 1);
    return (int)groups->n_dirs++;
}

/* All jobs together weigh a group for each processor: by default they would weigh as much as one
 * process of whatever else the machine runs, airlockd first. A failure only leaves it at that. */
static void weigh_folder(const struct al_cgroups *groups)
{
    char text[32];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    long shares = AL_CGROUP_SHARES * (processors > 0 ? processors : 1);
    snprintf(text, sizeof text, "%ld",
             shares < AL_CGROUP_SHARES_MAX ? shares : AL_CGROUP_SHARES_MAX);
    al_io_write_file(groups->dirs[groups->cpu].fd, "cpu.shares", text);
}

int al_cgroups_init(struct al_cgroups *groups, const char *parent, const char *instance,
                    struct al_err *err)
{
    *groups = (struct al_cgroups){.ops = &al_cgroup_v1_ops};
    static const char *const controllers[] = {"memory", "pids", "cpu", "cpuacct"};
    int *const indices[] = {&groups->memory, &groups->pids, &groups->cpu, &groups->cpuacct};
    for (size_t i = 0; i < 4; i++) {
        int index = open_dir(groups, controllers[i], parent, instance, err);
        if (index < 0) {
            return index;
        }
        *indices[i] = index;
    }
    weigh_folder(groups);
    return 0;
}
