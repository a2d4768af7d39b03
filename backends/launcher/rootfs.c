#include "backends/launcher/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/prestart.h"

#define INODES_PER_MB 256
#define INODES_BASE   4096
#define PTS_OPTIONS   "newinstance,ptmxmode=0666,mode=0620,max=64"

static const char passwd_text[] = "root:x:0:0:root:/:/usr/sbin/nologin\n"
                                  "sandbox:x:1000:1000:sandbox:/sandbox:/bin/bash\n"
                                  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char group_text[] = "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n";
static const char hosts_text[] = "127.0.0.1 localhost sandbox\n::1 localhost\n";
static const char nsswitch_text[] = "passwd: files\ngroup: files\nhosts: files\n";

static int do_mount(const char *source, const char *target, const char *type, unsigned long flags,
                    const char *options, struct al_err *err)
{
    if (mount(source, target, type, flags, options) < 0) {
        return al_err_errno(err, errno, "cannot mount %s on %s", source, target);
    }
    return 0;
}

static int make_dir(const char *path, mode_t mode, struct al_err *err)
{
    if (mkdir(path, mode) < 0 && errno != EEXIST) {
        return al_err_errno(err, errno, "mkdir %s", path);
    }
    return 0;
}

static int make_file(const char *path, const char *text, struct al_err *err)
{
    al_auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc = fd < 0 ? -errno : al_io_write_full(fd, text, strlen(text));
    return rc < 0 ? al_err_errno(err, -rc, "cannot make %s", path) : 0;
}

/* Makes the folders above `path` (absolute) below the template. */
static int make_parents(const char *path, struct al_err *err)
{
    char at[512];
    int n = snprintf(at, sizeof at, AL_ROOT_DIR "%s", path);
    if (n >= (int)sizeof at) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "[cells] system_paths: %s is too long",
                          path);
    }
    for (char *slash = at + strlen(AL_ROOT_DIR) + 1; (slash = strchr(slash, '/')) != NULL; slash++)
    {
        *slash = '\0';
        int rc = make_dir(at, 0755, err);
        if (rc < 0) {
            return rc;
        }
        *slash = '/';
    }
    return 0;
}

/* All of them, but for those that a test build leaves out. */
static uint64_t host_attributes(void)
{
    return MOUNT_ATTR_NOEXEC | al_barrier_flags(AL_BARRIER_READ_ONLY, MOUNT_ATTR_RDONLY) |
           al_barrier_flags(AL_BARRIER_NOSUID, MOUNT_ATTR_NOSUID) |
           al_barrier_flags(AL_BARRIER_NODEV, MOUNT_ATTR_NODEV);
}

/* A recursive bind of a host path into the template, with attributes set on everything in it. */
static int bind_host(const char *path, uint64_t attributes, struct al_err *err)
{
    char target[512];
    snprintf(target, sizeof target, AL_ROOT_DIR "%s", path);
    int rc = do_mount(path, target, NULL, MS_BIND | MS_REC, NULL, err);
    if (rc < 0) {
        return rc;
    }
    struct mount_attr attr = {.attr_set = attributes & host_attributes()};
    if (mount_setattr(AT_FDCWD, target, AT_RECURSIVE, &attr, sizeof attr) < 0) {
        return al_err_errno(err, errno, "cannot make %s read-only", target);
    }
    return 0;
}

