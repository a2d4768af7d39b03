#include "backends/launcher/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/err.h"
#include "backends/base/log.h"
#include "backends/base/version.h"
#include "backends/launcher/child.h"

#define NOBODY 65534
#define ASK_MS 5000

/* Without root there is nobody else to become. */
static int lose_root(bool rootless, struct al_err *err)
{
    return rootless ? al_child_drop_capabilities(err) : al_child_become(NOBODY, false, err);
}

enum asked_as { AS_NOBODY, AS_NOBODY_ROOTLESS, AS_ROOT };

/* What it leaves in /run goes with the namespace. */
static int hide_run(void)
{
    return unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                   mount("none", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") < 0
               ? -errno
               : 0;
}

static int take_part(enum asked_as as, struct al_err *err)
{
    if (as == AS_ROOT) {
        return hide_run();
    }
    return geteuid() == 0 ? lose_root(as == AS_NOBODY_ROOTLESS, err) : 0;
}

static _Noreturn void exec_asked(char *const argv[], enum asked_as as, int out)
{
    struct al_err err = {0};
    int keep[] = {out};
    al_child_keep_fds(keep, 1);
    int null = open("/dev/null", O_RDWR); /* becomes fd 0 */
    if (null != 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || take_part(as, &err) < 0) {
        _exit(126);
    }
    char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"LANG=C.UTF-8", NULL};
    execve(argv[0], argv, env);
    _exit(127);
}

static ssize_t ask(enum asked_as as, char *const argv[], char *ret, size_t size)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return -errno;
    }
    pid_t pid = fork();
    if (pid == 0) {
        exec_asked(argv, as, fds[1]);
    }
    close(fds[1]);
    al_auto_close int in = fds[0];
    size_t len = 0;
    int64_t deadline_ms = al_now_ms() + ASK_MS;
    struct pollfd pfd = {.fd = in, .events = POLLIN};
    for (int64_t left; pid > 0 && (left = deadline_ms - al_now_ms()) > 0;) {
        ssize_t got = poll(&pfd, 1, (int)left) > 0 ? read(in, ret + len, size - 1 - len) : -1;
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
    }
    ret[len] = '\0';
    if (pid < 0) {
        return -EAGAIN;
    }
    kill(pid, SIGKILL); /* it has closed its output, or had its time */
    waitpid(pid, NULL, 0);
    return (ssize_t)len;
}

ssize_t al_runtime_ask(const struct al_cells_config *config, char *const argv[], char *ret,
                       size_t size)
{
    return ask(config->rootless ? AS_NOBODY_ROOTLESS : AS_NOBODY, argv, ret, size);
}

ssize_t al_runtime_ask_as_root(char *const argv[], char *ret, size_t size)
{
    return ask(AS_ROOT, argv, ret, size);
}

static bool version_of(const struct al_cells_config *config, const char *program, char *ret,
                       size_t size)
{
    char text[512];
    char *const argv[] = {(char *)program, (char *)"--version", NULL};
    if (access(program, X_OK) < 0) {
        return false;
    }
    if (al_runtime_ask(config, argv, text, sizeof text) <= 0 || !al_version_pick(text, ret, size)) {
        snprintf(ret, size, "unknown");
    }
    return true;
}

/* A language that is compiled for an interpreter has two versions that matter:
 * "COMPILER+INTERPRETER.VERSION". What is compiled to a program has its compiler's. Returns the
 * program that is missing, or NULL. */
static const char *probe(const struct al_cells_config *config, struct al_runtime *rt)
{
    char run[AL_RUNTIME_NAME_MAX] = "unknown", compile[AL_RUNTIME_NAME_MAX];
    const char *program = rt->argv.word[0];
    bool interpreted = program[0] == '/'; /* else a file of the job's */
    if (interpreted && !version_of(config, program, run, sizeof run)) {
        return program;
    }
    if (rt->compile.n > 0 && !version_of(config, rt->compile.word[0], compile, sizeof compile)) {
        return rt->compile.word[0];
    }
    if (rt->info.version[0] != '\0') {
        return NULL;
    }
    if (rt->compile.n == 0 || !interpreted) {
        memcpy(rt->info.version, rt->compile.n == 0 ? run : compile, sizeof run);
    } else {
        snprintf(rt->info.version, sizeof rt->info.version, "%.20s+%.16s.%.20s", compile,
                 strrchr(program, '/') + 1, run);
    }
    return NULL;
}

void al_runtimes_probe(struct al_cells_config *config)
{
    size_t kept = 0;
    for (size_t i = 0; i < config->n_runtimes; i++) {
        const char *missing = probe(config, &config->runtimes[i]);
        if (missing) {
            al_log_warn("runtime %s is left out: %s cannot be executed",
                        config->runtimes[i].info.name, missing);
        } else {
            memmove(&config->runtimes[kept++], &config->runtimes[i], sizeof config->runtimes[i]);
        }
    }
    config->n_runtimes = kept;
}
