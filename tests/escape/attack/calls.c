/* System calls that nothing in a cell has any business with. Where a call can be made such that the
 * kernel would do it, it is; the others have arguments that it would answer in another way than the
 * filter does. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/attack/attack.h"

#ifndef TIOCLINUX
#define TIOCLINUX 0x541c
#endif
#define UPPER   0xdeadbeef00000000 /* what a comparison of 64 bits would stumble over */
#define NOWHERE 0x10               /* an address that faults */

#define SYS_OPEN_TREE_ATTR 467 /* younger than the headers */
#define SYS_LISTMOUNT      458

static int clone_with(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        _exit(0);
    }
    return outcome(pid);
}

static int clone_user(void)
{
    return clone_with(CLONE_NEWUSER);
}

static int clone_user_upper(void)
{
    return clone_with(UPPER | CLONE_NEWUSER);
}

static int clone_parent(void)
{
    return clone_with(CLONE_PARENT);
}

static int clone3_user(void)
{
    struct {
        unsigned long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        _exit(0);
    }
    return outcome(pid);
}

/* With a user namespace of its own a program has every capability in it. */
static int userns_mount(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
        return errno;
    }
    return outcome(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int nested_proc(void)
{
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        return NOT_TRIED;
    }
    return outcome(mount("proc", "/tmp", "proc", 0, NULL));
}

/* A /proc without the masks. */
static int userns_proc(void)
{
    return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0 ? errno : in_child(nested_proc);
}

static int userns_unmask(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
        return errno;
    }
    return outcome(umount2("/proc/keys", MNT_DETACH));
}

static int userns_cgroup(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP) < 0) {
        return errno;
    }
    if (mount("none", "/tmp", "cgroup2", 0, NULL) < 0 &&
        mount("none", "/tmp", "cgroup", 0, "memory") < 0)
    {
        return errno;
    }
    return try_open("/tmp/release_agent", O_WRONLY);
}

