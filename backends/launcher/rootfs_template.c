/* The templates of cells' roots, made once; see rootfs.h. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/launcher/barrier.h"
#include "backends/launcher/prestart.h"
#include "backends/launcher/rootfs.h"
#include "backends/launcher/rootfs_internal.h"

static const char passwd_text[] = "root:x:0:0:root:/:/usr/sbin/nologin\n"
                                  "sandbox:x:1000:1000:sandbox:/sandbox:/bin/bash\n"
                                  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char group_text[] = "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n";
static const char hosts_text[] = "127.0.0.1 localhost sandbox\n::1 localhost\n";
static const char nsswitch_text[] = "passwd: files\ngroup: files\nhosts: files\n";

/* Makes the folders above `path` (absolute) below the template. */
static int make_parents(const char *root, const char *path, struct al_err *err)
{
    char at[512];
    int n = snprintf(at, sizeof at, "%s%s", root, path);
    if (n >= (int)sizeof at) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "[cells] system_paths: %s is too long",
                          path);
    }
    for (char *slash = at + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        int rc = al_rootfs_make_dir(at, 0755, err);
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
static int bind_host(const char *path, const char *target, uint64_t attributes, struct al_err *err)
{
    int rc = al_rootfs_mount(path, target, NULL, MS_BIND | MS_REC, NULL, err);
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
static int add_system_path(const char *root, const char *path, struct al_err *err)
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
    int rc = make_parents(root, path, err);
    if (rc < 0) {
        return rc;
    }
    snprintf(target, sizeof target, "%s%s", root, path);
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(path, link, sizeof link - 1);
        if (n < 0) {
            return al_err_errno(err, errno, "readlink %s", path);
        }
        link[n] = '\0';
        return symlink(link, target) < 0 ? al_err_errno(err, errno, "symlink %s", target) : 0;
    }
    rc = S_ISDIR(st.st_mode) ? al_rootfs_make_dir(target, 0755, err)
                             : al_rootfs_make_file(target, "", err);
    return rc < 0 ? rc
                  : bind_host(path, target,
                              MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

static int make_dir_in(const char *root, const char *path, struct al_err *err)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", root, path);
    return al_rootfs_make_dir(full, 0755, err);
}

static int make_file_in(const char *root, const char *path, const char *text, struct al_err *err)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", root, path);
    return al_rootfs_make_file(full, text, err);
}

static int add_device(const char *root, const char *device, struct al_err *err)
{
    char target[64];
    snprintf(target, sizeof target, "%s%s", root, device);
    int rc = al_rootfs_make_file(target, "", err);
    return rc < 0 ? rc
                  : bind_host(device, target,
                              MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
}

static int add_dev(const char *root, struct al_err *err)
{
    static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                          "/dev/random", "/dev/urandom", "/dev/tty"};
    static const char *const links[][2] = {{"/proc/self/fd", "fd"},
                                           {"/proc/self/fd/0", "stdin"},
                                           {"/proc/self/fd/1", "stdout"},
                                           {"/proc/self/fd/2", "stderr"},
                                           {"pts/ptmx", "ptmx"}};
    int rc = make_dir_in(root, "/dev", err);
    rc = rc < 0 ? rc : make_dir_in(root, "/dev/shm", err);
    rc = rc < 0 ? rc : make_dir_in(root, "/dev/pts", err);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0] && rc == 0; i++) {
        rc = add_device(root, devices[i], err);
    }
    for (size_t i = 0; i < sizeof links / sizeof links[0] && rc == 0; i++) {
        char target[64];
        snprintf(target, sizeof target, "%s/dev/%s", root, links[i][1]);
        if (symlink(links[i][0], target) < 0) {
            rc = al_err_errno(err, errno, "symlink %s", target);
        }
    }
    return rc;
}

static int add_etc(const char *root, struct al_err *err)
{
    int rc = make_dir_in(root, "/etc", err);
    rc = rc < 0 ? rc : make_file_in(root, "/etc/passwd", passwd_text, err);
    rc = rc < 0 ? rc : make_file_in(root, "/etc/group", group_text, err);
    rc = rc < 0 ? rc : make_file_in(root, "/etc/hosts", hosts_text, err);
    return rc < 0 ? rc : make_file_in(root, "/etc/nsswitch.conf", nsswitch_text, err);
}

