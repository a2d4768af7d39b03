/*
 * What a native cell sees as its file system. The launcher builds a template once, in a mount
 * namespace of its own: an empty read-only tmpfs with the configured system paths bound read-only,
 * a minimal /dev and /etc. Every cell's init gets a private copy of that namespace for nothing,
 * puts its own tmpfs and /proc on it and pivots into it. Nothing is ever mounted where the host
 * could see it.
 */
#pragma once

#include "backends/api/job_spec.h"
#include "backends/base/err.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/config.h"
#include "backends/launcher/message.h"

/* Where the template is mounted in the launcher's namespace, and local cells' temporary folder. */
#define AL_RUN_DIR   "/run/airlock"
#define AL_ROOT_DIR  AL_RUN_DIR "/root"
#define AL_LOCAL_DIR AL_RUN_DIR "/local"

/* The same for a tool that makes jails: besides, it holds the launcher's own binary. */
#define AL_JAIL_ROOT_DIR   AL_RUN_DIR "/jail"
#define AL_ROOTFS_WARDEN   "/.airlock/launcher"
#define AL_ROOTFS_FIREJAIL "/.airlock/firejail" /* with its set-user-id bit */

/* What the kernel would tell a program in /proc about the host, or take from it: files to be
 * covered, folders to be read-only. NULL-terminated; not every kernel has all of them. */
#define AL_ROOTFS_MASKED_MAX 12
extern const char *const al_rootfs_proc_hidden[];
extern const char *const al_rootfs_proc_read_only[];

/* Ids inside of a native cell. */
#define AL_CELL_UID 1000

/* Whom the program really becomes there, and whom its folders belong to. */
static inline unsigned al_rootfs_cell_uid(void)
{
    return al_barrier_is_on(AL_BARRIER_CELL_UID) ? AL_CELL_UID : 0;
}

/* In the launcher, once: a private mount namespace and the template. */
int al_rootfs_prepare(const struct al_cells_config *config, struct al_err *err);

/* The template for jails, behind the other. */
int al_rootfs_prepare_jail(const struct al_cells_config *config, struct al_err *err);

/* In a native cell's init, with all capabilities in its namespaces: mounts and pivot. The job's
 * tmpfs is bounded by disk_mb. */
int al_rootfs_enter(uid_t uid, uint32_t disk_mb, struct al_err *err);

/* In a jail's init, still with the host's ids: the same around the tool. The disk belongs to `uid`,
 * and /proc is whole, or else the tool could not mount its own. */
int al_rootfs_enter_jail(uid_t uid, uint32_t disk_mb, struct al_err *err);

/* Besides, for firejail: a /run, which it mounts and leaves things in, and a name for the user. */
int al_rootfs_add_run(uid_t uid, struct al_err *err);

/* In a local cell's init, still with the host's ids: /proc, and the temporary folder as a tmpfs for
 * `uid`. */
int al_rootfs_enter_local(uid_t uid, uint32_t disk_mb, struct al_err *err);

/* In a native cell's init, with CAP_SYS_ADMIN: gives the job's tmpfs another size. */
int al_rootfs_resize(uint32_t disk_mb, struct al_err *err);
