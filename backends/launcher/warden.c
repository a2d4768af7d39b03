/*
 * Theory of operation. The tool (bubblewrap, firejail) makes the jail and executes the warden in
 * it. From then on nothing depends on the tool but the jail's life: it ends with the warden, and
 * both when the launcher kills the cell around them. The warden is one loop over its link and
 * SIGCHLD. For a stage it forks a child that does what a native cell's process does behind its
 * assignment (program.c), and hears from it over a pipe that exec closes. It is not dumpable, so
 * that programs, which have its user, can neither look into it nor take its link; where it is pid 1
 * they cannot kill it either, elsewhere (firejail) one that does so ends itself. The collector is
 * the warden itself, since it kills everybody else.
 */
#include "backends/launcher/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/child.h"
#include "backends/launcher/collect.h"
#include "backends/launcher/program.h"
#include "backends/launcher/rootfs.h"

union order {
    enum al_order_type type;
    struct al_order_check check;
    struct al_order_stage stage;
    struct al_order_signal signal;
};

struct warden {
    int link;
    int children_fd; /* a signalfd of SIGCHLD */
    pid_t stage;     /* 0: none runs */
    bool checked;
    union order order;
    struct al_cells_config config; /* with the stage's runtime as its only one */
    struct al_cgroups cgroups;
    struct al_cell_plan plan;
    struct al_program program;
};

static void report(const struct warden *w, const struct al_report *r)
{
    if (send(w->link, r, sizeof *r, MSG_NOSIGNAL) != (ssize_t)sizeof *r) {
        _exit(1); /* nobody wants to know any more */
    }
}

static _Noreturn void fail(const struct warden *w, const struct al_err *err)
{
    struct al_report r = {.type = AL_REPORT_FAILED};
    al_err_copy_text(r.text, sizeof r.text, err->text);
    report(w, &r);
    _exit(1);
}

/* --- the jail --- */

/* What the jail has of the layers that are the tool's to make. */
static uint32_t find_layers(const uint64_t outside[AL_WARDEN_NAMESPACES])
{
    uint64_t inside[AL_WARDEN_NAMESPACES];
    uint32_t layers = 0;
    al_warden_namespaces(inside);
    for (size_t i = 0; i < AL_WARDEN_NAMESPACES; i++) {
        layers |= inside[i] != 0 && inside[i] != outside[i] ? 1u << i : 0;
    }
    layers |= al_child_has_capabilities() ? 0 : AL_LAYER_NO_CAPABILITIES;
    layers |= prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? AL_LAYER_NO_NEW_PRIVS : 0;
    layers |= prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER ? AL_LAYER_SECCOMP : 0;
    return layers;
}

#define CHECKED                                                                              \
    (((1u << AL_WARDEN_NAMESPACES) - 1) | AL_LAYER_NO_CAPABILITIES | AL_LAYER_NO_NEW_PRIVS | \
     AL_LAYER_SECCOMP)

static int load_filter(struct al_order_check *c, struct al_err *err)
{
    struct sock_fprog filter = {.len = (unsigned short)c->n_filter, .filter = c->filter};
    if (c->n_filter > AL_WARDEN_FILTER_MAX) {
        return al_err_set(err, AL_ERR_INTERNAL, "malformed order");
    }
    if (c->n_filter > 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0) {
        return al_err_errno(err, errno, "cannot load the seccomp filter");
    }
    return 0;
}

static int write_self(const char *path, const char *text, struct al_err *err)
{
    int rc = al_io_write_file(AT_FDCWD, path, text);
    return rc < 0 ? al_err_errno(err, -rc, "cannot write %s", path) : 0;
}

/* One that belongs to the job's own user: what the kernel counts for a namespace's owner, which
 * root is of the tool's, must not be root's. */
