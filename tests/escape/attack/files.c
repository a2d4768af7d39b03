/* Files of the host, and files without end. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/escape/attack/attack.h"

/* The file itself, or below what is left of the host's root. */
static int anywhere(const char *path, int flags)
{
    char old[PATH_MAX];
    int result = try_open(path, flags);
    if (result != ENOENT) {
        return result;
    }
    snprintf(old, sizeof old, "/.old%s", path);
    return try_open(old, flags);
}

static int host_file(void)
{
    return anywhere(host_path("secret"), O_RDONLY);
}

static int configuration(void)
{
    return anywhere(host_path("conf"), O_RDONLY);
}

static int shadow(void)
{
    return anywhere("/etc/shadow", O_RDONLY);
}

static int sysfs(void)
{
    return anywhere("/sys/kernel", O_RDONLY | O_DIRECTORY);
}

static int cgroupfs(void)
{
    return anywhere("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
}

static int run_dir(void)
{
    return anywhere("/run", O_RDONLY | O_DIRECTORY);
}

static int kernel_log(void)
{
    return anywhere("/dev/kmsg", O_PATH);
}

static int kernel_memory(void)
{
    return anywhere("/dev/mem", O_PATH);
}

static int write_system(void)
{
    return try_open("/usr/escape", O_WRONLY | O_CREAT);
}

static int write_root(void)
{
    return try_open("/escape", O_WRONLY | O_CREAT);
}

static int write_etc(void)
{
    return try_open("/etc/passwd", O_WRONLY);
}

static int write_shared(void)
{
    return try_open(host_path("shared/open/new"), O_WRONLY | O_CREAT);
}

static int touch_device(void)
{
    return outcome(utimensat(AT_FDCWD, "/dev/null", NULL, 0));
}

static int use_device(void)
{
    return try_open(host_path("shared/zero"), O_RDONLY);
}

static int make_device(void)
{
    return outcome(mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)));
}

/* Out of the root by "..", from a folder that was open before a chroot; here: from every fd. */
static int climb(void)
{
    struct stat here, root;
    if (chdir("/sandbox") < 0) {
        return NOT_TRIED;
    }
    for (int i = 0; i < 64; i++) {
        if (chdir("..") < 0) {
            return errno;
        }
    }
    if (stat(".", &here) < 0 || stat("/", &root) < 0) {
        return NOT_TRIED;
    }
    return here.st_ino == root.st_ino && here.st_dev == root.st_dev ? ENOENT : 0;
}

/* From wherever the program was started in: a folder of the host has its root above it. */
static int climb_from_cwd(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "../../../../../../../../../..%s", host_path("secret"));
    return try_open(path, O_RDONLY);
}

/* The bound of the test's jobs is DISK_MB together, files are of a MiB each. */
static int fill(void)
{
    static const char *const dirs[] = {"/sandbox", "/tmp", "/dev/shm"};
    static char mib[1 << 20];
    memset(mib, 'x', sizeof mib);
    const char *disk = getenv("ESCAPE_DISK_MB");
    const int bound = disk ? atoi(disk) : 0;
    int result = bound > 0 ? 0 : NOT_TRIED, n = 0;
    for (; result == 0 && n < bound + 4; n++) {
        char path[64];
        snprintf(path, sizeof path, "%s/fill%d", dirs[n % 3], n);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        ssize_t put = fd < 0 ? -1 : write(fd, mib, sizeof mib);
        result = put < 0 ? errno : put < (ssize_t)sizeof mib ? ENOSPC : 0;
        close(fd);
    }
    for (int i = 0; i < n; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/fill%d", dirs[i % 3], i);
        unlink(path);
    }
    return result;
}

/* Empty files take memory too. */
static int fill_names(void)
{
    int result = 0, n = 0;
    char path[64];
    for (; result == 0 && n < 20000; n++) {
        snprintf(path, sizeof path, "/tmp/name%d", n);
        result = try_open(path, O_WRONLY | O_CREAT);
    }
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "/tmp/name%d", i);
        unlink(path);
    }
    return result;
}

/* What another job, which ran the attack leave_file, has left where both can write. */
static int leave_file(void)
{
    return try_open(host_path("shared/open/left"), O_RDWR | O_CREAT);
}

static int leave_tmp(void)
{
    return try_open("/tmp/left", O_RDWR | O_CREAT);
}

static int read_left_file(void)
{
    return try_open(host_path("shared/open/left"), O_RDONLY);
}

static int read_left_tmp(void)
{
    return try_open("/tmp/left", O_RDONLY);
}

static int leave_shm(void)
{
    return try_open("/dev/shm/left", O_RDWR | O_CREAT);
}

static int read_left_shm(void)
{
    return try_open("/dev/shm/left", O_RDONLY);
}

const struct attack file_attacks[] = {
    DOES("host_file", host_file),
    DOES("configuration", configuration),
    DOES("shadow", shadow),
    DOES("sysfs", sysfs),
    DOES("cgroupfs", cgroupfs),
    DOES("run_dir", run_dir),
    DOES("kernel_log", kernel_log),
    DOES("kernel_memory", kernel_memory),
    DOES("write_system", write_system),
    DOES("write_root", write_root),
    DOES("write_etc", write_etc),
    DOES("write_shared", write_shared),
    DOES("touch_device", touch_device),
    DOES("use_device", use_device),
    DOES("make_device", make_device),
    DOES("climb", climb),
    DOES("climb_from_cwd", climb_from_cwd),
    DOES("fill", fill),
    DOES("fill_names", fill_names),
    DOES("leave_file", leave_file),
    DOES("leave_tmp", leave_tmp),
    DOES("read_left_file", read_left_file),
    DOES("read_left_tmp", read_left_tmp),
    DOES("leave_shm", leave_shm),
    DOES("read_left_shm", read_left_shm),
    {.name = NULL},
};
