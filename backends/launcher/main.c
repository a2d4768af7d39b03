/*
 * airlock-launcher: the privileged process. airlockd starts it with one end of a socket; it says
 * HELLO with what works on this machine, and starts jobs until that socket closes. See
 * service/ARCHITECTURE.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/base/log.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/child.h"
#include "backends/launcher/instance.h"
#include "backends/launcher/job.h"
#include "backends/launcher/reaper.h"
#include "backends/launcher/rootfs.h"
#include "backends/launcher/rootless.h"
#include "backends/launcher/runtime.h"
#include "backends/launcher/seccomp.h"
#include "backends/launcher/warden.h"

#define CELLS_VERSION "1" /* of what a program meets in our cells; see the cache's key */

struct launcher {
    struct al_source socket; /* first: on_socket casts back */
    struct al_source reaper; /* our end of its socket: only its end is ever heard */
    struct al_loop loop;
    struct al_cells_config config;
    struct al_cgroups cgroups;
    struct al_jobs jobs;
    struct al_msg_hello hello;
    char no_cgroups[AL_ERR_TEXT_MAX]; /* why, where there are none */
    char no_root[AL_ERR_TEXT_MAX];    /* why, where rootless was tried and failed */
    bool has_jail_root;               /* the template of jails was made */
    bool failed;
};

struct options {
    const char *config;
    const char *data_dir;
    int socket;
    bool check_config;
    bool rootless; /* from ourselves only */
};

static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 'c'}, {"data-dir", required_argument, NULL, 'd'},
        {"socket", required_argument, NULL, 's'}, {"check-config", no_argument, NULL, 'k'},
        {"rootless", no_argument, NULL, 'r'},     {0}};
    *o = (struct options){.socket = -1};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'c':
            o->config = optarg;
            break;
        case 'd':
            o->data_dir = optarg;
            break;
        case 's':
            o->socket = (int)strtol(optarg, NULL, 10);
            break;
        case 'k':
            o->check_config = true;
            break;
        case 'r':
            o->rootless = true;
            break;
        default:
            return -EINVAL;
        }
    }
    return o->check_config || (o->socket > 2 && o->data_dir) ? 0 : -EINVAL;
}

/* Every cell's init is a copy of this process, and its memory holds what we were started with. */
static void forget_environment(void)
{
    for (char **e = environ; *e && al_barrier_is_on(AL_BARRIER_ARGUMENTS); e++) {
        memset(*e, 0, strlen(*e));
    }
    clearenv();
}

/* Nothing of whoever started us reaches a job: fds, environment, folder, session, mask. */
static int clean_process(int socket)
{
    struct stat st;
    while (fstat(STDERR_FILENO, &st) < 0)
    { /* 0, 1 and 2 are always open, so that no job's fd is one of them */
        if (open("/dev/null", O_RDWR) < 0) {
            return -errno;
        }
    }
    if (fcntl(socket, F_SETFD, FD_CLOEXEC) < 0 || chdir("/") < 0) {
        return -errno;
    }
    forget_environment();
    /* A keyring of its own, for cells to inherit; where there are no keys this fails. */
    syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    if (al_barrier_is_on(AL_BARRIER_FDS)) {
        close_range(3, (unsigned)socket - 1, 0);
        close_range((unsigned)socket + 1, ~0U, 0);
    }
    setsid(); /* a Ctrl-C for airlockd drains it; it must not kill the jobs under it */
    umask(022);
    al_child_reset_signals();
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    prctl(PR_SET_DUMPABLE, 0);
    return 0;
}

/* That there are none is for `require` to judge. */
static int prepare_cgroups(struct launcher *l, const char *instance, struct al_err *err)
{
    int rc = al_cgroups_init(&l->cgroups, l->config.cgroup_parent, instance, err);
    if (rc < 0 && err->code == AL_ERR_RESOURCE_EXHAUSTED) {
        return rc; /* another launcher has them */
    }
    if (rc < 0) {
        al_cgroups_init_none(&l->cgroups);
        al_err_copy_text(l->no_cgroups, sizeof l->no_cgroups, err->text);
        *err = (struct al_err){0};
        l->config.prestarted = 0; /* what it has used would count as the job's */
    }
    if (!l->cgroups.ops->sweep(&l->cgroups, false)) {
        al_log_warn("cgroups of an earlier run of this instance are still busy");
    }
    return 0;
}

static int prepare_common(struct launcher *l, const char *data_dir, struct al_err *err)
{
    char instance[AL_INSTANCE_NAME_MAX];
    if (geteuid() != 0) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "airlockd was not started as root: %s",
                          l->no_root[0]
                              ? l->no_root
                              : "own_uid, which [cells] require names, cannot be enforced");
    }
    int rc = al_instance_name(data_dir, instance, err);
    if (rc == 0 && l->config.rootless) {
        rc = al_rootless_prepare(err);
    } else if (rc == 0) {
        rc = al_instance_lock_uids(&l->config, err);
    }
    rc = rc < 0 ? rc : prepare_cgroups(l, instance, err);
    rc = rc < 0 ? rc : al_reaper_start(&l->cgroups, &l->jobs.reaper_fd, err);
    return rc < 0 ? rc : al_rootfs_prepare(&l->config, err);
}

