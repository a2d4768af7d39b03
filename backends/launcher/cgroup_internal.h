/* What the kernel interfaces of cgroup.h have in common; for cgroup*.c only. */
#pragma once

#include "backends/launcher/cgroup.h"

#define AL_CGROUP_PATH_MAX 512

extern const struct al_cgroup_ops al_cgroup_v1_ops;
extern const struct al_cgroup_ops al_cgroup_v2_ops;

int al_cgroups_init_v1(struct al_cgroups *groups, const char *parent, const char *instance,
                       struct al_err *err);
int al_cgroups_init_v2(struct al_cgroups *groups, const char *parent, const char *instance,
                       struct al_err *err);

/* --- finding --- */

/* True when `list` (words separated by commas or spaces, ending at a newline, colon or NUL) has the
 * word. */
bool al_cgroup_has_word(const char *list, const char *word);

/* Where a hierarchy is mounted: of version 1 the controller's, with NULL version 2's. */
bool al_cgroup_is_mounted(const char *controller);

/* The absolute path of `parent`, or with "" of the launcher's own group, below that mount. False
 * when nothing is mounted, or the path is too long. */
bool al_cgroup_path(const char *controller, const char *parent, char ret[AL_CGROUP_PATH_MAX]);

/* Opens (and makes) the instance's folder below `base` and locks it; its index, or -errno. */
int al_cgroup_add_dir(struct al_cgroups *groups, const char *base, const char *instance,
                      struct al_err *err);

/* --- the files of a group --- */

int al_cgroup_open(int dir, const char *name, const char *file);
int al_cgroup_write(int dir, const char *name, const char *file, uint64_t value);

/* 0 also when there is no such file. */
uint64_t al_cgroup_read(int dir, const char *name, const char *file);

/* False when there is no such file. */
bool al_cgroup_is_zero(int dir, const char *name, const char *file);

/* The number behind `key` in a file of "key number" lines. */
uint64_t al_cgroup_read_keyed(int dir, const char *name, const char *file, const char *key);

/* Removes a folder of each hierarchy, as al_cgroup_ops.remove does. */
int al_cgroup_remove(const struct al_cgroups *groups, const char *name);

/* As al_cgroup_ops.sweep; `kill_group` kills all that is in a group. */
bool al_cgroup_sweep(const struct al_cgroups *groups, bool folder,
                     void (*kill_group)(int dir, const char *name));
