/* Memory of other processes, and of one's own. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/attack/attack.h"

static char target[8] = "before";

/* Calls `fn` on a child that waits. */
static int on_child(int (*fn)(pid_t))
{
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    if (pid < 0) {
        return NOT_TRIED;
    }
    int result = fn(pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return result;
}

static int seize(pid_t pid)
{
    return outcome(ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

static int trace(void)
{
    return on_child(seize);
}

static int read_vm_of(pid_t pid)
{
    char here[8];
    const struct iovec local = {here, sizeof here}, remote = {target, sizeof target};
    return outcome(process_vm_readv(pid, &local, 1, &remote, 1, 0));
}

static int read_vm(void)
{
    return on_child(read_vm_of);
}

static int write_vm_of(pid_t pid)
{
    const struct iovec vec = {target, sizeof target};
    return outcome(process_vm_writev(pid, &vec, 1, &vec, 1, 0));
}

static int write_vm(void)
{
    return on_child(write_vm_of);
}

static int take_fd_of(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return pidfd < 0 ? NOT_TRIED : outcome(syscall(SYS_pidfd_getfd, pidfd, 1, 0));
}

static int take_fd(void)
{
    return on_child(take_fd_of);
}

static int compare_with(pid_t pid)
{
    return outcome(syscall(SYS_kcmp, getpid(), pid, 1 /* memory */, 0, 0));
}

static int compare(void)
{
    return on_child(compare_with);
}

/* --- what anybody may do to himself --- */

static int write_own_memory(void)
{
    int fd = open("/proc/self/mem", O_RDWR);
    if (fd < 0) {
        return errno;
    }
    ssize_t put = pwrite(fd, "after", 6, (off_t)(uintptr_t)target);
    return put == 6 && strcmp(target, "after") == 0 ? 0 : errno ? errno : EIO;
}

/* A program that never was a file. */
static int run_from_memory(void)
{
    char buf[65536];
    int status = 0;
    int in = open("/usr/bin/true", O_RDONLY);
    int fd = memfd_create("x", 0);
    for (ssize_t n; in >= 0 && fd >= 0 && (n = read(in, buf, sizeof buf)) > 0;) {
        if (write(fd, buf, (size_t)n) != n) {
            return NOT_TRIED;
        }
    }
    pid_t pid = fork();
    if (pid == 0) {
        char *const argv[] = {"true", NULL};
        fexecve(fd, argv, environ);
        _exit(errno);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_TRIED;
}

static int strict_mode(void)
{
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) < 0) {
            _exit(errno);
        }
        syscall(SYS_exit, 0);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_TRIED;
}

static int own_notifications(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = 1, .filter = &allow};
    return outcome(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

const struct attack memory_attacks[] = {
    DOES("trace", trace),
    DOES("read_vm", read_vm),
    DOES("write_vm", write_vm),
    DOES("take_fd", take_fd),
    DOES("compare", compare),
    DOES("write_own_memory", write_own_memory),
    DOES("run_from_memory", run_from_memory),
    DOES("strict_mode", strict_mode),
    DOES("own_notifications", own_notifications),
    {.name = NULL},
};
