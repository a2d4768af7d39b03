#include "backends/launcher/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/jail/argv.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/child.h"
#include "backends/launcher/rootfs.h"
#include "backends/launcher/runtime.h"
#include "backends/launcher/warden.h"

#define PROBE_MS 10000

/* What the tool is executed with; behind 0, 1 and 2. */
#define LINK_FD   3
#define FILTER_FD 4
#define CPU_FD    5
#define FREE_FD   10 /* from here on no fd is in the way of those */

enum al_jail_tool al_jail_tool_of(enum al_cell_kind kind)
{
    return kind == AL_CELL_FIREJAIL ? AL_JAIL_FIREJAIL : AL_JAIL_BUBBLEWRAP;
}

/* --- finding --- */

int al_jail_find(struct al_jail *ret, enum al_cell_kind kind, const struct al_cells_config *config,
                 struct al_err *err)
{
    enum al_jail_tool tool = al_jail_tool_of(kind);
    const struct al_jail_config *c = &config->jails[tool];
    const char *name = al_jail_tool_name(tool);
    char said[256];
    *ret = (struct al_jail){.tool = tool, .program = c->program};
    if (c->program[0] == '\0') {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "[%s] program is empty", name);
    }
    if (access(c->program, X_OK) < 0) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "%s cannot be executed: %s; install %s",
                          c->program, strerror(errno), name);
    }
    char *const argv[] = {(char *)c->program, (char *)"--version", NULL};
    ssize_t len = tool == AL_JAIL_FIREJAIL ? al_runtime_ask_as_root(argv, said, sizeof said)
                                           : al_runtime_ask(config, argv, said, sizeof said);
    if (len <= 0 || !al_jail_version_find(tool, said, ret->version)) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "%s does not say its version",
                          c->program);
    }
    const char *flaw = al_jail_version_flaw(tool, ret->version);
    if (flaw && !c->allow_known_escapes) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION,
                          "%s %s lets programs out (%s); [%s] allow_known_escapes = yes takes it "
                          "all the same",
                          name, ret->version, flaw, name);
    }
    struct stat st;
    if (tool == AL_JAIL_FIREJAIL &&
        (stat(c->program, &st) < 0 || st.st_uid != 0 || !(st.st_mode & S_ISUID)))
    {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "%s has no set-user-id bit of root's",
                          c->program);
    }
    al_warden_namespaces(ret->outside);
    return 0;
}

/* --- executing --- */

/* Only what is there can be covered. */
static void keep_existing(const char *const *paths, const char **ret)
{
    for (; *paths; paths++) {
        if (access(*paths, F_OK) == 0) {
            *ret++ = *paths;
        }
    }
    *ret = NULL;
}

static int open_filter(const struct sock_fprog *filter, struct al_err *err)
{
    size_t len = filter->len * sizeof *filter->filter;
    al_auto_close int fd = memfd_create("filter", MFD_CLOEXEC);
    int rc = fd < 0 ? -errno : al_io_write_full(fd, filter->filter, len);
    if (rc < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        return al_err_errno(err, rc < 0 ? -rc : errno, "cannot hand the seccomp filter over");
    }
    return al_steal_fd(&fd);
}

/* Gives the fds the numbers that the command line says, and closes all others. */
static int place_fds(int link_fd, int status_fd, int filter_fd, int cpu_fd, struct al_err *err)
{
    int cpu = fcntl(cpu_fd, F_DUPFD_CLOEXEC, FREE_FD);
    int link = fcntl(link_fd, F_DUPFD_CLOEXEC, FREE_FD);
    int status = fcntl(status_fd, F_DUPFD_CLOEXEC, FREE_FD);
    int filter = fcntl(filter_fd, F_DUPFD_CLOEXEC, FREE_FD);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(status, 2) < 0 ||
        dup2(link, LINK_FD) < 0 || dup2(filter, FILTER_FD) < 0 || dup2(cpu, CPU_FD) < 0)
    {
        return al_err_errno(err, errno, "cannot set up the tool's fds");
    }
    int keep[] = {0, 1, 2, LINK_FD, FILTER_FD, CPU_FD};
    al_child_keep_fds(keep, sizeof keep / sizeof keep[0]);
    return 0;
}

/* Firejail gets its root by its set-user-id bit, which has an effect in one place only. */
static const char *program_inside(const struct al_jail *jail)
{
    return jail->tool == AL_JAIL_FIREJAIL ? AL_ROOTFS_FIREJAIL : jail->program;
}

static int make_argv(const struct al_cell_plan *plan, struct al_jail_argv *ret, struct al_err *err)
{
    static const char *hidden[AL_ROOTFS_MASKED_MAX + 1], *read_only[AL_ROOTFS_MASKED_MAX + 1];
    const struct al_jail_spec spec = {.program = program_inside(plan->jail),
                                      .warden = AL_ROOTFS_WARDEN,
                                      .link_fd = LINK_FD,
                                      .cpu_fd = CPU_FD,
                                      .filter_fd = FILTER_FD,
                                      .uid = AL_CELL_UID,
                                      .hidden = hidden,
                                      .read_only = read_only};
    keep_existing(al_rootfs_proc_hidden, hidden);
    keep_existing(al_rootfs_proc_read_only, read_only);
    bool firejail = plan->jail->tool == AL_JAIL_FIREJAIL;
    int rc = firejail ? al_jail_firejail_argv(&spec, ret) : al_jail_bubblewrap_argv(&spec, ret);
    return rc < 0 ? al_err_errno(err, -rc, "the tool's command line") : 0;
}

