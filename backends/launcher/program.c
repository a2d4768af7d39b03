/*
 * Theory of operation. The program's process is the launcher's child, born in the cell's pid
 * namespace. While init builds the cell it makes and joins the cell's cgroups, still as root of the
 * host; then it enters init's other namespaces and waits for its assignment, which may come at once
 * or, in a cell made ahead, much later. With it come the job's limits, pipes and bundle. It sets
 * the limits, becomes the job's user, gives every privilege away, and only then touches a byte of
 * the request: it unpacks the bundle into the workdir, so that this too is charged to the job and
 * bounded by its limits. Last come rlimits, the seccomp filter, and exec. Whatever fails is
 * reported over the status pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "backends/launcher/cell.h"
#include "backends/launcher/child.h"
#include "backends/launcher/rootfs.h"
#include "backends/launcher/seccomp.h"

#define OPEN_TRIES   100
#define BASE_ENV_MAX 8
#define PATH_BYTES   (AL_WORKDIR_MAX + 128)

/* What the request's bundle adds up to. */
struct program {
    const struct al_cell_plan *plan;
    struct al_assignment assignment;
    const struct al_runtime *runtime;
    const char *prefix; /* before every path of the sandbox: "" in a native cell */
    char workdir[PATH_BYTES];
    char code_path[PATH_BYTES + AL_RUNTIME_NAME_MAX];
    char output_path[PATH_BYTES + AL_RUNTIME_NAME_MAX];
    char inputs_path[PATH_BYTES];
    bool has_inputs;
    const char *args[AL_ARGS_MAX];
    size_t n_args;
    char *env[AL_ENV_MAX + BASE_ENV_MAX + 1];
    size_t n_env;
};

static int enter_namespaces(const struct al_cell_plan *plan, const struct al_cell *cell,
                            struct al_err *err)
{
    int flags = CLONE_NEWNS;
    if (plan->kind == AL_CELL_NATIVE) {
        if (unshare(CLONE_NEWCGROUP) < 0) { /* its root is the job's own group */
            return al_err_errno(err, errno, "unshare(CLONE_NEWCGROUP)");
        }
        flags |= CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    }
    if (setns(cell->init_pidfd, flags) < 0) {
        return al_err_errno(err, errno, "setns");
    }
    return 0;
}

static int become_user(const struct al_cell_plan *plan, struct al_err *err)
{
    bool native = plan->kind == AL_CELL_NATIVE;
    int rc = al_child_drop_bounding_set(err);
    rc = rc < 0 ? rc : al_child_become(native ? AL_CELL_UID : plan->program_uid, err);
    return rc < 0 ? rc : al_child_drop_capabilities(err);
}

/* --- unpacking --- */

static int make_parents(int workdir, const char *path, struct al_err *err)
{
    char at[AL_PATH_MAX];
    if (strlen(path) >= sizeof at) {
        return al_err_set(err, AL_ERR_INTERNAL, "a file's path is too long");
    }
    memcpy(at, path, strlen(path) + 1);
    for (char *slash = at; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        if (mkdirat(workdir, at, 0755) < 0 && errno != EEXIST) {
            return al_err_errno(err, errno, "cannot make the folder of file '%s'", path);
        }
        *slash = '/';
    }
    return 0;
}

/* EAGAIN: a ".." while anything on the machine was mounted or renamed; asking again gives the
 * answer. */
static int open_beneath(int dir, const char *path, const struct open_how *how)
{
    int fd;
    int tries = 0;
    do {
        fd = (int)syscall(SYS_openat2, dir, path, how, sizeof *how);
    } while (fd < 0 && errno == EAGAIN && ++tries < OPEN_TRIES);
    return fd;
}

