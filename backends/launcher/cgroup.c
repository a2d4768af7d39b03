#include "backends/launcher/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/launcher/cgroup_internal.h"

#define LOCK_MS 3000 /* a dead launcher's reaper sweeps for a second at most */

bool al_cgroup_has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (;;) {
        size_t len = strcspn(list, ", \n:");
        if (len == n && memcmp(list, word, n) == 0) {
            return true;
        }
        if (list[len] != ',' && list[len] != ' ') {
            return false;
        }
        list += len + 1;
    }
}

/* The launcher's own group in the hierarchy, "/" when it cannot be told. A line is
 * "number:controllers:path"; version 2's has no controllers. */
static void own_group(const char *controller, char *ret, size_t size)
{
    snprintf(ret, size, "/");
    al_auto_fclose FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];
    while (f && fgets(line, sizeof line, f)) {
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (path &&
            (controller ? al_cgroup_has_word(names + 1, controller) : strncmp(line, "0::", 3) == 0))
        {
            path[strcspn(path, "\n")] = '\0';
            snprintf(ret, size, "%s", path + 1);
            return;
        }
    }
}

struct mount_point {
    char at[256];
    char root[256]; /* which of the hierarchy's folders is mounted there */
};

static bool find_mount(const char *controller, struct mount_point *ret)
{
    const char *type = controller ? " - cgroup " : " - cgroup2 ";
    al_auto_fclose FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[4096];
    while (f && fgets(line, sizeof line, f)) {
        char *found = strstr(line, type);
        if (!found || sscanf(line, "%*s %*s %*s %255s %255s", ret->root, ret->at) != 2) {
            continue;
        }
        char *options = strchr(found + strlen(type), ' ');
        if (!controller || (options && al_cgroup_has_word(options + 1, controller))) {
            return true;
        }
    }
    return false;
}

bool al_cgroup_is_mounted(const char *controller)
{
    struct mount_point mount;
    return find_mount(controller, &mount);
}

bool al_cgroup_path(const char *controller, const char *parent, char ret[AL_CGROUP_PATH_MAX])
{
    struct mount_point mount;
    char own[AL_CGROUP_PATH_MAX];
    if (!find_mount(controller, &mount)) {
        return false;
    }
    own_group(controller, own, sizeof own);
    const char *below = parent[0] ? parent : own;
    size_t n = strlen(mount.root);
    if (!parent[0] && n > 1 && strncmp(own, mount.root, n) == 0) {
        below = own + n;
    }
    below += strspn(below, "/");
    int len = snprintf(ret, AL_CGROUP_PATH_MAX, "%s%s%s", mount.at, *below ? "/" : "", below);
    return len < AL_CGROUP_PATH_MAX;
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

int al_cgroup_add_dir(struct al_cgroups *groups, const char *base, const char *instance,
                      struct al_err *err)
{
    char path[AL_CGROUP_PATH_MAX + 64];
    int len = snprintf(path, sizeof path, "%s/airlock-%s", base, instance);
    if (len >= (int)sizeof groups->dirs[0].path) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "the cgroup path %s is too long", path);
    }
    for (size_t i = 0; i < groups->n_dirs; i++) {
        if (strcmp(groups->dirs[i].path, path) == 0) {
            return (int)i; /* some controllers of version 1 share a hierarchy */
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
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    groups->ops->share(groups, ".", 100 * (uint32_t)(processors > 0 ? processors : 1));
}

/* A controller is in one hierarchy only: where version 1 has memory, version 2 has nothing that a
 * job could be limited with. */
int al_cgroups_init(struct al_cgroups *groups, const char *parent, const char *instance,
                    struct al_err *err)
{
    bool v2 = !al_cgroup_is_mounted("memory") && al_cgroup_is_mounted(NULL);
    int rc = v2 ? al_cgroups_init_v2(groups, parent, instance, err)
                : al_cgroups_init_v1(groups, parent, instance, err);
    if (rc == 0) {
        weigh_folder(groups);
    }
    return rc;
}