static int make_user_namespace(struct al_err *err)
{
    char map[64];
    const unsigned uid = getuid();
    if (unshare(CLONE_NEWUSER) < 0) {
        return al_err_errno(err, errno, "no user namespace can be made");
    }
    snprintf(map, sizeof map, "%u %u 1\n", AL_CELL_UID, uid);
    int rc = write_self("/proc/self/setgroups", "deny", err);
    rc = rc < 0 ? rc : write_self("/proc/self/uid_map", map, err);
    rc = rc < 0 ? rc : write_self("/proc/self/gid_map", map, err);
    rc = rc < 0 ? rc : al_child_drop_bounding_set(err);
    return rc < 0 ? rc : al_child_drop_capabilities(err);
}

/* No program has run yet: from here on it is not to be looked into. */
static void check(struct warden *w)
{
    struct al_order_check *c = &w->order.check;
    struct al_err err = {0};
    int rc = c->user_namespace ? make_user_namespace(&err) : 0;
    rc = rc < 0 ? rc : load_filter(c, &err);
    prctl(PR_SET_DUMPABLE, 0);
    if (rc < 0) {
        fail(w, &err);
    }
    uint32_t missing = c->layers & CHECKED & ~find_layers(c->outside);
    for (unsigned i = 0; missing != 0; i++) {
        if (missing & 1u << i) {
            al_err_set(&err, AL_ERR_INTERNAL, "the jail lacks %s", al_layer_name(i));
            fail(w, &err);
        }
    }
    w->checked = true;
    report(w, &(struct al_report){.type = AL_REPORT_READY});
}

/* --- a stage --- */

static _Noreturn void become_stage(struct warden *w, const int fds[AL_IO_FDS_MAX], int status_fd)
{
    close(w->children_fd);
    al_child_reset_signals();
    al_program_become(&w->program, fds, w->link, status_fd);
}

/* Until exec, of which the child has said that it comes; or its word for why there is none. */
static void await_exec(const struct warden *w, int status_fd)
{
    struct al_report r = {.type = AL_REPORT_FAILED};
    size_t len = 0;
    ssize_t got;
    while (len < sizeof r.text - 1 &&
           (got = TEMP_FAILURE_RETRY(read(status_fd, r.text + len, sizeof r.text - 1 - len))) > 0)
    {
        len += (size_t)got;
    }
    if (len > 0) {
        report(w, &r);
    }
}

static int start_stage(struct warden *w, const int fds[AL_IO_FDS_MAX], struct al_err *err)
{
    int status[2];
    if (pipe2(status, O_CLOEXEC) < 0) {
        return al_err_errno(err, errno, "pipe");
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(status[0]);
        become_stage(w, fds, status[1]);
    }
    close(status[1]);
    al_auto_close int status_fd = status[0];
    if (pid < 0) {
        return al_err_errno(err, errno, "cannot fork the program's process");
    }
    w->stage = pid;
    await_exec(w, status_fd);
    return 0;
}

/* Its errors go to the tool's error output, which the launcher reads. */
static _Noreturn void collect(const struct warden *w, const int fds[AL_IO_FDS_MAX])
{
    const struct al_msg_spawn *spawn = &w->program.assignment.spawn;
    const struct al_collect c = {.out = fds[AL_STAGE_STDOUT],
                                 .bundle = fds[AL_STAGE_BUNDLE],
                                 .status_fd = STDERR_FILENO,
                                 .root = "/",
                                 .workdir = spawn->workdir + 1,
                                 .bytes_max = spawn->quotas.artifact_bytes};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGCHLD, &ignore, NULL); /* whoever it kills is gone at once */
    while (waitpid(-1, NULL, WNOHANG) > 0) {
        /* and so is who has ended before */
    }
    al_collect_main(&c);
}

static int take_stage(struct warden *w, const int *fds, size_t n_fds, struct al_err *err)
{
    struct al_order_stage *o = &w->order.stage;
    struct al_program *p = &w->program;
    bool collects = o->assignment.stage == AL_STAGE_COLLECT;
    memset(p, 0, sizeof *p);
    p->plan = &w->plan;
    p->role = AL_ROLE_NEXT;
    p->prefix = "";
    p->assignment = o->assignment;
    if (!w->checked || w->stage != 0 || n_fds < AL_STAGE_STDIN + 1 ||
        (collects && n_fds != AL_STAGE_FDS) || p->assignment.runtime != 0 ||
        !al_order_stage_runtime(o, &w->config.runtimes[0]))
    {
        return al_err_set(err, AL_ERR_INTERNAL, "malformed order");
    }
    if (collects) {
        collect(w, fds);
    }
    return start_stage(w, fds, err);
}

