/*
 * Theory of operation. The program's process is the launcher's child, born in the cell's pid
 * namespace, and where the kernel can in the cell's cgroup. Elsewhere it makes and joins the cell's
 * cgroups while init builds the cell, still as root of the host. Then it enters init's other
 * namespaces, becomes the job's user, gives every privilege away and loads the seccomp filter: what
 * waits for an assignment, at once or, in a cell made ahead, much later, is as confined as the
 * program will be. With the assignment come the job's limits, pipes and bundle. Only now does it
 * touch a byte of the request: it unpacks the bundle into the workdir, so that this is charged to
 * the job and bounded by its limits, sets rlimits, and execs. Whatever fails is reported over the
 * status pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/child.h"
#include "backends/launcher/collect.h"
#include "backends/launcher/jail.h"
#include "backends/launcher/prestart.h"
#include "backends/launcher/program.h"
#include "backends/launcher/rootfs.h"
#include "backends/launcher/seccomp.h"
#include "backends/launcher/terminal.h"

static int enter_namespaces(const struct al_cell_plan *plan, const struct al_cell *cell,
                            struct al_err *err)
{
    int flags = CLONE_NEWNS;
    if (plan->kind != AL_CELL_LOCAL) {
        const int own_root = (int)al_barrier_flags(AL_BARRIER_CGROUPNS, CLONE_NEWCGROUP);
        if (unshare(own_root) < 0) { /* the job's own group */
            return al_err_errno(err, errno, "unshare(CLONE_NEWCGROUP)");
        }
    }
    if (plan->kind == AL_CELL_NATIVE) {
        flags |= CLONE_NEWUSER | (int)al_cell_side_flags();
    }
    if (setns(cell->init_pidfd, flags) < 0) {
        return al_err_errno(err, errno, "setns");
    }
    return 0;
}

static int become_user(const struct al_cell_plan *plan, struct al_err *err)
{
    bool native = plan->kind == AL_CELL_NATIVE;
    if (plan->kind == AL_CELL_FIREJAIL) { /* it becomes root again, and takes all of it away */
        return al_child_become(plan->program_uid, false, err);
    }
    int rc = al_child_drop_bounding_set(err);
    rc = rc < 0 ? rc
                : al_child_become(native ? al_rootfs_cell_uid() : plan->program_uid,
                                  plan->config->rootless, err);
    rc = rc < 0 ? rc : al_child_drop_capabilities(err);
    /* Processes of a compile step have the same uid, and what is open here leads to the host. */
    prctl(PR_SET_DUMPABLE, al_barrier_is_on(AL_BARRIER_DUMPABLE) ? 0 : 1);
    return rc;
}

/* --- the program's surroundings --- */

