#include "backends/launcher/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/base/cleanup.h"

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
    if (mkdir(path, 0755) < 0 && errno != EEXIST) {
        return al_err_errno(err, errno, "cannot make the cgroup %s", path);
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return al_err_errno(err, errno, "cannot open the cgroup %s", path);
    }
    groups->dirs[groups->n_dirs].fd = fd;
    memcpy(groups->dirs[groups->n_dirs].path, path, (size_t)len + 1);
    return (int)groups->n_dirs++;
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
    return 0;
}