static int write_item(int workdir, const char *path, const struct al_bundle_item *item,
                      struct al_err *err)
{
    int rc = make_parents(workdir, path, err);
    if (rc < 0) {
        return rc;
    }
    struct open_how how = {.flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                           .mode = item->mode,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    al_auto_close int fd = open_beneath(workdir, path, &how);
    if (fd < 0) {
        return al_err_errno(err, errno, "cannot make the file '%s'", path);
    }
    if (fchmod(fd, item->mode) < 0) { /* what the request says, whatever the umask is */
        return al_err_errno(err, errno, "cannot set the mode of the file '%s'", path);
    }
    rc = al_io_write_full(fd, item->data, item->len);
    return rc < 0 ? al_err_errno(err, -rc, "cannot write the file '%s'", path) : 0;
}

static int add_env(struct program *p, const char *name, const char *value)
{
    char *pair;
    if (p->n_env >= AL_ENV_MAX + BASE_ENV_MAX || asprintf(&pair, "%s=%s", name, value) < 0) {
        return -ENOMEM;
    }
    size_t n = strlen(name) + 1;
    for (size_t i = 0; i < p->n_env; i++) {
        if (strncmp(p->env[i], pair, n) == 0) { /* the last one wins */
            p->env[i] = pair;
            return 0;
        }
    }
    p->env[p->n_env++] = pair;
    return 0;
}

static int take_item(struct program *p, int workdir, int tmpdir, bool unpack,
                     const struct al_bundle_item *item, struct al_err *err)
{
    switch (item->type) {
    case AL_BUNDLE_CODE:
        return unpack ? write_item(workdir, p->runtime->info.code_file, item, err) : 0;
    case AL_BUNDLE_FILE:
        return unpack ? write_item(workdir, item->name, item, err) : 0;
    case AL_BUNDLE_INPUTS:
        p->has_inputs = true;
        return unpack ? write_item(tmpdir, strrchr(p->inputs_path, '/') + 1, item, err) : 0;
    case AL_BUNDLE_ENV:
        if (add_env(p, item->name, (const char *)item->data) < 0) {
            return al_err_set(err, AL_ERR_INTERNAL, "too many environment variables");
        }
        return 0;
    case AL_BUNDLE_ARG:
        if (p->n_args == AL_ARGS_MAX) {
            return al_err_set(err, AL_ERR_INTERNAL, "too many arguments");
        }
        p->args[p->n_args++] = (const char *)item->data;
        return 0;
    }
    return 0;
}

static int open_dir(const char *path, struct al_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? al_err_errno(err, errno, "cannot open the folder %s", path) : fd;
}

/* The request's workdir may lie below /sandbox or /tmp, where nothing is yet. */
static int open_workdir(const struct program *p, bool make, struct al_err *err)
{
    const char *below = p->workdir + strlen(p->prefix) + 1;
    if (make && strchr(below, '/')) {
        al_auto_close int base = open_dir(p->prefix[0] ? p->prefix : "/", err);
        int rc = base < 0 ? base : make_parents(base, below, err);
        if (rc < 0) {
            return rc;
        }
        if (mkdirat(base, below, 0755) < 0 && errno != EEXIST) {
            return al_err_errno(err, errno, "cannot make the workdir %s", p->workdir);
        }
    }
    return open_dir(p->workdir, err);
}

static int read_bundle(struct program *p, int bundle_fd, bool unpack, struct al_err *err)
{
    char tmp[PATH_BYTES];
    snprintf(tmp, sizeof tmp, "%s/tmp", p->prefix);
    al_auto_close int workdir = open_workdir(p, unpack, err);
    al_auto_close int tmpdir = workdir < 0 ? -1 : open_dir(tmp, err);
    ssize_t size = tmpdir < 0 ? -1 : al_bundle_check_fd(bundle_fd);
    if (size < 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "the job's bundle is not a sealed memfd");
    }
    void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, bundle_fd, 0);
    if (data == MAP_FAILED) {
        return al_err_errno(err, errno, "cannot map the job's bundle");
    }
    struct al_bundle_reader reader = {.data = data, .left = (size_t)size};
    struct al_bundle_item item;
    int rc;
    while ((rc = al_bundle_next(&reader, &item)) > 0) {
        if ((rc = take_item(p, workdir, tmpdir, unpack, &item, err)) < 0) {
            return rc;
        }
    }
    if (rc < 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "the job's bundle is malformed");
    }
    return fchdir(workdir) < 0 ? al_err_errno(err, errno, "chdir %s", p->workdir) : 0;
}