/* A system path as it is on the host: a link stays a link, what is missing is left out. */
static int add_system_path(const char *path, struct al_err *err)
{
    char target[512], link[512];
    struct stat st;
    if (path[0] != '/' || strstr(path, "/..")) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "[cells] system_paths: %s is not an absolute path without '..'", path);
    }
    if (lstat(path, &st) < 0) {
        return 0;
    }
    int rc = make_parents(path, err);
    if (rc < 0) {
        return rc;
    }
    snprintf(target, sizeof target, AL_ROOT_DIR "%s", path);
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(path, link, sizeof link - 1);
        if (n < 0) {
            return al_err_errno(err, errno, "readlink %s", path);
        }
        link[n] = '\0';
        return symlink(link, target) < 0 ? al_err_errno(err, errno, "symlink %s", target) : 0;
    }
    rc = S_ISDIR(st.st_mode) ? make_dir(target, 0755, err) : make_file(target, "", err);
    return rc < 0 ? rc
                  : bind_host(path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

static int add_dev(struct al_err *err)
{
    static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                          "/dev/random", "/dev/urandom", "/dev/tty"};
    static const char *const links[][2] = {{"/proc/self/fd", "fd"},
                                           {"/proc/self/fd/0", "stdin"},
                                           {"/proc/self/fd/1", "stdout"},
                                           {"/proc/self/fd/2", "stderr"},
                                           {"pts/ptmx", "ptmx"}};
    int rc = make_dir(AL_ROOT_DIR "/dev", 0755, err);
    rc = rc < 0 ? rc : make_dir(AL_ROOT_DIR "/dev/shm", 0755, err);
    rc = rc < 0 ? rc : make_dir(AL_ROOT_DIR "/dev/pts", 0755, err);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0] && rc == 0; i++) {
        char target[64];
        snprintf(target, sizeof target, AL_ROOT_DIR "%s", devices[i]);
        rc = make_file(target, "", err);
        rc = rc < 0 ? rc
                    : bind_host(devices[i],
                                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
    }
    for (size_t i = 0; i < sizeof links / sizeof links[0] && rc == 0; i++) {
        char target[64];
        snprintf(target, sizeof target, AL_ROOT_DIR "/dev/%s", links[i][1]);
        if (symlink(links[i][0], target) < 0) {
            rc = al_err_errno(err, errno, "symlink %s", target);
        }
    }
    return rc;
}

static int add_etc(struct al_err *err)
{
    int rc = make_dir(AL_ROOT_DIR "/etc", 0755, err);
    rc = rc < 0 ? rc : make_file(AL_ROOT_DIR "/etc/passwd", passwd_text, err);
    rc = rc < 0 ? rc : make_file(AL_ROOT_DIR "/etc/group", group_text, err);
    rc = rc < 0 ? rc : make_file(AL_ROOT_DIR "/etc/hosts", hosts_text, err);
    return rc < 0 ? rc : make_file(AL_ROOT_DIR "/etc/nsswitch.conf", nsswitch_text, err);
}

static int fill_template(const struct al_cells_config *config, struct al_err *err)
{
    static const char *const folders[] = {"/proc", "/sandbox", "/tmp", "/.disk", "/.old"};
    int rc = add_etc(err);
    rc = rc < 0 ? rc : add_dev(err);
    rc = rc < 0 ? rc : al_prestart_install(AL_ROOT_DIR, config, err);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && rc == 0; i++) {
        char path[64];
        snprintf(path, sizeof path, AL_ROOT_DIR "%s", folders[i]);
        rc = make_dir(path, 0755, err);
    }
    for (size_t i = 0; i < config->system_paths.n && rc == 0; i++) {
        rc = add_system_path(config->system_paths.word[i], err);
    }
    return rc;
}

int al_rootfs_prepare(const struct al_cells_config *config, struct al_err *err)
{
    if (unshare(CLONE_NEWNS) < 0) {
        return al_err_errno(err, errno, "unshare(CLONE_NEWNS)");
    }
    int rc = do_mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL, err);
    rc = rc < 0 ? rc : make_dir(AL_ROOT_DIR, 0755, err);
    rc = rc < 0 ? rc : make_dir(AL_LOCAL_DIR, 0755, err);
    rc = rc < 0 ? rc
                : do_mount("airlock-root", AL_ROOT_DIR, "tmpfs", MS_NOSUID | MS_NODEV,
                           "mode=0755,size=1m,nr_inodes=256", err);
    rc = rc < 0 ? rc : fill_template(config, err);
    if (rc < 0) {
        return rc;
    }
    const unsigned long read_only = al_barrier_flags(AL_BARRIER_READ_ONLY, MS_RDONLY);
    return do_mount("none", AL_ROOT_DIR, NULL,
                    MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | read_only, NULL, err);
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
    return do_mount("airlock", target, "tmpfs", DISK_FLAGS, options, err);
}