/* --- the loop --- */

static void take_order(struct warden *w)
{
    int fds[AL_IO_FDS_MAX];
    size_t n_fds = 0;
    struct al_err err = {0};
    ssize_t got = al_io_recv_fds(w->link, &w->order, sizeof w->order, fds, &n_fds);
    if (got == 0) {
        _exit(0);
    }
    if (got == sizeof w->order.check && w->order.type == AL_ORDER_CHECK) {
        check(w);
    } else if (got == sizeof w->order.stage && w->order.type == AL_ORDER_STAGE) {
        take_stage(w, fds, n_fds, &err);
    } else if (got == sizeof w->order.signal && w->order.type == AL_ORDER_SIGNAL) {
        if (w->stage > 0) {
            kill(-w->stage, w->order.signal.signo); /* not yet reaped, so it is still that one */
        }
    } else {
        al_err_set(&err, AL_ERR_INTERNAL, "malformed order");
    }
    for (size_t i = 0; i < n_fds; i++) {
        close(fds[i]);
    }
    if (al_err_is_set(&err)) {
        fail(w, &err);
    }
}

/* Orphans too, of which pid 1 is the parent. */
static void reap(struct warden *w)
{
    struct signalfd_siginfo info;
    while (read(w->children_fd, &info, sizeof info) == sizeof info) {
        /* one of them stands for all that have ended meanwhile */
    }
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid == w->stage) {
            w->stage = 0;
            report(w, &(struct al_report){.type = AL_REPORT_ENDED, .wait_status = status});
        }
    }
}

static int cpu_fd_of(const struct warden *w)
{
    return w->cgroups.dirs[0].fd;
}

/* What the tool leaves to those whom it starts is not for us, nor for a program. */
static int clean_process(struct warden *w, struct al_err *err)
{
    int keep[] = {0, 1, 2, w->link, cpu_fd_of(w)};
    sigset_t all;
    al_child_keep_fds(keep, sizeof keep / sizeof keep[0]);
    al_io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "1000"); /* the program's too */
    al_child_reset_signals();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    w->children_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (w->children_fd < 0 || fcntl(w->link, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(cpu_fd_of(w), F_SETFD, FD_CLOEXEC) < 0)
    {
        return al_err_errno(err, errno, "cannot set up");
    }
    return 0;
}

/* The cgroups are the launcher's business: all that is left of them here is one figure. */
static int64_t cpu_us_inside(const struct al_cgroups *groups, const char *name)
{
    (void)name;
    return al_cgroup_read_cpu_us(groups->dirs[0].fd);
}

void al_warden_main(int link_fd, int cpu_fd)
{
    static const struct al_cgroup_ops inside = {.name = "a jail's", .cpu_us = cpu_us_inside};
    static struct warden warden = {.plan = {.kind = AL_CELL_NATIVE}}; /* as to its program */
    struct warden *w = &warden;
    struct al_err err = {0};
    w->link = link_fd;
    w->cgroups = (struct al_cgroups){.ops = &inside, .layers = AL_LAYERS_CGROUP};
    w->cgroups.dirs[0].fd = cpu_fd;
    w->plan.config = &w->config;
    w->plan.cgroups = &w->cgroups;
    if (clean_process(w, &err) < 0) {
        fail(w, &err);
    }
    for (;;) {
        struct pollfd fds[] = {{.fd = w->link, .events = POLLIN},
                               {.fd = w->children_fd, .events = POLLIN}};
        poll(fds, 2, -1);
        if (fds[1].revents) {
            reap(w);
        }
        if (fds[0].revents) {
            take_order(w);
        }
    }
}
