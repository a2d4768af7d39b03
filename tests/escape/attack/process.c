/* Other processes, keys, privileges, and what a program may do to itself. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/attack/attack.h"

#define SUID_COPIES 16 /* as in world.c */

static int add_key(void)
{
    return outcome(syscall(SYS_add_key, "user", "escape", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

/* In the keyring of whoever started the launcher. */
static int find_key_of_host(void)
{
    return outcome(syscall(SYS_request_key, "user", host_dir(), NULL, 0));
}

static int setuid_root(void)
{
    return outcome(setresuid(0, 0, 0));
}

static int setgroups_root(void)
{
    const gid_t root = 0;
    return outcome(syscall(SYS_setgroups, 1, &root));
}

/* Whether any capability is in any set of ours. */
static int has_capabilities(void)
{
    char line[128];
    FILE *f = fopen("/proc/self/status", "re");
    unsigned long long all = 0, set;
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "Cap", 3) == 0 && sscanf(line, "%*s %llx", &set) == 1) {
            all |= set;
        }
    }
    return !f ? NOT_TRIED : all ? 0 : EPERM;
}

/* `shared` holds copies of id, each setuid to what is root in some job's cell. */
static int setuid_program(void)
{
    for (int i = 0; i < SUID_COPIES; i++) {
        int fds[2];
        char name[32], uid[16] = "";
        snprintf(name, sizeof name, "shared/suid%d", i);
        if (access(host_path(name), X_OK) < 0 || pipe(fds) < 0) {
            return NOT_TRIED;
        }
        pid_t pid = fork();
        if (pid == 0) {
            dup2(fds[1], 1);
            execl(host_path(name), "id", "-u", NULL);
            _exit(1);
        }
        close(fds[1]);
        ssize_t got = read(fds[0], uid, sizeof uid - 1);
        close(fds[0]);
        waitpid(pid, NULL, 0);
        if (got <= 0) {
            return NOT_TRIED;
        }
        if (atol(uid) != (long)getuid()) {
            return 0;
        }
    }
    return EPERM;
}

static int no_new_privs(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}

/* Anything above the standard ones, of whoever made us. */
static int leaked_fd(void)
{
    DIR *dir = opendir("/proc/self/fd");
    if (!dir) {
        return NOT_TRIED;
    }
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] != '.' && atoi(e->d_name) > 2 && atoi(e->d_name) != dirfd(dir)) {
            return 0;
        }
    }
    return ENOENT;
}

static int foreign_variable(void)
{
    static const char *const ours[] = {
        "PATH=", "HOME=", "TMPDIR=", "LANG=", "TZ=", "PWD=", "SHLVL=", "_=", "OLDPWD=", "ESCAPE_"};
    for (char **e = environ; *e; e++) {
        size_t i = 0;
        while (i < sizeof ours / sizeof ours[0] && strncmp(*e, ours[i], strlen(ours[i])) != 0) {
            i++;
        }
        if (i == sizeof ours / sizeof ours[0]) {
            return 0;
        }
    }
    return ENOENT;
}

static int controlling_terminal(void)
{
    return try_open("/dev/tty", O_RDWR);
}

static int blocked_signals(void)
{
    sigset_t set;
    sigprocmask(SIG_SETMASK, NULL, &set);
    for (int signo = 1; signo < NSIG; signo++) {
        if (sigismember(&set, signo) == 1) {
            return 0;
        }
    }
    return ENOENT;
}

static int raise_priority(void)
{
    return outcome(setpriority(PRIO_PROCESS, 0, -5));
}

static int real_time(void)
{
    const struct sched_param param = {.sched_priority = 1};
    return outcome(sched_setscheduler(0, SCHED_FIFO, &param));
}

static int oom_shield(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    return fd < 0 ? errno : outcome(write(fd, "-1000", 5));
}

static int map_root(void)
{
    int fd = open("/proc/self/uid_map", O_WRONLY);
    return fd < 0 ? errno : outcome(write(fd, "0 0 1", 5));
}

/* Kills everything that it may signal, of whatever job. Without effect on us: signal 0. */
static int signal_all(void)
{
    pid_t self = getpid(), parent = getppid();
    for (pid_t pid = 2; pid < 32768; pid++) {
        if (pid != self && pid != parent && kill(pid, 0) == 0 && getpgid(pid) != getpgid(0)) {
            return 0;
        }
    }
    return ESRCH;
}

const struct attack process_attacks[] = {
    CALL("keyctl", SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1),
    DOES("add_key", add_key),
    CALL("request_key", SYS_request_key, (unsigned long)"user", (unsigned long)"escape", 0, 0),
    DOES("host_key", find_key_of_host),
    DOES("setuid_root", setuid_root),
    DOES("setgroups", setgroups_root),
    DOES("has_capabilities", has_capabilities),
    DOES("setuid_program", setuid_program),
    DOES("no_new_privs", no_new_privs),
    DOES("leaked_fd", leaked_fd),
    DOES("foreign_variable", foreign_variable),
    DOES("controlling_terminal", controlling_terminal),
    DOES("blocked_signals", blocked_signals),
    DOES("raise_priority", raise_priority),
    DOES("real_time", real_time),
    DOES("oom_shield", oom_shield),
    DOES("map_root", map_root),
    DOES("signal_all", signal_all),
    {.name = NULL},
};
