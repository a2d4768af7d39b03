#include "backends/launcher/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/api/backend.h"
#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/child.h"
#include "backends/launcher/jail.h"
#include "backends/launcher/rootfs.h"

#define LOCAL_FLAGS  (CLONE_NEWPID | CLONE_NEWNS)
#define NATIVE_FLAGS (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS)

uint32_t al_cell_possible_layers(enum al_cell_kind kind)
{
    uint32_t layers = AL_LAYER_PIDNS | AL_LAYER_MOUNTNS | AL_LAYER_OWN_UID |
                      AL_LAYER_NO_CAPABILITIES | AL_LAYER_NO_NEW_PRIVS | AL_LAYER_RLIMITS |
                      AL_LAYERS_CGROUP;
    if (kind != AL_CELL_LOCAL) {
        layers |= AL_LAYER_USERNS | AL_LAYER_NETNS | AL_LAYER_IPCNS | AL_LAYER_UTSNS |
                  AL_LAYER_CGROUPNS | AL_LAYER_PIVOT_ROOT | AL_LAYER_SECCOMP;
    }
    return layers;
}

uint32_t al_cell_layers(enum al_cell_kind kind, const struct al_cells_config *config,
                        const struct al_cgroups *cgroups)
{
    uint32_t missing = AL_LAYERS_CGROUP & ~cgroups->layers;
    missing |= config->rootless ? AL_LAYER_OWN_UID : 0;
    return al_cell_possible_layers(kind) & ~missing;
}

struct al_quotas al_cell_quotas(enum al_cell_kind kind, const struct al_quotas *quotas)
{
    struct al_quotas allowed = *quotas;
    allowed.pids += kind == AL_CELL_BUBBLEWRAP ? AL_JAIL_BUBBLEWRAP_PIDS
                    : kind == AL_CELL_FIREJAIL ? AL_JAIL_FIREJAIL_PIDS
                                               : 0;
    return allowed;
}

/* fork with namespaces and a pidfd, into the cgroup unless it is -1: 0 in the child. */
static pid_t clone_process(uint64_t flags, int cgroup, int *ret_pidfd)
{
    struct clone_args args = {.flags = flags | CLONE_PIDFD | (cgroup < 0 ? 0 : CLONE_INTO_CGROUP),
                              .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
                              .exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD, /* it has one */
                              .cgroup = cgroup < 0 ? 0 : (uint64_t)cgroup};
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

/* The same with a user namespace that belongs to `owner`. The kernel counts what the users of a
 * namespace hold (inotify instances, pending signals) against its owner too: were that root, one
 * cell could use up what root of the host and all other cells have together. */
static pid_t clone_owned(uint64_t flags, unsigned owner, int *ret_pidfd)
{
    if (seteuid(owner) < 0) {
        return -1;
    }
    pid_t pid = al_child_raise_capabilities() < 0 ? -1 : clone_process(flags, -1, ret_pidfd);
    if (pid == 0) {
        return 0;
    }
    int clone_errno = errno;
    if (seteuid(0) < 0) {
        abort(); /* not a launcher any more */
    }
    prctl(PR_SET_DUMPABLE, 0); /* a change of id has reset it */
    errno = clone_errno;
    return pid;
}

uint64_t al_cell_side_flags(void)
{
    return al_barrier_flags(AL_BARRIER_NETNS, CLONE_NEWNET) |
           al_barrier_flags(AL_BARRIER_IPCNS, CLONE_NEWIPC) |
           al_barrier_flags(AL_BARRIER_UTSNS, CLONE_NEWUTS);
}

static pid_t clone_init(enum al_cell_kind kind, const struct al_cells_config *config,
                        unsigned init_uid, int *ret_pidfd)
{
    if (kind == AL_CELL_NATIVE && !config->rootless) {
        return clone_owned(NATIVE_FLAGS, init_uid, ret_pidfd);
    }
    return clone_process(kind == AL_CELL_NATIVE ? NATIVE_FLAGS : LOCAL_FLAGS, -1, ret_pidfd);
}

static int clone_error(struct al_err *err)
{
    return al_err_errno(err, errno, "cannot clone a cell%s",
                        errno == EPERM ? " (in a chroot, or user namespaces are off?)" : "");
}

int al_cell_probe(enum al_cell_kind kind, const struct al_cells_config *config, struct al_err *err)
{
    int pidfd = -1;
    pid_t pid = clone_init(kind, config, config->uid_base, &pidfd);
    if (pid == 0) {
        _exit(kind == AL_CELL_NATIVE && unshare((int)al_cell_side_flags()) < 0 ? errno : 0);
    }
    if (pid < 0) {
        return clone_error(err);
    }
    int status = 0;
    TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
    close(pidfd);
    if (status != 0) {
        return al_err_errno(err, WEXITSTATUS(status),
                            "cannot make a cell's network, IPC and UTS namespaces");
    }
    return 0;
}

static void kill_and_reap(pid_t pid, int pidfd)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(pidfd);
}

