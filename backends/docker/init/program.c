#include "backends/docker/init/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/docker/init/figures.h"
#include "backends/launcher/bundle.h"
#include "backends/launcher/child.h"
#include "backends/launcher/collect.h"
#include "backends/launcher/seccomp.h"

static int set_limit(__rlimit_resource_t resource, uint64_t value)
{
    struct rlimit now, rl = {.rlim_cur = value, .rlim_max = value};
    if (getrlimit(resource, &now) == 0 && now.rlim_max < rl.rlim_max) {
        rl.rlim_cur = rl.rlim_max = now.rlim_max; /* what the container has is all there is */
    }
    return setrlimit(resource, &rl) < 0 ? -errno : 0;
}

static int set_limits(const struct al_container_job *job, struct al_err *err)
{
    const struct {
        __rlimit_resource_t resource;
        uint64_t value;
    } limits[] = {
        {RLIMIT_CPU, (uint64_t)(job->cpu_ms + 999) / 1000 + 1}, /* behind init's own count */
        {RLIMIT_FSIZE, (uint64_t)job->file_size_mb << 20},
        {RLIMIT_NOFILE, job->open_files},
        {RLIMIT_CORE, AL_CORE_LIMIT},
        {RLIMIT_MSGQUEUE, 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        int rc = set_limit(limits[i].resource, limits[i].value);
        if (rc < 0) {
            return al_err_errno(err, -rc, "setrlimit");
        }
    }
    return 0;
}

/* Also those that libc keeps for itself and whoever started the container may have ignored. */
static void reset_signals(void)
{
    const uint64_t dfl[4] = {0}; /* the kernel's struct sigaction: SIG_DFL */
    for (int signo = 1; signo < NSIG; signo++) {
        syscall(SYS_rt_sigaction, signo, dfl, NULL, sizeof(uint64_t));
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int install_stdio(const struct al_stage *stage, struct al_err *err)
{
    if (stage->terminal && ioctl(stage->stdio[0], TIOCSCTTY, 0) < 0) {
        return al_err_errno(err, errno, "cannot make the terminal the program's own");
    }
    for (int i = 0; i < 3; i++) { /* all of them are above 2 */
        if (dup2(stage->stdio[i], i) < 0) {
            return al_err_errno(err, errno, "dup2");
        }
    }
    return 0;
}

/* As execvpe, but with init's own path: the request's PATH is the program's. */
static int exec_in_path(const char *const *argv, char *const *env)
{
    char path[AL_PATH_MAX];
    int error = ENOENT;
    if (strchr(argv[0], '/')) {
        execve(argv[0], (char *const *)argv, env);
        return errno;
    }
    for (const char *at = al_items_path; at; at = strchr(at, ':')) {
        at += *at == ':';
        snprintf(path, sizeof path, "%.*s/%s", (int)(strchrnul(at, ':') - at), at, argv[0]);
        execve(path, (char *const *)argv, env);
        error = errno == ENOENT ? error : errno;
    }
    return error;
}

static int load_filter(const struct sock_fprog *filter, struct al_err *err)
{
    return syscall(SYS_seccomp, 1 /* SECCOMP_SET_MODE_FILTER */, 0, filter) < 0
               ? al_err_errno(err, errno, "cannot load the seccomp filter")
               : 0;
}

/* Rather than init. The file is root's while this process is not dumpable. */
static void prefer_for_oom(void)
{
    prctl(PR_SET_DUMPABLE, 1);
    al_io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
    prctl(PR_SET_DUMPABLE, 0);
}

static _Noreturn void run_stage(const struct al_stage *stage, struct al_items *items,
                                const struct al_figures *figures, struct al_stage_mark *mark,
                                int status_fd)
{
    static const char *argv[AL_ARGS_MAX + AL_CONTAINER_WORDS_MAX + 1];
    struct al_err err = {0};
    size_t n = 0;
    setsid();
    umask(022);
    reset_signals();
    prefer_for_oom();
    int rc = install_stdio(stage, &err);
    rc = rc < 0 ? rc : set_limits(&items->plan->job, &err);
    rc = rc < 0 ? rc : load_filter(stage->filter, &err);
    if (rc < 0) {
        al_child_fail(status_fd, &err);
    }
    while (stage->argv[n]) {
        argv[n] = stage->argv[n];
        n++;
    }
    if (stage->with_args) {
        memcpy(argv + n, items->args, items->n_args * sizeof *argv);
    }
    *mark = (struct al_stage_mark){.at_ns = al_now_ns(), .cpu_us = al_figures_cpu_us(figures)};
    al_err_errno(&err, exec_in_path(argv, items->env), "cannot execute %s", argv[0]);
    al_child_fail(status_fd, &err);
}

pid_t al_stage_start(const struct al_stage *stage, struct al_items *items,
                     const struct al_figures *figures, struct al_stage_mark *mark,
                     int *ret_status_fd)
{
    int status[2];
    if (pipe2(status, O_CLOEXEC) < 0) {
        return -errno;
    }
    pid_t pid = fork();
    if (pid == 0) {
        run_stage(stage, items, figures, mark, status[1]);
    }
    int error = errno;
    close(status[1]);
    if (pid < 0) {
        close(status[0]);
        return -error;
    }
    *ret_status_fd = status[0];
    return pid;
}

int al_stage_open_terminal(struct al_terminal_size size, int *ret_master, int *ret_slave,
                           struct al_err *err)
{
    const struct winsize window = {.ws_row = size.rows, .ws_col = size.cols};
    int unlock = 0;
    al_auto_close int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0 ||
        ioctl(master, TIOCSWINSZ, &window) < 0) {
        return al_err_errno(err, errno, "cannot make a terminal");
    }
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) {
        return al_err_errno(err, errno, "cannot open the terminal");
    }
    *ret_slave = slave;
    *ret_master = al_steal_fd(&master);
    return 0;
}

static _Noreturn void collect(const struct al_items *items, const struct sock_fprog *filter,
                              int out, int status_fd)
{
    const struct al_job_spec globs = {.artifacts = items->globs, .n_artifacts = items->n_globs};
    struct al_err err = {0};
    reset_signals();
    const struct al_collect c = {.out = out,
                                 .bundle = al_bundle_create(&globs),
                                 .status_fd = status_fd,
                                 .root = "/",
                                 .workdir = items->plan->workdir + 1,
                                 .bytes_max = items->plan->job.artifact_bytes};
    if (c.bundle < 0) {
        al_err_errno(&err, -c.bundle, "cannot collect artifacts");
        al_child_fail(status_fd, &err);
    }
    if (load_filter(filter, &err) < 0) {
        al_child_fail(status_fd, &err);
    }
    al_collect_main(&c);
}

pid_t al_stage_collect(const struct al_items *items, const struct sock_fprog *filter, int out,
                       int *ret_status_fd)
{
    int status[2];
    if (pipe2(status, O_CLOEXEC) < 0) {
        return -errno;
    }
    pid_t pid = fork();
    if (pid == 0) {
        collect(items, filter, out, status[1]);
    }
    int error = errno;
    close(status[1]);
    if (pid < 0) {
        close(status[0]);
        return -error;
    }
    *ret_status_fd = status[0];
    return pid;
}