static int fill_template(const char *root, const struct al_cells_config *config, struct al_err *err)
{
    static const char *const folders[] = {"/proc", "/sandbox", "/tmp", "/.disk", "/.old"};
    int rc = add_etc(root, err);
    rc = rc < 0 ? rc : add_dev(root, err);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && rc == 0; i++) {
        rc = make_dir_in(root, folders[i], err);
    }
    for (size_t i = 0; i < config->system_paths.n && rc == 0; i++) {
        rc = add_system_path(root, config->system_paths.word[i], err);
    }
    return rc;
}

static int begin_template(const char *root, struct al_err *err)
{
    int rc = al_rootfs_make_dir(root, 0755, err);
    return rc < 0 ? rc
                  : al_rootfs_mount("airlock-root", root, "tmpfs", MS_NOSUID | MS_NODEV,
                                    "mode=0755,size=1m,nr_inodes=256", err);
}

static int end_template(const char *root, struct al_err *err)
{
    const unsigned long read_only = al_barrier_flags(AL_BARRIER_READ_ONLY, MS_RDONLY);
    return al_rootfs_mount("none", root, NULL,
                           MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | read_only, NULL, err);
}

int al_rootfs_prepare(const struct al_cells_config *config, struct al_err *err)
{
    if (unshare(CLONE_NEWNS) < 0) {
        return al_err_errno(err, errno, "unshare(CLONE_NEWNS)");
    }
    int rc = al_rootfs_mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL, err);
    rc = rc < 0 ? rc : al_rootfs_make_dir(AL_LOCAL_DIR, 0755, err);
    rc = rc < 0 ? rc : begin_template(AL_ROOT_DIR, err);
    rc = rc < 0 ? rc : fill_template(AL_ROOT_DIR, config, err);
    rc = rc < 0 ? rc : al_prestart_install(AL_ROOT_DIR, config, err);
    return rc < 0 ? rc : end_template(AL_ROOT_DIR, err);
}

/* What firejail reads, which finds no configuration of the host's here. */
static int add_firejail(const char *root, const char *program, struct al_err *err)
{
    char target[64];
    snprintf(target, sizeof target, "%s/run", root);
    int rc = al_rootfs_make_dir(target, 0711, err); /* where there is nothing for a program */
    rc = rc < 0 ? rc : make_dir_in(root, "/etc/firejail", err);
    rc = rc < 0 ? rc : make_file_in(root, "/etc/firejail/firejail.config", "", err);
    rc = rc < 0 ? rc : make_file_in(root, "/etc/login.defs", "UID_MIN 1000\nGID_MIN 1000\n", err);
    rc = rc < 0 ? rc : make_file_in(root, AL_ROOTFS_FIREJAIL, "", err);
    snprintf(target, sizeof target, "%s%s", root, AL_ROOTFS_FIREJAIL);
    return rc < 0 ? rc : bind_host(program, target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, err);
}

/* By path: what /proc/self/exe leads to is a mount of another namespace. */
static int add_warden(const char *root, struct al_err *err)
{
    char self[512], target[64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0) {
        return al_err_errno(err, errno, "readlink /proc/self/exe");
    }
    self[len] = '\0';
    snprintf(target, sizeof target, "%s%s", root, AL_ROOTFS_WARDEN);
    int rc = make_parents(root, AL_ROOTFS_WARDEN, err);
    rc = rc < 0 ? rc : al_rootfs_make_file(target, "", err);
    return rc < 0 ? rc
                  : bind_host(self, target,
                              MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

int al_rootfs_prepare_jail(const struct al_cells_config *config, struct al_err *err)
{
    const char *firejail = config->jails[AL_JAIL_FIREJAIL].program;
    int rc = begin_template(AL_JAIL_ROOT_DIR, err);
    rc = rc < 0 ? rc : fill_template(AL_JAIL_ROOT_DIR, config, err);
    rc = rc < 0 ? rc : add_warden(AL_JAIL_ROOT_DIR, err);
    if (rc == 0 && access(firejail, X_OK) == 0) {
        rc = add_firejail(AL_JAIL_ROOT_DIR, firejail, err);
    }
    return rc < 0 ? rc : end_template(AL_JAIL_ROOT_DIR, err);
}