static int mount_tmpfs(void)
{
    return outcome(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int remount_proc_sys(void)
{
    return outcome(mount("none", "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int remount_usr(void)
{
    return outcome(mount("none", "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int chroot_out(void)
{
    return outcome(chroot("/tmp"));
}

static int open_by_handle(void)
{
    struct {
        struct file_handle base;
        unsigned char bytes[128];
    } h = {.base.handle_bytes = 128};
    int id = 0;
    int dir = open("/sandbox", O_RDONLY | O_DIRECTORY);
    if (syscall(SYS_name_to_handle_at, dir, "", &h, &id, AT_EMPTY_PATH) < 0) {
        return errno;
    }
    return outcome(syscall(SYS_open_by_handle_at, dir, &h, O_RDONLY));
}

static int name_to_handle(void)
{
    struct {
        struct file_handle base;
        unsigned char bytes[128];
    } h = {.base.handle_bytes = 128};
    int id = 0;
    return outcome(syscall(SYS_name_to_handle_at, AT_FDCWD, "/sandbox", &h, &id, 0));
}

static int bpf_map(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return outcome(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}

static int perf(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    return outcome(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int io_uring(void)
{
    unsigned char params[120] = {0};
    return outcome(syscall(SYS_io_uring_setup, 4, params));
}

static int aio(void)
{
    unsigned long context = 0;
    return outcome(syscall(SYS_io_setup, 4, &context));
}

static int move_clock(void)
{
    struct timex t = {.modes = ADJ_OFFSET, .offset = 1};
    return outcome(adjtimex(&t));
}

/* A filter of the program's own, which allows everything, does not replace ours. */
static int unshare_after_own_filter(void)
{
    struct {
        unsigned short code;
        unsigned char jt, jf;
        unsigned k;
    } allow = {0x06, 0, 0, 0x7fff0000};
    struct {
        unsigned short len;
        void *filter;
    } program = {1, &allow};
    if (syscall(SYS_seccomp, 1, 0, &program) < 0) {
        return NOT_TRIED;
    }
    return outcome(unshare(CLONE_NEWUSER));
}

#ifdef __x86_64__
static int int80(void)
{
    long nr = 20; /* getpid */
    __asm__ volatile("int $0x80" : "+a"(nr) : : "memory");
    return nr > 0 ? 0 : (int)-nr;
}

/* ptrace by its 32-bit number: PTRACE_TRACEME. */
static int int80_ptrace(void)
{
    long nr = 26;
    __asm__ volatile("int $0x80" : "+a"(nr) : "b"(0), "c"(0), "d"(0), "S"(0) : "memory");
    return nr >= 0 ? 0 : (int)-nr;
}
#define X32(nr) (0x40000000 | (nr))
#endif

const struct attack call_attacks[] = {
    DOES("clone_user", clone_user),
    DOES("clone_user_upper", clone_user_upper),
    DOES("clone_parent", clone_parent),
    DOES("clone3_user", clone3_user),
    CALL("unshare_user", SYS_unshare, CLONE_NEWUSER),
    DOES("userns_mount", userns_mount),
    DOES("userns_proc", userns_proc),
    DOES("userns_unmask", userns_unmask),
    DOES("userns_cgroup", userns_cgroup),
    DOES("mount", mount_tmpfs),
    DOES("remount_proc_sys", remount_proc_sys),
    DOES("remount_usr", remount_usr),
    CALL("umount_proc_sys", SYS_umount2, (unsigned long)"/proc/sys", MNT_DETACH),
    CALL("pivot_root", SYS_pivot_root, NOWHERE, NOWHERE),
    DOES("chroot", chroot_out),
    CALL("fsopen", SYS_fsopen, (unsigned long)"tmpfs", 0),
    CALL("open_tree", SYS_open_tree, AT_FDCWD, (unsigned long)"/tmp", 1),
    CALL("move_mount", SYS_move_mount, -1, NOWHERE, -1, NOWHERE),
    CALL("setns", SYS_setns, -1, 0),
    DOES("name_to_handle", name_to_handle),
    DOES("open_by_handle", open_by_handle),
    CALL("new_call", SYS_LISTMOUNT, NOWHERE, NOWHERE, 1, 0),
    CALL("new_mount_call", SYS_OPEN_TREE_ATTR, -1, NOWHERE, 0, NOWHERE, 32),
    DOES("bpf", bpf_map),
    DOES("perf", perf),
    DOES("io_uring", io_uring),
    DOES("aio", aio),
    CALL("fanotify", SYS_fanotify_init, FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY),
    CALL("userfaultfd", SYS_userfaultfd, O_CLOEXEC | 1 /* user mode only */),
    CALL("vmsplice", SYS_vmsplice, -1, NOWHERE, 1),
    CALL("dmesg", SYS_syslog, 10 /* size of the buffer */),
    CALL("personality", SYS_personality, ADDR_NO_RANDOMIZE),
    CALL("clock_settime", SYS_clock_settime, 0, NOWHERE),
    DOES("adjtimex", move_clock),
    CALL("sethostname", SYS_sethostname, (unsigned long)"evil", 4),
    CALL("kexec", SYS_kexec_load, 0, 0, NOWHERE, 0),
    CALL("init_module", SYS_init_module, NOWHERE, 1, NOWHERE),
    CALL("reboot", SYS_reboot, 0, 0, 0),
    CALL("swapoff", SYS_swapoff, NOWHERE),
    DOES("own_filter_then_unshare", unshare_after_own_filter),
    CALL("tiocsti", SYS_ioctl, 0, TIOCSTI, (unsigned long)"x"),
    CALL("tiocsti_upper", SYS_ioctl, 0, UPPER | TIOCSTI, (unsigned long)"x"),
    CALL("tioclinux", SYS_ioctl, 0, TIOCLINUX, (unsigned long)"\x2"),
    CALL("tioclinux_upper", SYS_ioctl, 0, UPPER | TIOCLINUX, (unsigned long)"\x2"),
    CALL("tiocsetd", SYS_ioctl, 0, TIOCSETD, NOWHERE),
#ifdef __x86_64__
    CALL("modify_ldt", SYS_modify_ldt, 0, 0, 0),
    DOES("int80", int80),
    DOES("int80_ptrace", int80_ptrace),
    CALL("x32", X32(SYS_getpid), 0),
    CALL("x32_ptrace", X32(521), 0),
    CALL("x32_number", 521, 0), /* old kernels took it for x32's ptrace all the same */
#endif
    {.name = NULL},
};
