#include "backends/launcher/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/rootfs_internal.h"

#define INODES_PER_MB 256
#define INODES_BASE   4096
#define PTS_OPTIONS   "newinstance,ptmxmode=0666,mode=0620,max=64"

int al_rootfs_mount(const char *source, const char *target, const char *type, unsigned long flags,
                    const char *options, struct al_err *err)
{
    if (mount(source, target, type, flags, options) < 0) {
        return al_err_errno(err, errno, "cannot mount %s on %s", source, target);
    }
    return 0;
}

int al_rootfs_make_dir(const char *path, mode_t mode, struct al_err *err)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST) {
        return al_err_errno(err, errno, "mkdir %s", path);
    }
    return 0;
}

int al_rootfs_make_file(const char *path, const char *text, struct al_err *err)
{
    al_auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc = fd < 0 ? -errno : al_io_write_full(fd, text, strlen(text));
    return rc < 0 ? al_err_errno(err, -rc, "cannot make %s", path) : 0;
}

#define DISK_FLAGS (MS_NOSUID | MS_NODEV)

static unsigned long long inodes_for(uint32_t disk_mb)
{
    return INODES_BASE + (unsigned long long)INODES_PER_MB * disk_mb;
}

/* The job's one tmpfs, so that everything it can write is bounded by disk_mb together. It has a
 * size from the start: one without could not be given one later. */
static int mount_disk(const char *target, uid_t uid, mode_t mode, uint32_t disk_mb,
                      struct al_err *err)
{
    char options[128];
    const bool bounded = al_barrier_is_on(AL_BARRIER_DISK); /* 0: no bound */
    snprintf(options, sizeof options, "mode=0%o,uid=%u,gid=%u,size=%um,nr_inodes=%llu", mode, uid,
             uid, bounded ? disk_mb : 0, bounded ? inodes_for(disk_mb) : 0);
    return al_rootfs_mount("airlock", target, "tmpfs", DISK_FLAGS, options, err);
}

int al_rootfs_resize(uint32_t disk_mb, struct al_err *err)
{
    char options[128];
    snprintf(options, sizeof options, "size=%um,nr_inodes=%llu", disk_mb, inodes_for(disk_mb));
    return al_rootfs_mount("airlock", "/.disk", "tmpfs", MS_REMOUNT | DISK_FLAGS, options, err);
}

/* A folder of the job's tmpfs, owned by its user, bound to where the job expects it. */
static int bind_disk(const char *name, const char *target, uid_t owner, mode_t mode,
                     struct al_err *err)
{
    char path[64];
    snprintf(path, sizeof path, "/.disk/%s", name);
    if (mkdir(path, 0700) < 0 || chmod(path, mode) < 0 || chown(path, owner, owner) < 0) {
        return al_err_errno(err, errno, "cannot make %s", path);
    }
    return al_rootfs_mount(path, target, NULL, MS_BIND, NULL, err);
}

const char *const al_rootfs_proc_hidden[] = {"/proc/kcore",
                                             "/proc/keys",
                                             "/proc/key-users",
                                             "/proc/kmsg",
                                             "/proc/sysrq-trigger",
                                             "/proc/timer_list",
                                             "/proc/kallsyms",
                                             "/proc/sched_debug",
                                             "/proc/kpagecount",
                                             "/proc/kpageflags",
                                             NULL};
const char *const al_rootfs_proc_read_only[] = {"/proc/sys",  "/proc/irq",  "/proc/bus", "/proc/fs",
                                                "/proc/acpi", "/proc/scsi", NULL};
_Static_assert(sizeof al_rootfs_proc_hidden / sizeof(char *) <= AL_ROOTFS_MASKED_MAX + 1, "fits");

