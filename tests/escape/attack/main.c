/*
 * attack NAME...: runs each attack in a process of its own and prints a line: its name and "ok" (it
 * got through), the name of an errno, of the signal that killed it, or "not-tried".
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include "tests/escape/attack/attack.h"

#define HANG_S 60

static const struct attack *const lists[] = {call_attacks, process_attacks, memory_attacks,
                                             init_attacks, file_attacks,    proc_attacks,
                                             net_attacks,  limit_attacks};

const char *host_dir(void)
{
    const char *dir = getenv("ESCAPE_DIR");
    return dir ? dir : "/nowhere";
}

const char *host_path(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", host_dir(), name);
    return path;
}

int try_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    int result = outcome(fd);
    if (fd >= 0) {
        close(fd);
    }
    return result;
}

int in_child(int (*fn)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int result = fn();
        _exit(result < 0 ? 255 : result);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
        WEXITSTATUS(status) == 255) {
        return NOT_TRIED;
    }
    return WEXITSTATUS(status);
}

static const struct attack *find(const char *name)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (const struct attack *a = lists[i]; a->name; a++) {
            if (strcmp(a->name, name) == 0) {
                return a;
            }
        }
    }
    return NULL;
}

static int perform(const struct attack *a)
{
    const unsigned long *x = a->args;
    return a->run ? a->run() : outcome(syscall(a->nr, x[0], x[1], x[2], x[3], x[4], x[5]));
}

/* What became of the attack's process; its result is an exit code, errnos fit. */
static const char *tell(int status)
{
    if (WIFSIGNALED(status)) {
        static char text[32];
        snprintf(text, sizeof text, "SIG%s", sigabbrev_np(WTERMSIG(status)));
        return text;
    }
    int result = WEXITSTATUS(status);
    return result == 0 ? "ok" : result == 255 ? "not-tried" : strerrorname_np(result);
}

static void run(const char *name)
{
    const struct attack *a = find(name);
    int status = 255 << 8;
    pid_t pid = a ? fork() : -1;
    if (pid == 0) {
        alarm(HANG_S);
        int result = perform(a);
        _exit(result < 0 ? 255 : result);
    }
    if (pid > 0) {
        waitpid(pid, &status, 0);
    }
    printf("%s %s\n", name, tell(status));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        run(argv[i]);
    }
    return 0;
}
