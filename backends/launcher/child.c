#include "backends/launcher/child.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/launcher/barrier.h"

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

void al_child_keep_fds(int *fds, size_t n)
{
    qsort(fds, n, sizeof *fds, compare_ints);
    unsigned next = 0;
    for (size_t i = 0; i < n; i++) {
        if (fds[i] < 0) {
            continue;
        }
        if ((unsigned)fds[i] > next) {
            close_range(next, (unsigned)fds[i] - 1, 0);
        }
        next = (unsigned)fds[i] + 1;
    }
    close_range(next, UINT_MAX, 0);
}

void al_child_fail(int status_fd, const struct al_err *err)
{
    size_t n = strlen(err->text);
    ssize_t put = write(status_fd, err->text, n < PIPE_BUF ? n : PIPE_BUF);
    (void)put; /* the launcher also sees that the program never started */
    _exit(1);
}

int al_child_drop_bounding_set(struct al_err *err)
{
    if (!al_barrier_is_on(AL_BARRIER_CAPABILITIES)) {
        return 0;
    }
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap) < 0) {
            return al_err_errno(err, errno, "cannot drop capability %d from the bounding set", cap);
        }
    }
    return 0;
}

int al_child_raise_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    if (syscall(SYS_capget, &header, caps) < 0) {
        return -errno;
    }
    caps[0].effective = caps[0].permitted;
    caps[1].effective = caps[1].permitted;
    return syscall(SYS_capset, &header, caps) < 0 ? -errno : 0;
}

static int set_capabilities(uint32_t low, struct al_err *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2] = {{.effective = low, .permitted = low}};
    if (al_barrier_is_on(AL_BARRIER_CAPABILITIES) && syscall(SYS_capset, &header, caps) < 0) {
        return al_err_errno(err, errno, "capset");
    }
    if (al_barrier_is_on(AL_BARRIER_NO_NEW_PRIVS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        return al_err_errno(err, errno, "PR_SET_NO_NEW_PRIVS");
    }
    return 0;
}

int al_child_keep_capability(int cap, struct al_err *err)
{
    return set_capabilities(1u << cap, err);
}

int al_child_drop_capabilities(struct al_err *err)
{
    return set_capabilities(0, err);
}

bool al_child_has_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    if (syscall(SYS_capget, &header, caps) < 0) {
        return true;
    }
    for (size_t i = 0; i < 2; i++) {
        if (caps[i].effective | caps[i].permitted | caps[i].inheritable) {
            return true;
        }
    }
    for (int cap = 0, has; (has = prctl(PR_CAPBSET_READ, cap)) >= 0; cap++) {
        if (has > 0) {
            return true;
        }
    }
    return false; /* the ambient set is at most the permitted one */
}

void al_child_reset_signals(void)
{
    /* The call itself: libc's refuses the two signals that it uses, which whoever started us may
     * have left ignored all the same. All zero is SIG_DFL. */
    static const uint64_t dfl[4];
    for (int sig = 1; sig < NSIG; sig++) {
        syscall(SYS_rt_sigaction, sig, dfl, NULL, sizeof(uint64_t));
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void al_child_hide_arguments(int argc, char **argv)
{
    static const char name[] = "airlock-launcher";
    size_t len = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
    memset(argv[0], 0, len);
    memcpy(argv[0], name, len < sizeof name ? len : sizeof name - 1);
}

int al_child_become(unsigned uid, bool keep_groups, struct al_err *err)
{
    if ((!keep_groups && setgroups(0, NULL) < 0) || setresgid(uid, uid, uid) < 0 ||
        setresuid(uid, uid, uid) < 0)
    {
        return al_err_errno(err, errno, "cannot become uid %u", uid);
    }
    return 0;
}