/* Whether every layer that is required, of those that cells of the kind can have, is there. */
static int check_layers(const struct launcher *l, enum al_cell_kind kind, struct al_err *err)
{
    uint32_t missing = l->config.require & al_cell_possible_layers(kind) &
                       ~al_cell_layers(kind, &l->config, &l->cgroups);
    char names[AL_UNAVAILABLE_MAX] = "";
    size_t n = 0;
    for (unsigned i = 0; i < AL_LAYER_COUNT; i++) {
        if (missing & 1u << i) {
            n += (size_t)snprintf(names + n, sizeof names - n, " %s", al_layer_name(i));
        }
    }
    return missing == 0 ? 0
                        : al_err_set(err, AL_ERR_FAILED_PRECONDITION,
                                     "cannot be enforced here:%s, which [cells] require names%s%s",
                                     names, l->no_cgroups[0] ? ": " : "", l->no_cgroups);
}

/* As much as a job would get, with what most of them ask for. */
static int probe_jail(struct launcher *l, const struct al_jail *jail, enum al_cell_kind kind,
                      struct al_err *err)
{
    static const char name[] = "0000000000000000";
    const struct al_quotas usual = {.memory_mb = 256, .pids = 64, .disk_mb = 64};
    const struct al_cell_plan plan = {.kind = kind,
                                      .config = &l->config,
                                      .cgroups = &l->cgroups,
                                      .filter = &l->jobs.filter,
                                      .jail = jail,
                                      .name = name,
                                      .init_uid = l->config.uid_base,
                                      .program_uid = l->config.uid_base + 1,
                                      .quotas = al_cell_quotas(kind, &usual),
                                      .runtime = AL_RUNTIME_NONE};
    int rc = al_jail_probe(&plan, err);
    if (!al_reaper_remove(l->jobs.reaper_fd, name, -1)) {
        l->cgroups.ops->remove(&l->cgroups, name);
    }
    return rc;
}

/* What the tool cannot do without is required whatever the configuration says. */
static int prepare_jail(struct launcher *l, enum al_cell_kind kind, struct al_err *err)
{
    struct al_jail *jail = &l->jobs.jails[al_jail_tool_of(kind)];
    if (l->config.rootless) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "airlockd was not started as root");
    }
    int rc = al_jail_find(jail, kind, &l->config, err);
    if (rc == 0 && (l->cgroups.layers & AL_LAYERS_CGROUP) != AL_LAYERS_CGROUP) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "there are no cgroups: %s",
                          l->no_cgroups);
    }
    if (rc == 0 && !l->has_jail_root) {
        rc = al_rootfs_prepare_jail(&l->config, err);
        l->has_jail_root = rc == 0;
    }
    rc = rc < 0 ? rc : probe_jail(l, jail, kind, err);
    if (rc == 0) {
        char version[AL_JAIL_VERSION_MAX]; /* gcc believes that source and destination overlap */
        memcpy(version, jail->version, sizeof version);
        snprintf(l->hello.cells[kind].version, AL_CELL_VERSION_MAX, CELLS_VERSION "+%s-%s",
                 al_jail_tool_name(jail->tool), version);
    }
    return rc;
}

static int prepare_kind(struct launcher *l, enum al_cell_kind kind, struct al_err *err)
{
    if (kind == AL_CELL_LOCAL && !l->config.allow_unsafe) {
        return al_err_set(
            err, AL_ERR_FAILED_PRECONDITION,
            "it isolates neither files nor network; [local] allow_unsafe = yes turns it on");
    }
    if (kind == AL_CELL_LOCAL && l->config.rootless) {
        return al_err_set(
            err, AL_ERR_FAILED_PRECONDITION,
            "airlockd was not started as root: programs would be airlockd's own user");
    }
    int rc = check_layers(l, kind, err);
    if (rc == 0 && kind != AL_CELL_LOCAL && !l->jobs.filter.filter) {
        rc = al_seccomp_build(&l->jobs.filter, err);
    }
    if (rc == 0 && al_cell_is_jail(kind)) {
        return prepare_jail(l, kind, err);
    }
    return rc < 0 ? rc : al_cell_probe(kind, &l->config, err);
}

static void prepare(struct launcher *l, const char *data_dir)
{
    struct al_err common = {0};
    prepare_common(l, data_dir, &common);
    for (int kind = 0; kind < AL_CELL_KINDS; kind++) {
        struct al_err err = common;
        struct al_msg_hello_cell *cell = &l->hello.cells[kind];
        snprintf(cell->version, sizeof cell->version, CELLS_VERSION);
        if (!al_err_is_set(&err) && prepare_kind(l, (enum al_cell_kind)kind, &err) == 0) {
            cell->available = true;
            cell->layers = al_cell_layers((enum al_cell_kind)kind, &l->config, &l->cgroups);
            l->jobs.available[kind] = 1;
        } else {
            al_err_copy_text(cell->reason, sizeof cell->reason, err.text);
        }
    }
}