static int mask_proc(struct al_err *err)
{
    for (const char *const *path = al_rootfs_proc_hidden; *path; path++) {
        if (mount("/dev/null", *path, NULL, MS_BIND, NULL) < 0 && errno != ENOENT) {
            return al_err_errno(err, errno, "cannot mask %s", *path);
        }
    }
    for (const char *const *path = al_rootfs_proc_read_only; *path; path++) {
        if (mount(*path, *path, NULL, MS_BIND | MS_REC, NULL) < 0) {
            if (errno == ENOENT) {
                continue;
            }
            return al_err_errno(err, errno, "cannot bind %s", *path);
        }
        int rc = al_rootfs_mount(
            "none", *path, NULL,
            MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int enter_root(const char *root, struct al_err *err)
{
    /* A bind of its own: a mount that came along with the namespace cannot be pivoted to. */
    int rc = al_rootfs_mount(root, root, NULL, MS_BIND | MS_REC, NULL, err);
    if (rc < 0) {
        return rc;
    }
    if (chdir(root) < 0 || syscall(SYS_pivot_root, ".", ".old") < 0 || chdir("/") < 0) {
        return al_err_errno(err, errno, "pivot_root%s",
                            errno == EINVAL ? " (in a chroot this cannot work)" : "");
    }
    rc = al_barrier_is_on(AL_BARRIER_OWN_PROC)
             ? al_rootfs_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, err)
             : al_rootfs_mount("/.old/proc", "/proc", NULL, MS_BIND | MS_REC, NULL, err);
    if (rc < 0) {
        return rc;
    }
    if (al_barrier_is_on(AL_BARRIER_HOST_ROOT) && umount2("/.old", MNT_DETACH) < 0) {
        return al_err_errno(err, errno, "cannot leave the host's file system");
    }
    return al_rootfs_mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, PTS_OPTIONS, err);
}

/* Its root, which is `uid`'s, stays mounted, closed to the program: an unmount would wait for every
 * CPU. */
static int add_disk(uid_t uid, uid_t owner, uint32_t disk_mb, struct al_err *err)
{
    int rc = mount_disk("/.disk", uid, 0700, disk_mb, err);
    rc = rc < 0 ? rc : bind_disk("work", "/sandbox", owner, 0755, err);
    rc = rc < 0 ? rc : bind_disk("tmp", "/tmp", owner, 01777, err);
    return rc < 0 ? rc : bind_disk("shm", "/dev/shm", owner, 01777, err);
}

int al_rootfs_enter(uid_t uid, uint32_t disk_mb, struct al_err *err)
{
    int rc = enter_root(AL_ROOT_DIR, err);
    rc = rc < 0 ? rc : add_disk(uid, al_rootfs_cell_uid(), disk_mb, err);
    return rc < 0 || !al_barrier_is_on(AL_BARRIER_PROC_MASK) ? rc : mask_proc(err);
}

int al_rootfs_enter_jail(uid_t uid, uint32_t disk_mb, struct al_err *err)
{
    int rc = enter_root(AL_JAIL_ROOT_DIR, err);
    return rc < 0 ? rc : add_disk(0, uid, disk_mb, err);
}

static int cover_file(const char *with, const char *path, const char *text, struct al_err *err)
{
    int rc = al_rootfs_make_file(with, text, err);
    return rc < 0 ? rc : al_rootfs_mount(with, path, NULL, MS_BIND, NULL, err);
}

int al_rootfs_add_run(uid_t uid, struct al_err *err)
{
    char passwd[160], group[64];
    snprintf(passwd, sizeof passwd,
             "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/sandbox:/bin/bash\n"
             "job:x:%u:%u:job:/sandbox:/bin/bash\n",
             uid, uid);
    snprintf(group, sizeof group, "root:x:0:\nsandbox:x:1000:\njob:x:%u:\n", uid);
    int rc = al_rootfs_mount("airlock-run", "/run", "tmpfs", MS_NOSUID | MS_NODEV,
                             "mode=0711,size=1m,nr_inodes=256", err);
    rc = rc < 0 ? rc : cover_file("/run/passwd", "/etc/passwd", passwd, err);
    return rc < 0 ? rc : cover_file("/run/group", "/etc/group", group, err);
}

int al_rootfs_enter_local(uid_t uid, uint32_t disk_mb, struct al_err *err)
{
    int rc = al_rootfs_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, err);
    rc = rc < 0 ? rc : mount_disk(AL_LOCAL_DIR, uid, 0755, disk_mb, err);
    if (rc < 0) {
        return rc;
    }
    static const char *const folders[] = {AL_LOCAL_DIR "/sandbox", AL_LOCAL_DIR "/tmp"};
    for (size_t i = 0; i < 2; i++) {
        if (mkdir(folders[i], 0755) < 0 || chown(folders[i], uid, uid) < 0) {
            return al_err_errno(err, errno, "cannot make %s", folders[i]);
        }
    }
    return 0;
}
