/* The cell's init: pid 1, a copy of the launcher. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/escape/attack/attack.h"

#define WATCH_MS     200
#define PIDS_WATCHED 24

static int init_kill(void)
{
    return outcome(kill(1, SIGKILL));
}

static int init_limits(void)
{
    struct rlimit now;
    return outcome(prlimit(1, RLIMIT_NOFILE, NULL, &now));
}

static int init_mem(void)
{
    return try_open("/proc/1/mem", O_RDWR);
}

static int init_environ(void)
{
    char text[4096];
    int fd = open("/proc/1/environ", O_RDONLY);
    if (fd < 0) {
        return errno;
    }
    ssize_t n = read(fd, text, sizeof text);
    return n > 0 && memmem(text, (size_t)n, "SECRET", 6) ? 0 : ENODATA;
}

/* To overwrite the launcher's binary when nobody runs it. */
static int init_exe(void)
{
    return try_open("/proc/1/exe", O_RDONLY);
}

static int init_exe_write(void)
{
    return try_open("/proc/1/exe", O_WRONLY);
}

static int init_root(void)
{
    return try_open("/proc/1/root/etc/passwd", O_RDONLY);
}

static int init_cwd(void)
{
    return try_open("/proc/1/cwd", O_RDONLY | O_DIRECTORY);
}

static int init_fds(void)
{
    DIR *dir = opendir("/proc/1/fd");
    return dir ? 0 : errno;
}

static int init_netns(void)
{
    return try_open("/proc/1/ns/net", O_RDONLY);
}

static int init_map_files(void)
{
    DIR *dir = opendir("/proc/1/map_files");
    return dir ? 0 : errno;
}

/* Where the configuration lies, and the data-dir. */
static int init_arguments(void)
{
    char text[4096];
    int fd = open("/proc/1/cmdline", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    return n < 0 ? NOT_TRIED : memmem(text, (size_t)n, host_dir(), strlen(host_dir())) ? 0 : ENOENT;
}

static int init_oom(void)
{
    return try_open("/proc/1/oom_score_adj", O_WRONLY);
}

static int init_pidfd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, 1, 0);
    return fd < 0 ? NOT_TRIED : outcome(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
}

/* --- what becomes the program, after a compile step whose processes still run --- */

static bool is_launcher(pid_t pid)
{
    char path[32], text[32];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0) {
        close(fd);
    }
    return n >= 8 && memcmp(text, "airlock-", 8) == 0;
}

/* EACCES: it is there, but does not let itself be looked into. ENOENT: it is not, or has become the
 * program by now. */
static int look_into(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    int result = is_launcher(pid) ? try_open(path, O_RDONLY | O_DIRECTORY) : ENOENT;
    return result == EACCES || (result == 0 && is_launcher(pid)) ? result : ENOENT;
}

/* Watches for it for a while; its fds lead to the host's cgroups. */
static int second_stage(void)
{
    struct timespec start, now;
    int result = ENOENT;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (pid_t pid = 2; pid < PIDS_WATCHED && result != 0; pid++) {
            int got = look_into(pid);
            result = got == ENOENT ? result : got;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (result != 0 &&
             (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 <
                 WATCH_MS);
    return result;
}

const struct attack init_attacks[] = {
    DOES("init_kill", init_kill),
    DOES("init_pidfd", init_pidfd),
    DOES("init_limits", init_limits),
    DOES("init_mem", init_mem),
    DOES("init_environ", init_environ),
    DOES("init_exe", init_exe),
    DOES("init_exe_write", init_exe_write),
    DOES("init_root", init_root),
    DOES("init_cwd", init_cwd),
    DOES("init_fds", init_fds),
    DOES("init_netns", init_netns),
    DOES("init_map_files", init_map_files),
    DOES("init_arguments", init_arguments),
    DOES("init_oom", init_oom),
    DOES("second_stage", second_stage),
    {.name = NULL},
};