static int say_hello(struct launcher *l)
{
    struct al_msg_hello *hello = &l->hello;
    static uint8_t data[AL_MSG_BYTES_MAX];
    hello->n_runtimes = (uint32_t)l->config.n_runtimes;
    for (size_t i = 0; i < l->config.n_runtimes; i++) {
        hello->runtimes[i] = l->config.runtimes[i].info;
    }
    struct iovec iov = {.iov_base = data, .iov_len = al_msg_encode_hello(hello, data)};
    return al_io_send_fds(l->socket.fd, &iov, 1, NULL, 0, true);
}

/* Closing such a socket may wait for as long as SO_LINGER says, and all limits with it. */
static bool may_linger(int fd)
{
    int domain = AF_UNIX;
    socklen_t size = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain != AF_UNIX;
}

/* Default deny: the one message there is, with exactly its two fds; anything else ends the
 * launcher. */
static void on_socket(struct al_source *source)
{
    struct launcher *l = (struct launcher *)source;
    uint8_t data[AL_MSG_BYTES_MAX];
    int fds[AL_IO_FDS_MAX];
    size_t n_fds = 0;
    struct al_msg_spawn spawn;
    ssize_t got = al_io_recv_fds(source->fd, data, sizeof data, fds, &n_fds);
    if (got > 0 && n_fds == 2 && al_msg_decode_spawn(data, (size_t)got, &spawn) == 0 &&
        !may_linger(fds[0]) && !may_linger(fds[1]))
    {
        al_jobs_spawn(&l->jobs, &spawn, fds[0], fds[1]);
        return;
    }
    if (got != 0) {
        al_log_error("a malformed message from airlockd: the launcher ends");
        l->failed = true;
    }
    l->loop.stop = true;
}

/* Without it nothing is removed any more. */
static void on_reaper(struct al_source *source)
{
    struct launcher *l = (struct launcher *)((char *)source - offsetof(struct launcher, reaper));
    al_log_error("the reaper is gone: the launcher ends");
    l->failed = true;
    l->loop.stop = true;
}

static int run(struct launcher *l)
{
    l->jobs.loop = &l->loop;
    l->jobs.config = &l->config;
    l->jobs.cgroups = &l->cgroups;
    int rc = al_loop_init(&l->loop);
    rc = rc < 0 ? rc : al_jobs_init(&l->jobs);
    rc = rc < 0 ? rc : al_loop_add(&l->loop, &l->socket);
    l->reaper = (struct al_source){.fd = l->jobs.reaper_fd, .fn = on_reaper};
    rc = rc < 0 || l->reaper.fd < 0 ? rc : al_loop_add(&l->loop, &l->reaper);
    rc = rc < 0 ? rc : say_hello(l);
    rc = rc < 0 ? rc : al_loop_run(&l->loop);
    al_jobs_kill_all(&l->jobs);
    al_close_fd(&l->jobs.reaper_fd);
    while (wait(NULL) > 0) {
        /* the reaper: when we are gone, so is everything of this instance */
    }
    if (l->failed && l->cgroups.n_dirs > 0) {
        l->cgroups.ops->sweep(&l->cgroups, true); /* the reaper may be what has failed */
    }
    if (rc < 0) {
        al_log_error("the launcher ends: %s", strerror(-rc));
    }
    return rc < 0 || l->failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static struct launcher launcher = {.jobs.reaper_fd = -1};
    struct options options;
    struct al_err err = {0};
    if (argc == 4 && strcmp(argv[1], AL_WARDEN_OPTION) == 0) {
        int link_fd = (int)strtol(argv[2], NULL, 10);
        int cpu_fd = (int)strtol(argv[3], NULL, 10);
        al_child_hide_arguments(argc, argv);
        al_warden_main(link_fd, cpu_fd);
    }
    al_log_init("launcher", AL_LOG_INFO);
    if (parse_options(argc, argv, &options) < 0) {
        fprintf(stderr, "airlock-launcher is started by airlockd, which gives it --socket and "
                        "--data-dir; see airlockd --help\n");
        return 2;
    }
    if (al_cells_config_read(&launcher.config, options.config, &err) < 0) {
        fprintf(stderr, "airlock-launcher: %s\n", err.text);
        return 2;
    }
    if (options.check_config) {
        return 0;
    }
    launcher.config.rootless = options.rootless;
    if (geteuid() != 0 && !options.rootless && !(launcher.config.require & AL_LAYER_OWN_UID) &&
        al_rootless_enter(argc, argv, &err) < 0)
    {
        al_err_copy_text(launcher.no_root, sizeof launcher.no_root, err.text);
    }
    if (clean_process(options.socket) < 0) {
        al_log_error("cannot set up: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    launcher.socket = (struct al_source){.fd = options.socket, .fn = on_socket};
    al_runtimes_probe(&launcher.config);
    prepare(&launcher, options.data_dir);
    if (al_barrier_is_on(AL_BARRIER_ARGUMENTS)) {
        al_child_hide_arguments(argc, argv); /* every cell's init is a copy of this process */
    }
    return run(&launcher);
}
