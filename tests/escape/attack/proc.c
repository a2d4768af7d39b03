/* What /proc tells and takes. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/escape/attack/attack.h"

#define RACE_TRIES 2000

static int read_byte(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? errno : read(fd, &byte, 1) == 1 ? 0 : ENODATA;
    if (fd >= 0) {
        close(fd);
    }
    return result;
}

/* The first of them that says anything; else the last refusal. */
static int masked_files(void)
{
    static const char *const paths[] = {"/proc/kcore",    "/proc/key-users", "/proc/keys",
                                        "/proc/kallsyms", "/proc/kmsg",      "/proc/timer_list"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (read_byte(paths[i]) == 0) {
            return 0;
        }
    }
    return ENODATA;
}

/* A mask that is put up late, or twice, shows what is behind it now and then. */
static int masked_race(void)
{
    for (int i = 0; i < RACE_TRIES; i++) {
        if (read_byte("/proc/keys") == 0 || read_byte("/proc/kallsyms") == 0) {
            return 0;
        }
    }
    return ENODATA;
}

/* The mask is /dev/null, which anybody may write. */
static int sysrq(void)
{
    struct stat st;
    int fd = open("/proc/sysrq-trigger", O_WRONLY);
    if (fd < 0) {
        return errno == ENOENT ? ENODEV : errno; /* a kernel without it */
    }
    return fstat(fd, &st) == 0 && st.st_rdev == makedev(1, 3) ? ENODEV : 0;
}

static int core_pattern(void)
{
    return try_open("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static int net_sysctl(void)
{
    return try_open("/proc/sys/net/ipv4/ip_forward", O_WRONLY);
}

/* A process that belongs to nobody whom the cell knows. */
static int foreign_process(void)
{
    DIR *dir = opendir("/proc");
    int result = dir ? ENOENT : NOT_TRIED;
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        struct stat st;
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
            fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && st.st_uid == 65534)
        {
            result = 0;
        }
    }
    return result;
}

static int cgroup_path(void)
{
    char line[512];
    FILE *f = fopen("/proc/self/cgroup", "re");
    int result = f ? ENOENT : NOT_TRIED;
    while (f && fgets(line, sizeof line, f)) {
        if (strstr(line, "airlock-")) {
            result = 0;
        }
    }
    return result;
}

static int own_exe_write(void)
{
    return try_open("/usr/bin/bash", O_WRONLY);
}

const struct attack proc_attacks[] = {
    DOES("masked_files", masked_files),
    DOES("masked_race", masked_race),
    DOES("sysrq", sysrq),
    DOES("core_pattern", core_pattern),
    DOES("net_sysctl", net_sysctl),
    DOES("foreign_process", foreign_process),
    DOES("cgroup_path", cgroup_path),
    DOES("interpreter_write", own_exe_write),
    {.name = NULL},
};