static int base_env(struct al_program *p)
{
    char home[AL_PROGRAM_PATH_BYTES], tmp[AL_PROGRAM_PATH_BYTES];
    snprintf(home, sizeof home, "%s/sandbox", p->prefix);
    snprintf(tmp, sizeof tmp, "%s/tmp", p->prefix);
    const char *const vars[][2] = {
        {"PATH", "/usr/local/bin:/usr/bin:/bin"},
        {"HOME", home},
        {"TMPDIR", tmp},
        {"LANG", "C.UTF-8"},
        {"TZ", "UTC"},
    };
    for (size_t i = 0; i < sizeof vars / sizeof vars[0]; i++) {
        if (al_program_add_env(p, vars[i][0], vars[i][1]) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

struct limit {
    __rlimit_resource_t resource;
    const char *name;
    uint64_t value;
};

/* Of `pid`, or of this process for 0. */
static int set_limits(pid_t pid, const struct limit *limits, size_t n, struct al_err *err)
{
    for (size_t i = 0; i < n && al_barrier_is_on(AL_BARRIER_RLIMITS); i++) {
        struct rlimit now, rl = {.rlim_cur = limits[i].value, .rlim_max = limits[i].value};
        if (prlimit(pid, limits[i].resource, NULL, &now) == 0 && now.rlim_max < rl.rlim_max) {
            rl.rlim_cur = rl.rlim_max =
                now.rlim_max; /* what the launcher has is all there is to give */
        }
        if (prlimit(pid, limits[i].resource, &rl, NULL) < 0) {
            return al_err_errno(err, errno, "prlimit(%s)", limits[i].name);
        }
    }
    return 0;
}

static int set_common_limits(struct al_err *err)
{
    static const struct limit limits[] = {
        {RLIMIT_CORE, "RLIMIT_CORE", AL_CORE_LIMIT},
        {RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE", 0},
        {RLIMIT_RTPRIO, "RLIMIT_RTPRIO", 0},
        {RLIMIT_NICE, "RLIMIT_NICE", 0},
    };
    return set_limits(0, limits, sizeof limits / sizeof limits[0], err);
}

/* What stands in for a layer that is missing: each process may have that much data of its own, and
 * the job's user that many processes. */
static int set_substitutes(pid_t pid, const struct al_cell_plan *plan, const struct al_quotas *q,
                           struct al_err *err)
{
    uint32_t layers = plan->cgroups->layers;
    uint32_t inits = plan->config->rootless; /* of the same user */
    const struct limit data = {RLIMIT_DATA, "RLIMIT_DATA", (uint64_t)q->memory_mb << 20};
    const struct limit processes = {RLIMIT_NPROC, "RLIMIT_NPROC", q->pids + inits};
    int rc = layers & AL_LAYER_CGROUP_MEMORY ? 0 : set_limits(pid, &data, 1, err);
    return rc < 0 || layers & AL_LAYER_CGROUP_PIDS ? rc : set_limits(pid, &processes, 1, err);
}

static int set_job_limits(pid_t pid, const struct al_cell_plan *plan, const struct al_quotas *q,
                          struct al_err *err)
{
    const uint64_t cpu_s = (uint64_t)(q->cpu_ms + 999) / 1000 + 1; /* behind the cgroup's count */
    const struct limit limits[] = {
        {RLIMIT_CPU, "RLIMIT_CPU", cpu_s},
        {RLIMIT_FSIZE, "RLIMIT_FSIZE", (uint64_t)q->file_size_mb << 20},
        {RLIMIT_NOFILE, "RLIMIT_NOFILE", q->open_files},
    };
    int rc = set_limits(pid, limits, sizeof limits / sizeof limits[0], err);
    return rc < 0 ? rc : set_substitutes(pid, plan, q, err);
}

/* Nothing of the launcher's own surroundings may reach the program. Of the signals, SIGPIPE is the
 * only one that the launcher does not leave at its default. */
static void reset_process(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &dfl, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(022);
    setsid();
    setpriority(PRIO_PROCESS, 0, 0);
}

static int install_stdio(const int fds[3], struct al_err *err)
{
    /* All of them are above 2, so that no dup2 hits one that is still needed. */
    for (int i = 0; i < 3; i++) {
        if (dup2(fds[i], i) < 0) {
            return al_err_errno(err, errno, "dup2");
        }
    }
    return 0;
}

static int expand(const struct al_program *p, const struct al_words *words, const char **argv)
{
    size_t n = 0;
    for (; n < words->n; n++) {
        const char *word = words->word[n];
        const char *at = strstr(word, "{code}");
        const char *path = at ? p->code_path : p->output_path;
        size_t skip = at ? strlen("{code}") : strlen("{output}");
        at = at ? at : strstr(word, "{output}");
        char *text = NULL;
        if (at && asprintf(&text, "%.*s%s%s", (int)(at - word), word, path, at + skip) < 0) {
            return -ENOMEM;
        }
        argv[n] = at ? text : word;
    }
    argv[n] = NULL;
    return (int)n;
}

static void mark_exec(const struct al_cell_plan *plan, int mark_fd)
{
    const struct al_mark mark = {.at_ns = al_now_ns(),
                                 .cpu_us = plan->cgroups->ops->cpu_us(plan->cgroups, plan->name)};
    ssize_t put = write(mark_fd, &mark, sizeof mark);
    (void)put; /* without it the launcher takes the moment at which it sees exec */
}

static _Noreturn void exec_stage(struct al_program *p, int mark_fd, int status_fd)
{
    static const char *argv[AL_ARGV_MAX + AL_ARGS_MAX + 1];
    struct al_err err = {0};
    bool compile = p->assignment.stage == AL_STAGE_COMPILE;
    int n = expand(p, compile ? &p->runtime->compile : &p->runtime->argv, argv);
    if (n < 0 || !argv[0]) {
        al_err_errno(&err, ENOMEM, "argv");
        al_child_fail(status_fd, &err);
    }
    if (!compile) {
        memcpy(argv + n, p->args, p->n_args * sizeof *argv);
    }
    mark_exec(p->plan, mark_fd); /* from here on time and CPU are the program's */
    execve(argv[0], (char *const *)argv, p->env);
    al_err_errno(&err, errno, "cannot execute %s", argv[0]);
    al_child_fail(status_fd, &err);
}

static void prepare_paths(struct al_program *p)
{
    p->runtime = &p->plan->config->runtimes[p->assignment.runtime];
    const struct al_msg_runtime *info = &p->runtime->info;
    snprintf(p->workdir, sizeof p->workdir, "%s%s", p->prefix, p->assignment.spawn.workdir);
    snprintf(p->code_path, sizeof p->code_path, "%s/%s", p->workdir, info->code_file);
    snprintf(p->output_path, sizeof p->output_path, "%s/%s", p->workdir, info->output_file);
    snprintf(p->inputs_path, sizeof p->inputs_path, "%s/tmp/" AL_INPUTS_NAME, p->prefix);
}

static int join_cgroups(const struct al_cell_plan *plan, enum al_role role, struct al_err *err)
{
    bool first = al_role_is_first(role);
    const struct al_cgroup_ops *ops = plan->cgroups->ops;
    bool born_there = ops->open != NULL;
    int rc = first && !born_there ? ops->make(plan->cgroups, plan->name, err) : 0;
    rc = rc < 0 || born_there ? rc
                              : ops->join(plan->cgroups, plan->name, role != AL_ROLE_SETTER, err);
    return rc < 0 || !first || !al_barrier_is_on(AL_BARRIER_CGROUP)
               ? rc
               : ops->limit(plan->cgroups, plan->name, &plan->quotas, err);
}

static int load_filter(const struct al_cell_plan *plan, struct al_err *err)
{
    if (plan->kind == AL_CELL_NATIVE && al_barrier_is_on(AL_BARRIER_SECCOMP) &&
        syscall(SYS_seccomp, 1 /* SECCOMP_SET_MODE_FILTER */, 0, plan->filter) < 0)
    {
        return al_err_errno(err, errno, "cannot load the seccomp filter");
    }
    return 0;
}

/* Everything that needs no assignment. */
static int enter_cell(const struct al_cell_plan *plan, const struct al_cell *cell,
                      enum al_role role, struct al_err *err)
{
    int rc = join_cgroups(plan, role, err);
    if (rc < 0) {
        return rc;
    }
    /* Before anything of the host's; and a jail's program before what keeps it there. */
    al_io_write_file(AT_FDCWD, "/proc/self/oom_score_adj",
                     al_cell_is_jail(plan->kind) ? "500" : "1000");
    char byte;
    if (al_role_is_first(role) && TEMP_FAILURE_RETRY(read(cell->ready_fd, &byte, 1)) != 1) {
        _exit(1); /* init failed and has said why */
    }
    rc = enter_namespaces(plan, cell, err);
    rc = rc < 0 ? rc : become_user(plan, err);
    if (role == AL_ROLE_SETTER) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not die with the cell */
    }
    rc = rc < 0 ? rc : set_common_limits(err); /* the filter pretends that one of them is gone */
    return rc < 0 ? rc : load_filter(plan, err);
}

/* Its socket is passed as stdin. */
static bool has_terminal(const struct al_program *p)
{
    return p->assignment.stage == AL_STAGE_RUN && p->assignment.spawn.terminal.rows > 0;
}

static int receive_assignment(struct al_program *p, int assign_fd, int fds[AL_IO_FDS_MAX],
                              struct al_err *err)
{
    size_t n = 0;
    ssize_t got = al_io_recv_fds(assign_fd, &p->assignment, sizeof p->assignment, fds, &n);
    if (got == 0) {
        _exit(0); /* the launcher has no use for this cell any more */
    }
    size_t expected = p->role == AL_ROLE_SETTER ? AL_STAGE_BUNDLE + 1
                      : has_terminal(p)         ? AL_STAGE_STDIN + 1
                                                : AL_STAGE_FDS;
    if (got != (ssize_t)sizeof p->assignment || n != expected) {
        return al_err_set(err, AL_ERR_INTERNAL, "malformed assignment");
    }
    prepare_paths(p);
    return 0;
}

static int await_resize(int ready_fd, struct al_err *err)
{
    uint8_t code;
    if (TEMP_FAILURE_RETRY(read(ready_fd, &code, 1)) != 1) {
        return al_err_set(err, AL_ERR_INTERNAL, "the cell's init died");
    }
    return code == 0 ? 0 : al_err_errno(err, code, "cannot resize the disk");
}

static void say_settled(int status_fd)
{
    const struct al_mark mark = {.at_ns = AL_MARK_SETTLED};
    ssize_t put = write(status_fd, &mark, sizeof mark);
    (void)put; /* without it the cell is only for jobs with the limits that it was made with */
}

/* A collector needs neither limits of the job's nor its environment. */
static _Noreturn void collect(const struct al_program *p, const int fds[AL_STAGE_FDS],
                              int status_fd)
{
    const struct al_collect collect = {.out = fds[AL_STAGE_STDOUT],
                                       .bundle = fds[AL_STAGE_BUNDLE],
                                       .status_fd = status_fd,
                                       .root = p->prefix[0] ? p->prefix : "/",
                                       .workdir = p->assignment.spawn.workdir + 1,
                                       .bytes_max = p->assignment.spawn.quotas.artifact_bytes};
    al_collect_main(&collect);
}

static int open_terminal(struct al_program *p, int sock, struct al_err *err)
{
    bool named = false;
    for (size_t i = 0; i < p->n_env; i++) {
        named = named || strncmp(p->env[i], "TERM=", 5) == 0;
    }
    if (!named && al_program_add_env(p, "TERM", "xterm-256color") < 0) {
        return al_err_errno(err, ENOMEM, "environment");
    }
    return al_terminal_open(sock, p->assignment.spawn.terminal, err);
}

/* Everything between the assignment and exec that may fail. */
static int settle(struct al_program *p, int ready_fd, const int fds[AL_IO_FDS_MAX],
                  struct al_err *err)
{
    bool setter = p->role == AL_ROLE_SETTER;
    int rc = p->assignment.resized ? await_resize(ready_fd, err) : 0;
    rc = rc < 0 ? rc : al_program_unpack(p, fds[AL_STAGE_BUNDLE], err);
    close(fds[AL_STAGE_BUNDLE]); /* it may be large, and exec would free it at the program's cost */
    if (rc == 0 && p->has_inputs && al_program_add_env(p, "AIRLOCK_INPUTS", p->inputs_path) < 0) {
        rc = al_err_errno(err, ENOMEM, "environment");
    }
    if (rc == 0 && has_terminal(p)) {
        rc = open_terminal(p, fds[AL_STAGE_STDIN], err);
    } else if (rc == 0 && !setter) {
        rc = install_stdio(fds + AL_STAGE_STDIN, err);
    }
    return rc < 0 ? rc
                  : set_job_limits(setter ? p->plan->interpreter : 0, p->plan,
                                   &p->assignment.spawn.quotas, err);
}

/* Its program comes later, so it starts with the folder and the environment that most programs ask
 * for; others do not get a started interpreter. */
static _Noreturn void exec_interpreter(struct al_program *p, int status_fd)
{
    static const char *argv[AL_ARGV_MAX + 3];
    struct al_err err = {0};
    p->assignment.runtime = (uint32_t)p->plan->runtime;
    snprintf(p->assignment.spawn.workdir, sizeof p->assignment.spawn.workdir, AL_WORKDIR_DEFAULT);
    prepare_paths(p);
    int n = expand(p, &p->runtime->argv, argv);
    int rc = n < 0 ? al_err_errno(&err, ENOMEM, "argv") : chdir(p->workdir);
    if (rc < 0 && !al_err_is_set(&err)) {
        al_err_errno(&err, errno, "chdir %s", p->workdir);
    }
    rc = rc < 0 ? rc : install_stdio(p->plan->stdio, &err);
    rc = rc < 0 ? rc : al_prestart_prepare(p, argv, (size_t)n, &status_fd, &err);
    if (rc == 0) {
        execve(argv[0], (char *const *)argv, p->env);
        al_err_errno(&err, errno, "cannot execute %s", argv[0]);
    }
    al_child_fail(status_fd, &err);
}

/* From the mark on time and CPU are the program's. */
static _Noreturn void start_interpreters_program(struct al_program *p, int status_fd)
{
    struct al_err err = {0};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL); /* an interpreter that has died is to be told of */
    mark_exec(p->plan, status_fd);
    if (al_prestart_go(p, &err) < 0) {
        al_child_fail(status_fd, &err);
    }
    _exit(0);
}

static void keep_fds(const struct al_cell_plan *plan, const struct al_cell *cell, enum al_role role,
                     int assign_fd, int status_fd)
{
    bool interpreter = role == AL_ROLE_INTERPRETER;
    /* 0, 1 and 2 stay until the program's own take their place: nothing else may get their numbers.
     */
    int keep[AL_CGROUP_DIRS_MAX + 11] = {
        0,
        1,
        2,
        cell->init_pidfd,
        cell->ready_fd,
        assign_fd,
        status_fd,
        interpreter              ? plan->start[0]
        : role == AL_ROLE_SETTER ? plan->start[1]
                                 : -1,
        interpreter ? plan->stdio[0] : -1,
        interpreter ? plan->stdio[1] : -1,
        interpreter ? plan->stdio[2] : -1,
    };
    for (size_t i = 0; i < AL_CGROUP_DIRS_MAX; i++) {
        keep[11 + i] = i < plan->cgroups->n_dirs ? plan->cgroups->dirs[i].fd : -1;
    }
    if (al_barrier_is_on(AL_BARRIER_FDS)) {
        al_child_keep_fds(keep, sizeof keep / sizeof keep[0]);
    }
}

void al_program_become(struct al_program *p, const int fds[AL_IO_FDS_MAX], int mark_fd,
                       int status_fd)
{
    struct al_err err = {0};
    reset_process();
    prepare_paths(p);
    int rc = base_env(p) < 0 ? al_err_errno(&err, ENOMEM, "environment") : 0;
    rc = rc < 0 ? rc : settle(p, -1, fds, &err);
    if (rc < 0) {
        al_child_fail(status_fd, &err);
    }
    exec_stage(p, mark_fd, status_fd);
}

void al_program_main(const struct al_cell_plan *plan, const struct al_cell *cell, enum al_role role,
                     int assign_fd, int status_fd)
{
    static struct al_program program; /* large, and this process is its only user */
    struct al_err err = {0};
    struct al_program *p = &program;
    p->plan = plan;
    p->role = role;
    p->prefix = plan->kind == AL_CELL_NATIVE ? "" : AL_LOCAL_DIR;
    keep_fds(plan, cell, role, assign_fd, status_fd);
    reset_process();
    int fds[AL_IO_FDS_MAX];
    int rc = enter_cell(plan, cell, role, &err);
    if (rc == 0 && role != AL_ROLE_SETTER && base_env(p) < 0) {
        rc = al_err_errno(&err, ENOMEM, "environment");
    }
    if (rc == 0 && al_cell_is_jail(plan->kind)) {
        al_jail_exec(plan, assign_fd, status_fd);
    }
    if (rc == 0 && role == AL_ROLE_INTERPRETER) {
        exec_interpreter(p, status_fd);
    }
    if (rc == 0) {
        say_settled(status_fd);
        rc = receive_assignment(p, assign_fd, fds, &err);
    }
    if (rc == 0 && p->assignment.stage == AL_STAGE_COLLECT) {
        collect(p, fds, status_fd);
    }
    rc = rc < 0 ? rc : settle(p, cell->ready_fd, fds, &err);
    if (rc < 0) {
        al_child_fail(status_fd, &err);
    }
    if (role == AL_ROLE_SETTER) {
        start_interpreters_program(p, status_fd);
    }
    exec_stage(p, status_fd, status_fd);
}