void al_jail_exec(const struct al_cell_plan *plan, int link_fd, int status_fd)
{
    static struct al_jail_argv argv; /* large, and this process is its only user */
    /* Firejail would take a pid namespace without kernel threads for a sandbox of its own, and
     * start the program without one, unless it is told that this is a container. */
    char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"LANG=C.UTF-8",
                         (char *)"container=lxc", NULL};
    struct al_err err = {0};
    int filter_fd = -1;
    int rc = make_argv(plan, &argv, &err);
    filter_fd = rc < 0 ? rc : open_filter(plan->filter, &err);
    int cpu_fd = plan->cgroups->ops->open_cpu(plan->cgroups, plan->name);
    rc = filter_fd < 0 ? filter_fd : place_fds(link_fd, status_fd, filter_fd, cpu_fd, &err);
    if (rc < 0) {
        al_child_fail(status_fd, &err);
    }
    execve(argv.word[0], (char *const *)argv.word, env);
    al_err_errno(&err, errno, "cannot execute %s", argv.word[0]);
    al_child_fail(STDERR_FILENO, &err);
}

int al_jail_send_check(const struct al_cell_plan *plan, int link_fd, struct al_err *err)
{
    static struct al_order_check check; /* large; the launcher has one thread */
    check = (struct al_order_check){
        .type = AL_ORDER_CHECK,
        .layers = al_cell_layers(plan->kind, plan->config, plan->cgroups),
    };
    memcpy(check.outside, plan->jail->outside, sizeof check.outside);
    if (plan->jail->tool == AL_JAIL_FIREJAIL) { /* which takes no filter of ours */
        if (plan->filter->len > AL_WARDEN_FILTER_MAX) {
            return al_err_errno(err, E2BIG, "the seccomp filter");
        }
        check.user_namespace = true;
        check.n_filter = plan->filter->len;
        memcpy(check.filter, plan->filter->filter, check.n_filter * sizeof *check.filter);
    }
    struct iovec iov = {.iov_base = &check, .iov_len = sizeof check};
    int rc = al_io_send_fds(link_fd, &iov, 1, NULL, 0, false);
    return rc < 0 ? al_err_errno(err, -rc, "the jail does not listen") : 0;
}

/* --- probing --- */

/* The warden's first report, or what the tool said instead. */
static int await_ready(const struct al_jail *jail, int link_fd, int status_fd, struct al_err *err)
{
    struct pollfd pfd = {.fd = link_fd, .events = POLLIN};
    struct al_report r;
    char said[AL_UNAVAILABLE_MAX / 2] = "";
    int n = poll(&pfd, 1, PROBE_MS);
    ssize_t got = n == 1 ? recv(link_fd, &r, sizeof r, MSG_DONTWAIT) : -1;
    if (got == sizeof r && r.type == AL_REPORT_READY) {
        return 0;
    }
    if (got == sizeof r && r.type == AL_REPORT_FAILED) {
        r.text[sizeof r.text - 1] = '\0';
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "%s", r.text);
    }
    ssize_t len = read(status_fd, said, sizeof said - 1);
    said[len > 0 ? strcspn(said, "\n") : 0] = '\0';
    return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "%s makes no jail here: %s",
                      al_jail_tool_name(jail->tool),
                      said[0]  ? said
                      : n == 0 ? "it takes too long"
                               : "it ended without a word");
}

/* The plan's cell, tool and warden; what of them has come to be is gone at the end. */
static int try_cell(const struct al_cell_plan *plan, int link[2], int status[2], struct al_err *err)
{
    struct al_cell cell;
    struct al_process process = {.pidfd = -1};
    int rc = al_cell_create(plan, status[1], &cell, err);
    if (rc < 0) {
        return rc;
    }
    rc = al_cell_start(plan, &cell, AL_ROLE_FIRST, link[1], status[1], &process, err);
    al_close_fd(&link[1]); /* the jail's alone: its end must be seen */
    al_close_fd(&status[1]);
    rc = rc < 0 ? rc : al_jail_send_check(plan, link[0], err);
    rc = rc < 0 ? rc : await_ready(plan->jail, link[0], status[0], err);
    al_cell_kill(&cell);
    if (process.pid > 0) {
        TEMP_FAILURE_RETRY(waitpid(process.pid, NULL, 0));
    }
    TEMP_FAILURE_RETRY(waitpid(cell.init_pid, NULL, 0));
    int *const fds[] = {&cell.init_pidfd, &cell.mounts_fd, &cell.alive_fd, &cell.ready_fd,
                        &process.pidfd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        al_close_fd(fds[i]);
    }
    return rc;
}

int al_jail_probe(const struct al_cell_plan *plan, struct al_err *err)
{
    int link[2] = {-1, -1}, status[2] = {-1, -1};
    int rc = 0;
    if (pipe2(status, O_CLOEXEC | O_NONBLOCK) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) < 0)
    {
        rc = al_err_errno(err, errno, "pipe");
    }
    rc = rc < 0 ? rc : try_cell(plan, link, status, err);
    for (size_t i = 0; i < 2; i++) {
        al_close_fd(&link[i]);
        al_close_fd(&status[i]);
    }
    return rc;
}
