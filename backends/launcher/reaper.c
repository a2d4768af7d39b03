#include "backends/launcher/reaper.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/base/log.h"
#include "backends/launcher/child.h"

#define PENDING_MAX 4096
#define RETRY_MS    10

struct reaper {
    const struct al_cgroups *groups;
    int fd;
    size_t n;
    char pending[PENDING_MAX][AL_JOB_ID_LEN + 1];
};

/* Dying processes hold a group for a moment (EBUSY): those are tried again. */
static void remove_pending(struct reaper *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->groups->ops->remove(r->groups, r->pending[i]) < 0) {
            memmove(r->pending[kept++], r->pending[i], sizeof r->pending[0]);
        }
    }
    r->n = kept;
}

/* False when the launcher is gone. */
static bool receive(struct reaper *r)
{
    while (r->n < PENDING_MAX) {
        int fds[AL_IO_FDS_MAX];
        size_t n_fds = 0;
        ssize_t got = al_io_recv_fds(r->fd, r->pending[r->n], AL_JOB_ID_LEN, fds, &n_fds);
        if (got == -EAGAIN) {
            return true;
        }
        for (size_t i = 0; i < n_fds; i++) {
            close(fds[i]); /* the last one: the kernel unmounts here */
        }
        if (got != AL_JOB_ID_LEN) {
            return false;
        }
        r->pending[r->n++][AL_JOB_ID_LEN] = '\0';
    }
    return true;
}

static _Noreturn void reaper_main(const struct al_cgroups *groups, int fd)
{
    static struct reaper reaper; /* large, and this process is its only user */
    reaper.groups = groups;
    reaper.fd = fd;
    prctl(PR_SET_NAME, "airlock-reaper");
    for (;;) {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};
        poll(&pfd, 1, reaper.n > 0 ? RETRY_MS : -1);
        if (pfd.revents && !receive(&reaper)) {
            break;
        }
        remove_pending(&reaper);
    }
    if (!groups->ops->sweep(groups, true)) {
        al_log_warn(
            "some cgroups of this instance could not be removed; the next start tries again");
    }
    _exit(0);
}

int al_reaper_start(const struct al_cgroups *groups, int *ret_fd, struct al_err *err)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
        return al_err_errno(err, errno, "socketpair");
    }
    pid_t pid = fork();
    if (pid < 0) {
        int rc = al_err_errno(err, errno, "cannot fork the reaper");
        close(fds[0]);
        close(fds[1]);
        return rc;
    }
    if (pid == 0) {
        int keep[AL_CGROUP_DIRS_MAX + 2] = {fds[1], STDERR_FILENO};
        for (size_t i = 0; i < AL_CGROUP_DIRS_MAX; i++) {
            keep[2 + i] = i < groups->n_dirs ? groups->dirs[i].fd : -1;
        }
        al_child_keep_fds(keep, sizeof keep / sizeof keep[0]);
        reaper_main(groups, fds[1]);
    }
    close(fds[1]);
    *ret_fd = fds[0];
    return 0;
}

bool al_reaper_remove(int fd, const char *job_id, int mounts_fd)
{
    struct iovec iov = {.iov_base = (void *)job_id, .iov_len = AL_JOB_ID_LEN};
    return al_io_send_fds(fd, &iov, 1, &mounts_fd, mounts_fd >= 0, false) == 0;
}