/* --- the program's surroundings --- */

static int base_env(struct program *p)
{
    char home[PATH_BYTES], tmp[PATH_BYTES];
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
        if (add_env(p, vars[i][0], vars[i][1]) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int set_limits(const struct al_quotas *q, struct al_err *err)
{
    const uint64_t cpu_s = (uint64_t)(q->cpu_ms + 999) / 1000 + 1; /* behind the cgroup's count */
    const struct {
        __rlimit_resource_t resource;
        const char *name;
        uint64_t value;
    } limits[] = {
        {RLIMIT_CPU, "RLIMIT_CPU", cpu_s},
        {RLIMIT_FSIZE, "RLIMIT_FSIZE", (uint64_t)q->file_size_mb << 20},
        {RLIMIT_NOFILE, "RLIMIT_NOFILE", q->open_files},
        {RLIMIT_CORE, "RLIMIT_CORE", AL_CORE_LIMIT},
        {RLIMIT_MSGQUEUE, "RLIMIT_MSGQUEUE", 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct rlimit now, rl = {.rlim_cur = limits[i].value, .rlim_max = limits[i].value};
        if (getrlimit(limits[i].resource, &now) == 0 && now.rlim_max < rl.rlim_max) {
            rl.rlim_cur = rl.rlim_max =
                now.rlim_max; /* what the launcher has is all there is to give */
        }
        if (setrlimit(limits[i].resource, &rl) < 0) {
            return al_err_errno(err, errno, "setrlimit(%s)", limits[i].name);
        }
    }
    return 0;
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

static int install_stdio(const int fds[AL_STAGE_FDS], struct al_err *err)
{
    /* All of them are above 2, so that no dup2 hits one that is still needed. */
    for (int i = 0; i < 3; i++) {
        if (dup2(fds[AL_STAGE_STDIN + i], i) < 0) {
            return al_err_errno(err, errno, "dup2");
        }
    }
    return 0;
}

static int expand(const struct program *p, const struct al_words *words, const char **argv)
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

/* From here on time and CPU are the program's. */
static void mark_exec(const struct al_cell_plan *plan, int status_fd)
{
    const struct al_exec_mark mark = {
        .at_ns = al_now_ns(), .cpu_us = plan->cgroups->ops->cpu_us(plan->cgroups, plan->name)};
    ssize_t put = write(status_fd, &mark, sizeof mark);
    (void)put; /* without it the launcher takes the moment at which it sees exec */
}

static _Noreturn void exec_stage(struct program *p, int status_fd)
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
    if (p->plan->kind == AL_CELL_NATIVE &&
        syscall(SYS_seccomp, 1 /* SECCOMP_SET_MODE_FILTER */, 0, p->plan->filter) < 0)
    {
        al_err_errno(&err, errno, "cannot load the seccomp filter");
        al_child_fail(status_fd, &err);
    }
    mark_exec(p->plan, status_fd);
    execve(argv[0], (char *const *)argv, p->env);
    al_err_errno(&err, errno, "cannot execute %s", argv[0]);
    al_child_fail(status_fd, &err);
}

static void prepare_paths(struct program *p)
{
    p->runtime = &p->plan->config->runtimes[p->assignment.runtime];
    const struct al_msg_runtime *info = &p->runtime->info;
    p->prefix = p->plan->kind == AL_CELL_NATIVE ? "" : AL_LOCAL_DIR;
    snprintf(p->workdir, sizeof p->workdir, "%s%s", p->prefix, p->assignment.spawn.workdir);
    snprintf(p->code_path, sizeof p->code_path, "%s/%s", p->workdir, info->code_file);
    snprintf(p->output_path, sizeof p->output_path, "%s/%s", p->workdir, info->output_file);
    snprintf(p->inputs_path, sizeof p->inputs_path, "%s/tmp/" AL_INPUTS_NAME, p->prefix);
}

static int enter_cell(const struct al_cell_plan *plan, const struct al_cell *cell, bool first,
                      struct al_err *err)
{
    const struct al_cgroup_ops *ops = plan->cgroups->ops;
    int rc = first ? ops->make(plan->cgroups, plan->name, err) : 0;
    rc = rc < 0 ? rc : ops->join(plan->cgroups, plan->name, err);
    if (rc < 0) {
        return rc;
    }
    al_io_write_file(AT_FDCWD, "/proc/self/oom_score_adj",
                     "1000"); /* before anything of the host's */
    char byte;
    if (first && TEMP_FAILURE_RETRY(read(cell->ready_fd, &byte, 1)) != 1) {
        _exit(1); /* init failed and has said why */
    }
    return enter_namespaces(plan, cell, err);
}

static int receive_assignment(struct program *p, int assign_fd, int fds[AL_STAGE_FDS],
                              struct al_err *err)
{
    size_t n = 0;
    ssize_t got = al_io_recv_fds(assign_fd, &p->assignment, sizeof p->assignment, fds, &n);
    if (got == 0) {
        _exit(0); /* the launcher has no use for this cell any more */
    }
    if (got != (ssize_t)sizeof p->assignment || n != AL_STAGE_FDS) {
        return al_err_set(err, AL_ERR_INTERNAL, "malformed assignment");
    }
    prepare_paths(p);
    return 0;
}

/* Everything between the assignment and exec that may fail. */
static int settle(struct program *p, const int fds[AL_STAGE_FDS], struct al_err *err)
{
    const struct al_cell_plan *plan = p->plan;
    const struct al_quotas *quotas = &p->assignment.spawn.quotas;
    bool first = p->assignment.first;
    int rc = 0;
    if (first) {
        rc = al_rootfs_resize(plan->kind, quotas, err);
        rc = rc < 0 ? rc : plan->cgroups->ops->limit(plan->cgroups, plan->name, quotas, err);
    }
    rc = rc < 0 ? rc : become_user(plan, err);
    rc = rc < 0 ? rc : base_env(p) < 0 ? al_err_errno(err, ENOMEM, "environment") : 0;
    rc = rc < 0 ? rc : read_bundle(p, fds[AL_STAGE_BUNDLE], first, err);
    if (rc == 0 && p->has_inputs && add_env(p, "AIRLOCK_INPUTS", p->inputs_path) < 0) {
        rc = al_err_errno(err, ENOMEM, "environment");
    }
    rc = rc < 0 ? rc : install_stdio(fds, err);
    return rc < 0 ? rc : set_limits(quotas, err);
}

void al_program_main(const struct al_cell_plan *plan, const struct al_cell *cell, bool first,
                     int assign_fd, int status_fd)
{
    static struct program program; /* large, and this process is its only user */
    struct al_err err = {0};
    struct program *p = &program;
    p->plan = plan;
    /* 0, 1 and 2 stay until the program's own take their place: nothing else may get their numbers.
     */
    int keep[AL_CGROUP_DIRS_MAX + 7] = {0,         1,        2, cell->init_pidfd, cell->ready_fd,
                                        assign_fd, status_fd};
    for (size_t i = 0; i < AL_CGROUP_DIRS_MAX; i++) {
        keep[7 + i] = i < plan->cgroups->n_dirs ? plan->cgroups->dirs[i].fd : -1;
    }
    al_child_keep_fds(keep, sizeof keep / sizeof keep[0]);
    reset_process();
    int fds[AL_IO_FDS_MAX];
    int rc = enter_cell(plan, cell, first, &err);
    rc = rc < 0 ? rc : receive_assignment(p, assign_fd, fds, &err);
    rc = rc < 0 ? rc : settle(p, fds, &err);
    if (rc < 0) {
        al_child_fail(status_fd, &err);
    }
    exec_stage(p, status_fd);
}
