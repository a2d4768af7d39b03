/*
 * Theory of operation. Init is pid 1 of its cell. It is cloned with all of the cell's namespaces,
 * waits until the launcher has written its id maps, builds the mount tree, gives its privileges
 * away and says that it is ready. In a native cell it keeps CAP_SYS_ADMIN over the cell until the
 * launcher says that a job takes it: that job may want a disk of another size. From then on it
 * holds the namespaces open and reaps orphans (SIGCHLD is ignored, so the kernel does it). It ends
 * when the launcher's end of the pipe closes, or when the launcher kills it; the kernel then kills
 * all that is in the cell. It has another uid than the program and is not dumpable, so that the
 * program can neither trace nor signal it.
 */
#include <errno.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/cell.h"
#include "backends/launcher/child.h"
#include "backends/launcher/rootfs.h"

static int bring_loopback_up(struct al_err *err)
{
    al_auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0) {
        return al_err_errno(err, errno, "cannot bring the loopback interface up");
    }
    return 0;
}

static int build_native(const struct al_cell_plan *plan, struct al_err *err)
{
    bool rootless = plan->config->rootless;
    unsigned own_uid = rootless ? AL_CELL_UID : 0;
    int rc = al_child_become(own_uid, rootless, err);
    if (rc == 0 && unshare((int)al_cell_side_flags()) < 0) {
        rc = al_err_errno(err, errno, "unshare");
    }
    rc = rc < 0 ? rc : al_rootfs_enter(own_uid, plan->quotas.disk_mb, err);
    if (rc == 0 && al_barrier_is_on(AL_BARRIER_NETNS)) {
        rc = bring_loopback_up(err);
    }
    if (rc == 0 && al_barrier_is_on(AL_BARRIER_UTSNS) &&
        sethostname("sandbox", strlen("sandbox")) < 0) {
        rc = al_err_errno(err, errno, "sethostname");
    }
    return rc;
}

/* With the host's ids; a jail's namespaces are its tool's to make. */
static int build_other(const struct al_cell_plan *plan, struct al_err *err)
{
    const uid_t uid = plan->program_uid;
    if (!al_cell_is_jail(plan->kind)) {
        return al_rootfs_enter_local(uid, plan->quotas.disk_mb, err);
    }
    int rc = al_rootfs_enter_jail(uid, plan->quotas.disk_mb, err);
    return rc < 0 || plan->kind != AL_CELL_FIREJAIL ? rc : al_rootfs_add_run(uid, err);
}

/* In a native cell init is root of its own user namespace already; in another one it is still the
 * host's. */
static int give_privileges_away(const struct al_cell_plan *plan, struct al_err *err)
{
    if (plan->kind == AL_CELL_NATIVE) {
        return al_child_keep_capability(CAP_SYS_ADMIN, err);
    }
    int rc = al_child_become(plan->init_uid, false, err);
    return rc < 0 ? rc : al_child_drop_capabilities(err);
}

static void wait_for_byte(int fd)
{
    char byte;
    if (TEMP_FAILURE_RETRY(read(fd, &byte, 1)) != 1) {
        _exit(1); /* the launcher is gone */
    }
}

/* Says over the pipe how it went, 0 or an errno, if a resize was asked for. */
static void take_job(const struct al_cell_plan *plan, uint32_t disk_mb, int ready_fd)
{
    struct al_err err = {0};
    if (plan->kind != AL_CELL_NATIVE) {
        return;
    }
    int rc = disk_mb > 0 ? al_rootfs_resize(disk_mb, &err) : 0;
    uint8_t answer = (uint8_t)-rc;
    if (al_child_drop_capabilities(&err) < 0) {
        _exit(1);
    }
    if (disk_mb > 0 && write(ready_fd, &answer, 1) != 1) {
        _exit(1);
    }
}

void al_init_main(const struct al_cell_plan *plan, int alive_fd, int ready_fd, int status_fd)
{
    struct al_err err = {0};
    int keep[] = {alive_fd, ready_fd, status_fd};
    al_child_keep_fds(keep, 3);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGCHLD, &ignore, NULL); /* the kernel reaps orphans */
    wait_for_byte(alive_fd);
    bool native = plan->kind == AL_CELL_NATIVE;
    int rc = native ? build_native(plan, &err) : build_other(plan, &err);
    rc = rc < 0 ? rc : give_privileges_away(plan, &err);
    if (rc < 0) {
        al_child_fail(status_fd, &err);
    }
    prctl(PR_SET_DUMPABLE, al_barrier_is_on(AL_BARRIER_DUMPABLE) ? 0 : 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the last change of id, which clears it */
    close(status_fd);
    if (write(ready_fd, "", 1) != 1) {
        _exit(1);
    }
    uint32_t disk_mb = 0;
    if (TEMP_FAILURE_RETRY(read(alive_fd, &disk_mb, sizeof disk_mb)) != sizeof disk_mb) {
        _exit(0);
    }
    take_job(plan, disk_mb, ready_fd);
    close(ready_fd);
    wait_for_byte(alive_fd);
    _exit(0);
}