/* Two ids only: init's as root, the program's; or the one that there is, for both. Nothing else of
 * the host has a name in there. */
static int write_maps(const struct al_cell_plan *plan, pid_t pid, struct al_err *err)
{
    static const char *const files[] = {"uid_map", "gid_map"};
    char path[64], map[96];
    if (plan->config->rootless) {
        snprintf(map, sizeof map, "%u %u 1\n", AL_CELL_UID, plan->program_uid);
    } else {
        snprintf(map, sizeof map, "0 %u 1\n%u %u 1\n", plan->init_uid, AL_CELL_UID,
                 plan->program_uid);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
        int rc = al_io_write_file(AT_FDCWD, path, map);
        if (rc < 0) {
            return al_err_errno(err, -rc, "cannot write the cell's %s", files[i]);
        }
    }
    return 0;
}

static int open_mounts(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int al_cell_create(const struct al_cell_plan *plan, int status_fd, struct al_cell *ret,
                   struct al_err *err)
{
    int alive[2] = {-1, -1}, ready[2] = {-1, -1};
    int pidfd = -1, rc = 0;
    bool native = plan->kind == AL_CELL_NATIVE;
    if (pipe2(alive, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0) {
        rc = al_err_errno(err, errno, "pipe");
        goto out;
    }
    pid_t pid = clone_init(plan->kind, plan->config, plan->init_uid, &pidfd);
    if (pid == 0) {
        al_init_main(plan, alive[0], ready[1], status_fd);
    }
    if (pid < 0) {
        rc = clone_error(err);
        goto out;
    }
    rc = native ? write_maps(plan, pid, err) : 0;
    if (rc == 0 && write(alive[1], "", 1) != 1) {
        rc = al_err_errno(err, errno, "cannot start init");
    }
    if (rc < 0) {
        kill_and_reap(pid, pidfd);
        goto out;
    }
    *ret = (struct al_cell){.init_pid = pid,
                            .init_pidfd = pidfd,
                            .mounts_fd = open_mounts(pid),
                            .alive_fd = al_steal_fd(&alive[1]),
                            .ready_fd = al_steal_fd(&ready[0])};
out:
    for (size_t i = 0; i < 2; i++) {
        al_close_fd(&alive[i]);
        al_close_fd(&ready[i]);
    }
    return rc;
}

/* What the process is to be cloned into: -1 when it makes and joins its groups by itself. */
static int open_cgroup(const struct al_cell_plan *plan, enum al_role role, int *ret,
                       struct al_err *err)
{
    const struct al_cgroup_ops *ops = plan->cgroups->ops;
    if (!ops->open) {
        *ret = -1;
        return 0;
    }
    int rc = al_role_is_first(role) ? ops->make(plan->cgroups, plan->name, err) : 0;
    int fd = rc < 0 ? rc : ops->open(plan->cgroups, plan->name, role != AL_ROLE_SETTER, err);
    if (fd < 0) {
        return fd;
    }
    *ret = fd;
    return 0;
}

/* Children of the launcher are born into the cell's pid namespace until it comes back to its own.
 */
static pid_t clone_into(const struct al_cell *cell, int cgroup, int *ret_pidfd, struct al_err *err)
{
    al_auto_close int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (own < 0 || setns(cell->init_pidfd, CLONE_NEWPID) < 0) {
        return al_err_errno(err, errno, "cannot enter the cell's pid namespace");
    }
    pid_t pid = clone_process(0, cgroup, ret_pidfd);
    if (pid == 0) {
        return 0;
    }
    int clone_errno = errno;
    if (setns(own, CLONE_NEWPID) < 0) {
        abort(); /* every later job would be born into this cell: better no launcher at all */
    }
    errno = clone_errno;
    return pid;
}

/* The same for a launcher without power over its own pid namespace, which could not come back: a
 * child of it goes there, and makes it a further child. */
static pid_t clone_by_helper(const struct al_cell *cell, int cgroup, int *ret_pidfd,
                             struct al_err *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return al_err_errno(err, errno, "pipe");
    }
    pid_t helper = fork();
    if (helper == 0) {
        int unused;
        pid_t pid = setns(cell->init_pidfd, CLONE_NEWPID) < 0
                        ? -1
                        : clone_process(CLONE_PARENT, cgroup, &unused);
        if (pid == 0) {
            return 0;
        }
        int32_t answer = pid < 0 ? -errno : pid;
        _exit(write(fds[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
    }
    close(fds[1]);
    int32_t answer = -errno;
    if (helper > 0 && read(fds[0], &answer, sizeof answer) != sizeof answer) {
        answer = -EIO;
    }
    close(fds[0]);
    TEMP_FAILURE_RETRY(waitpid(helper, NULL, 0));
    *ret_pidfd = answer < 0 ? -1 : (int)syscall(SYS_pidfd_open, answer, 0);
    if (answer > 0 && *ret_pidfd < 0) {
        answer = -errno; /* init's end takes the process along */
    }
    errno = answer < 0 ? -answer : 0;
    return answer < 0 ? -1 : answer;
}

static pid_t clone_for(const struct al_cell_plan *plan, const struct al_cell *cell,
                       enum al_role role, int cgroup, int *ret_pidfd, struct al_err *err)
{
    if (role == AL_ROLE_SETTER) {
        return clone_process(0, cgroup, ret_pidfd);
    }
    return plan->config->rootless ? clone_by_helper(cell, cgroup, ret_pidfd, err)
                                  : clone_into(cell, cgroup, ret_pidfd, err);
}

int al_cell_start(const struct al_cell_plan *plan, const struct al_cell *cell, enum al_role role,
                  int assign_fd, int status_fd, struct al_process *ret, struct al_err *err)
{
    int pidfd = -1;
    al_auto_close int cgroup = -1;
    int rc = open_cgroup(plan, role, &cgroup, err);
    if (rc < 0) {
        return rc;
    }
    pid_t pid = clone_for(plan, cell, role, cgroup, &pidfd, err);
    if (pid == 0) {
        al_program_main(plan, cell, role, assign_fd, status_fd);
    }
    if (pid < 0) {
        return al_err_is_set(err) ? -EIO
                                  : al_err_errno(err, errno, "cannot clone the program's process");
    }
    *ret = (struct al_process){.pid = pid, .pidfd = pidfd};
    return 0;
}

int al_cell_take(const struct al_cell *cell, uint32_t disk_mb, struct al_err *err)
{
    ssize_t put = write(cell->alive_fd, &disk_mb, sizeof disk_mb);
    return put == sizeof disk_mb ? 0 : al_err_errno(err, errno, "the cell's init does not listen");
}

int al_cell_assign(int assign_fd, const struct al_assignment *assignment,
                   const int fds[AL_STAGE_FDS], struct al_err *err)
{
    struct iovec iov = {.iov_base = (void *)assignment, .iov_len = sizeof *assignment};
    size_t n = 0;
    while (n < AL_STAGE_FDS && fds[n] >= 0) {
        n++;
    }
    int rc = al_io_send_fds(assign_fd, &iov, 1, fds, n, true);
    return rc < 0 ? al_err_errno(err, -rc, "the cell's process does not listen") : 0;
}

void al_cell_kill(const struct al_cell *cell)
{
    syscall(SYS_pidfd_send_signal, cell->init_pidfd, SIGKILL, NULL, 0);
}
