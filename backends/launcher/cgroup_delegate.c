/*
 * Theory of operation. In version 2 a group gives its controllers to its children only while it
 * holds no process itself (the root of the machine's hierarchy may hold some). So the instance's
 * folder goes below the nearest group, from the launcher's own upwards, that can:
 *
 *   a service with Delegate=yes   its group holds airlockd and the launcher and nobody else: both
 *                                 move into a leaf of it, "airlock-supervisor", and it can
 *   a shell of root               its group holds strangers, who are left alone; a slice above, or
 *                                 the root, can
 *
 * A group that has all controllers is better than a nearer one that lacks some. A configured parent
 * is taken as it is: what it cannot give is not enforced.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/api/backend.h"
#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/cgroup_internal.h"

#define SUPERVISOR "airlock-supervisor"

static const struct controller {
    const char *name;
    uint32_t layer;
} controllers[] = {
    {"memory", AL_LAYER_CGROUP_MEMORY},
    {"pids", AL_LAYER_CGROUP_PIDS},
    {"cpu", AL_LAYER_CGROUP_CPU},
};
#define N_CONTROLLERS (sizeof controllers / sizeof controllers[0])

/* The layers whose controllers a file of the group lists. */
static uint32_t listed(const char *group, const char *file)
{
    char path[AL_CGROUP_PATH_MAX + 64], text[512];
    uint32_t layers = 0;
    snprintf(path, sizeof path, "%s/%s", group, file);
    if (al_io_read_file(AT_FDCWD, path, text, sizeof text) <= 0) {
        return 0;
    }
    for (size_t i = 0; i < N_CONTROLLERS; i++) {
        layers |= al_cgroup_has_word(text, controllers[i].name) ? controllers[i].layer : 0;
    }
    return layers;
}

/* Lets the group's children have the controllers that it has. */
static int give_on(const char *group)
{
    char path[AL_CGROUP_PATH_MAX + 64], word[16];
    uint32_t missing =
        listed(group, "cgroup.controllers") & ~listed(group, "cgroup.subtree_control");
    int rc = 0;
    snprintf(path, sizeof path, "%s/cgroup.subtree_control", group);
    for (size_t i = 0; i < N_CONTROLLERS && rc == 0; i++) {
        snprintf(word, sizeof word, "+%s", controllers[i].name);
        rc = missing & controllers[i].layer ? al_io_write_file(AT_FDCWD, path, word) : 0;
    }
    return rc;
}

/* Whether the group holds this process and its parent, airlockd, at most. */
static bool is_ours_alone(const char *group)
{
    char path[AL_CGROUP_PATH_MAX + 64], line[32];
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    al_auto_fclose FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        long pid = strtol(line, NULL, 10);
        if (pid != getpid() && pid != getppid()) {
            return false;
        }
    }
    return f != NULL;
}

static int move_to_leaf(const char *group)
{
    char path[AL_CGROUP_PATH_MAX + 64], airlockd[16];
    snprintf(path, sizeof path, "%s/" SUPERVISOR, group);
    if (mkdir(path, 0755) < 0 && errno != EEXIST) {
        return -errno;
    }
    snprintf(path, sizeof path, "%s/" SUPERVISOR "/cgroup.procs", group);
    snprintf(airlockd, sizeof airlockd, "%d", (int)getppid());
    int rc = al_io_write_file(AT_FDCWD, path, airlockd);
    return rc < 0 ? rc : al_io_write_file(AT_FDCWD, path, "0");
}

/* True when children of the group have the layers, at least those. */
static bool can_give(const char *group, uint32_t layers)
{
    if ((listed(group, "cgroup.controllers") & layers) != layers) {
        return false;
    }
    int rc = give_on(group);
    if (rc == -EBUSY && is_ours_alone(group)) {
        rc = move_to_leaf(group);
        rc = rc < 0 ? rc : give_on(group);
    }
    return rc == 0;
}

/* Turns the path into its nearest ancestor (or itself) that can give the layers. */
static bool find_above(char *path, size_t mount_len, uint32_t layers)
{
    for (;;) {
        if (can_give(path, layers)) {
            return true;
        }
        char *slash = strrchr(path, '/');
        if (strlen(path) <= mount_len || !slash) {
            return false;
        }
        *slash = '\0';
    }
}

/* The group that the instance's folder goes below. */
static bool find_base(char base[AL_CGROUP_PATH_MAX])
{
    char own[AL_CGROUP_PATH_MAX];
    char mount[AL_CGROUP_PATH_MAX];
    if (!al_cgroup_path(NULL, "", own) || !al_cgroup_path(NULL, "/", mount)) {
        return false;
    }
    char *name = strrchr(own, '/');
    if (name && strcmp(name + 1, SUPERVISOR) == 0) {
        *name = '\0'; /* whoever started us has been moved before */
    }
    static const uint32_t wanted[] = {AL_LAYERS_CGROUP, AL_LAYER_CGROUP_MEMORY,
                                      AL_LAYER_CGROUP_PIDS};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        memcpy(base, own, sizeof own);
        if (find_above(base, strlen(mount), wanted[i])) {
            return true;
        }
    }
    return false;
}

int al_cgroups_init_v2(struct al_cgroups *groups, const char *parent, const char *instance,
                       struct al_err *err)
{
    char base[AL_CGROUP_PATH_MAX];
    *groups = (struct al_cgroups){.ops = &al_cgroup_v2_ops};
    if (parent[0] ? !al_cgroup_path(NULL, parent, base) || !can_give(base, 0) : !find_base(base)) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION,
                          "no cgroup can give its controllers to jobs: start airlockd as a service "
                          "with Delegate=yes, or set [cells] cgroup_parent to an empty group");
    }
    int index = al_cgroup_add_dir(groups, base, instance, err);
    if (index < 0) {
        return index;
    }
    int rc = give_on(groups->dirs[0].path);
    if (rc < 0) {
        return al_err_errno(err, -rc, "cannot enable the controllers of %s", groups->dirs[0].path);
    }
    groups->layers = listed(groups->dirs[0].path, "cgroup.subtree_control");
    return 0;
}