int al_rootfs_resize(uint32_t disk_mb, struct al_err *err)
{
    char options[128];
    snprintf(options, sizeof options, "size=%um,nr_inodes=%llu", disk_mb, inodes_for(disk_mb));
    return do_mount("airlock", "/.disk", "tmpfs", MS_REMOUNT | DISK_FLAGS, options, err);
}

/* A folder of the job's tmpfs, owned by its user, bound to where the job expects it. */
static int bind_disk(const char *name, const char *target, mode_t mode, struct al_err *err)
{
    char path[64];
    const uid_t owner = al_rootfs_cell_uid();
    snprintf(path, sizeof path, "/.disk/%s", name);
    if (mkdir(path, 0700) < 0 || chmod(path, mode) < 0 || chown(path, owner, owner) < 0) {
        return al_err_errno(err, errno, "cannot make %s", path);
    }
    return do_mount(path, target, NULL, MS_BIND, NULL, err);
}

/* What the kernel would tell a program in /proc about the host, or take from it. */
static int mask_proc(struct al_err *err)
{
    static const char *const hidden[] = {
        "/proc/kcore",         "/proc/keys",       "/proc/key-users", "/proc/kmsg",
        "/proc/sysrq-trigger", "/proc/timer_list", "/proc/kallsyms",  "/proc/sched_debug",
        "/proc/kpagecount",    "/proc/kpageflags"};
    static const char *const read_only[] = {"/proc/sys", "/proc/irq",  "/proc/bus",
                                            "/proc/fs",  "/proc/acpi", "/proc/scsi"};
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (mount("/dev/null", hidden[i], NULL, MS_BIND, NULL) < 0 && errno != ENOENT) {
            return al_err_errno(err, errno, "cannot mask %s", hidden[i]);
        }
    }
    for (size_t i = 0; i < sizeof read_only / sizeof read_only[0]; i++) {
        const char *path = read_only[i];
        if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0) {
            if (errno == ENOENT) {
                continue;
            }
            return al_err_errno(err, errno, "cannot bind %s", path);
        }
        int rc = do_mount("none", path, NULL,
                          MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL,
                          err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int al_rootfs_enter(uid_t uid, uint32_t disk_mb, struct al_err *err)
{
    /* A bind of its own: a mount that came along with the namespace cannot be pivoted to. */
    int rc = do_mount(AL_ROOT_DIR, AL_ROOT_DIR, NULL, MS_BIND | MS_REC, NULL, err);
    if (rc < 0) {
        return rc;
    }
    if (chdir(AL_ROOT_DIR) < 0 || syscall(SYS_pivot_root, ".", ".old") < 0 || chdir("/") < 0) {
        return al_err_errno(err, errno, "pivot_root%s",
                            errno == EINVAL ? " (in a chroot this cannot work)" : "");
    }
    rc = al_barrier_is_on(AL_BARRIER_OWN_PROC)
             ? do_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, err)
             : do_mount("/.old/proc", "/proc", NULL, MS_BIND | MS_REC, NULL, err);
    if (rc < 0) {
        return rc;
    }
    if (al_barrier_is_on(AL_BARRIER_HOST_ROOT) && umount2("/.old", MNT_DETACH) < 0) {
        return al_err_errno(err, errno, "cannot leave the host's file system");
    }
    rc = do_mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, PTS_OPTIONS, err);
    if (rc < 0) {
        return rc;
    }
    /* Its root stays mounted, closed to the program: an unmount would wait for every CPU. */
    rc = mount_disk("/.disk", uid, 0700, disk_mb, err);
    rc = rc < 0 ? rc : bind_disk("work", "/sandbox", 0755, err);
    rc = rc < 0 ? rc : bind_disk("tmp", "/tmp", 01777, err);
    rc = rc < 0 ? rc : bind_disk("shm", "/dev/shm", 01777, err);
    return rc < 0 || !al_barrier_is_on(AL_BARRIER_PROC_MASK) ? rc : mask_proc(err);
}

int al_rootfs_enter_local(uid_t uid, uint32_t disk_mb, struct al_err *err)
{
    int rc = do_mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, err);
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
