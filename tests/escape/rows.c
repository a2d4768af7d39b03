/*
 * The table. A row's attack runs in a cell of the product, where it must say `held`, then in one of
 * the weakened launcher without the barriers in `off`, where it must say `open`. Where two layers
 * stop it both are off. What is stopped by the kernel's rule that host root's capabilities count in
 * the first user namespace only cannot be shown: there is no cell without a user namespace.
 */
#include "tests/escape/rows.h"

#include "tests/escape/weakened.h"

#define FILTER     "seccomp"
#define ROOT       (OFF(CELL_UID) | OFF(CAPABILITIES)) /* root of its cell, with all capabilities */
#define NO_MORE    "most launchers have no such limit to give"
#define FIRST_NS   "the kernel asks for a capability in the first user namespace"
#define HOST_ROOTS "it belongs to the host's root, who is nobody in a cell"
#define BY_NATURE  "there is nothing to switch off: the launcher does nothing that would allow it"

#define ROW(name, says, by, ...)                               \
    {                                                          \
        .attack = name, .held = says, .layer = by, __VA_ARGS__ \
    }
#define WITHOUT(barriers, says) .off = barriers, .open = says
#define OR(says)                .absent = says
#define BECAUSE(text)           .why = text
#define AFTER(text)             .after = text

static const struct escape_row system_calls[] = {
    ROW("clone_user", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("clone_user_upper", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("clone3_user", "ENOSYS", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("clone_parent", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("unshare_user", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("own_filter_then_unshare", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("setns", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "EBADF")),
    ROW("new_call", "ENOSYS", FILTER, WITHOUT(OFF(SECCOMP), "EFAULT"), OR("ENOSYS")),
    ROW("new_mount_call", "ENOSYS", FILTER, WITHOUT(OFF(SECCOMP), "EFAULT"), OR("ENOSYS")),
    ROW("strict_mode", "EINVAL", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("bpf", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("EPERM")),
    ROW("perf", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("EACCES")),
    ROW("io_uring", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("ENOSYS")),
    ROW("aio", "ENOSYS", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("ENOSYS")),
    ROW("fanotify", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("ENOSYS")),
    ROW("userfaultfd", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("ENOSYS")),
    ROW("vmsplice", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "EBADF")),
    ROW("dmesg", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("EPERM")),
    ROW("personality", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("clock_settime", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "EFAULT")),
    ROW("adjtimex", "EPERM", FILTER ", capabilities", BECAUSE(FIRST_NS)),
    ROW("kexec", "EPERM", FILTER ", capabilities", BECAUSE(FIRST_NS)),
    ROW("init_module", "EPERM", FILTER ", capabilities", BECAUSE(FIRST_NS)),
    ROW("reboot", "EPERM", FILTER ", capabilities", BECAUSE(FIRST_NS)),
    ROW("swapoff", "EPERM", FILTER ", capabilities", BECAUSE(FIRST_NS)),
};

static const struct escape_row foreign_calls[] = {
#ifdef __x86_64__
    ROW("modify_ldt", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("int80", "SIGSYS", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("SIGSEGV")),
    ROW("int80_ptrace", "SIGSYS", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("SIGSEGV")),
    ROW("x32", "SIGSYS", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("ENOSYS")),
    ROW("x32_ptrace", "SIGSYS", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("ENOSYS")),
    ROW("x32_number", "ENOSYS", FILTER, BECAUSE("kernels that took it are older than 5.4")),
#endif
};

static const struct escape_row terminals[] = {
    ROW("tiocsti", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ENOTTY")),
    ROW("tiocsti_upper", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ENOTTY")),
    ROW("tioclinux", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ENOTTY")),
    ROW("tioclinux_upper", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ENOTTY")),
    ROW("tiocsetd", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ENOTTY")),
    ROW("controlling_terminal", "ENXIO", "own session", BECAUSE(BY_NATURE)),
};

static const struct escape_row mounts[] = {
    ROW("mount", "EPERM", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok")),
    ROW("remount_proc_sys", "EPERM", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok")),
    ROW("umount_proc_sys", "EPERM", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok")),
    ROW("remount_usr", "EPERM", FILTER ", locked mounts",
        BECAUSE("the kernel locks what comes from the mount namespace of another user namespace")),
    ROW("chroot", "EPERM", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok")),
    ROW("fsopen", "EPERM", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok")),
    ROW("open_tree", "EPERM", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok")),
    ROW("move_mount", "EPERM", FILTER, WITHOUT(OFF(SECCOMP) | ROOT, "EFAULT")),
    ROW("pivot_root", "EPERM", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "EFAULT")),
    ROW("userns_mount", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("userns_proc", "EPERM", FILTER ", masked /proc",
        WITHOUT(OFF(SECCOMP) | OFF(PROC_MASK), "ok")),
    ROW("userns_unmask", "EPERM", FILTER ", locked mounts", WITHOUT(OFF(SECCOMP), "EINVAL")),
    ROW("userns_cgroup", "EPERM", FILTER ", own uid", WITHOUT(OFF(SECCOMP), "ENOENT"), OR("EBUSY")),
    ROW("name_to_handle", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("open_by_handle", "EPERM", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok"),
        OR("EPERM")),
    ROW("climb", "ENOENT", "pivot_root", BECAUSE("the kernel has no way up from a root")),
};

static const struct escape_row processes[] = {
    ROW("keyctl", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("add_key", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("request_key", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ENOKEY")),
    ROW("host_key", "EPERM", FILTER ", own keyring", WITHOUT(OFF(SECCOMP), "ENOKEY")),
    ROW("trace", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("read_vm", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("write_vm", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("take_fd", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("compare", "EPERM", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("signal_all", "ESRCH", "pid namespace, own uid",
        BECAUSE("without a pid 1 of its own the launcher could not end a cell")),
    ROW("foreign_process", "ENOENT", "own /proc", WITHOUT(OFF(OWN_PROC), "ok")),
    ROW("leaked_fd", "ENOENT", "closed fds", WITHOUT(OFF(FDS), "ok")),
    ROW("foreign_variable", "ENOENT", "clean environment", BECAUSE(BY_NATURE)),
    ROW("blocked_signals", "ENOENT", "clean signal mask", BECAUSE(BY_NATURE)),
};

static const struct escape_row privileges[] = {
    ROW("setuid_root", "EPERM", "capabilities", WITHOUT(OFF(CELL_UID), "ok")),
    ROW("setgroups", "EPERM", "capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok")),
    ROW("has_capabilities", "EPERM", "capabilities", WITHOUT(ROOT, "ok")),
    ROW("setuid_program", "EPERM", "no_new_privs, nosuid",
        WITHOUT(OFF(NO_NEW_PRIVS) | OFF(NOSUID) | OFF(SECCOMP), "ok")),
    ROW("no_new_privs", "EPERM", "no_new_privs", WITHOUT(OFF(NO_NEW_PRIVS) | OFF(SECCOMP), "ok")),
    ROW("map_root", "EPERM", "user namespace", BECAUSE("its map is written once, by the launcher")),
    ROW("raise_priority", "EACCES", "capabilities", BECAUSE(FIRST_NS)),
    ROW("real_time", "EPERM", "capabilities", BECAUSE(FIRST_NS)),
    ROW("oom_shield", "EACCES", "capabilities", BECAUSE(FIRST_NS)),
};

static const struct escape_row init[] = {
    ROW("init_kill", "EPERM", "init's own uid", WITHOUT(OFF(CELL_UID), "ok")),
    ROW("init_pidfd", "EPERM", "init's own uid", WITHOUT(OFF(CELL_UID), "ok")),
    ROW("init_limits", "EPERM", "init's own uid", WITHOUT(OFF(CELL_UID), "ok")),
    ROW("init_mem", "EACCES", "init's own uid, not dumpable",
        WITHOUT(OFF(CELL_UID) | OFF(DUMPABLE), "ok")),
    ROW("init_environ", "EACCES", "init's own uid, not dumpable, wiped environment",
        WITHOUT(OFF(CELL_UID) | OFF(DUMPABLE) | OFF(ARGUMENTS), "ok")),
    ROW("init_exe", "EACCES", "init's own uid, not dumpable",
        WITHOUT(OFF(CELL_UID) | OFF(DUMPABLE), "ok")),
    ROW("init_exe_write", "EACCES", "own uid", BECAUSE(HOST_ROOTS)),
    ROW("init_root", "EACCES", "init's own uid, not dumpable",
        WITHOUT(OFF(CELL_UID) | OFF(DUMPABLE), "ok")),
    ROW("init_cwd", "EACCES", "init's own uid, not dumpable",
        WITHOUT(OFF(CELL_UID) | OFF(DUMPABLE), "ok")),
    ROW("init_fds", "EACCES", "init's own uid, not dumpable",
        WITHOUT(OFF(CELL_UID) | OFF(DUMPABLE), "ok")),
    ROW("init_netns", "EACCES", "init's own uid, not dumpable",
        WITHOUT(OFF(CELL_UID) | OFF(DUMPABLE), "ok")),
    ROW("init_map_files", "EACCES", "init's own uid, not dumpable",
        WITHOUT(OFF(CELL_UID) | OFF(DUMPABLE), "ok")),
    ROW("init_oom", "EACCES", "init's own uid, not dumpable",
        WITHOUT(OFF(CELL_UID) | OFF(DUMPABLE), "ok")),
    ROW("init_arguments", "ENOENT", "hidden arguments", WITHOUT(OFF(ARGUMENTS), "ok")),
};

static const struct escape_row files[] = {
    ROW("host_file", "ENOENT", "pivot_root", WITHOUT(OFF(HOST_ROOT), "ok")),
    ROW("configuration", "ENOENT", "pivot_root", WITHOUT(OFF(HOST_ROOT), "ok")),
    ROW("shadow", "ENOENT", "pivot_root, own uid", WITHOUT(OFF(HOST_ROOT), "EACCES")),
    ROW("sysfs", "ENOENT", "pivot_root", WITHOUT(OFF(HOST_ROOT), "ok")),
    ROW("cgroupfs", "ENOENT", "pivot_root", WITHOUT(OFF(HOST_ROOT), "ok")),
    ROW("run_dir", "ENOENT", "pivot_root", WITHOUT(OFF(HOST_ROOT), "ok")),
    ROW("kernel_log", "ENOENT", "minimal /dev", WITHOUT(OFF(HOST_ROOT), "ok")),
    ROW("kernel_memory", "ENOENT", "minimal /dev", WITHOUT(OFF(HOST_ROOT), "ok"), OR("ENOENT")),
    ROW("write_shared", "EROFS", "read-only mounts", WITHOUT(OFF(READ_ONLY), "ok")),
    ROW("write_system", "EROFS", "read-only mounts, own uid", WITHOUT(OFF(READ_ONLY), "EACCES")),
    ROW("write_root", "EROFS", "read-only mounts, own uid", WITHOUT(OFF(READ_ONLY), "EACCES")),
    ROW("write_etc", "EACCES", "own uid, read-only mounts", BECAUSE(HOST_ROOTS)),
    ROW("interpreter_write", "EACCES", "own uid, read-only mounts", BECAUSE(HOST_ROOTS)),
    ROW("touch_device", "EROFS", "read-only mounts", WITHOUT(OFF(READ_ONLY), "ok")),
    ROW("use_device", "EACCES", "nodev", WITHOUT(OFF(NODEV), "ok")),
    ROW("make_device", "EPERM", "capabilities", BECAUSE(FIRST_NS)),
    ROW("fill", "ENOSPC", "size of the tmpfs", WITHOUT(OFF(DISK), "ok")),
    ROW("fill_names", "ENOSPC", "size of the tmpfs", WITHOUT(OFF(DISK), "ok")),
};

static const struct escape_row proc[] = {
    ROW("masked_files", "ENODATA", "masked /proc", WITHOUT(OFF(PROC_MASK), "ok")),
    ROW("masked_race", "ENODATA", "masked /proc", WITHOUT(OFF(PROC_MASK), "ok")),
    ROW("sysrq", "ENODEV", "masked /proc, own uid", WITHOUT(OFF(PROC_MASK), "EACCES"),
        OR("ENODEV")),
    ROW("core_pattern", "EACCES", "own uid, masked /proc", BECAUSE(HOST_ROOTS)),
    ROW("net_sysctl", "EACCES", "masked /proc, capabilities", WITHOUT(OFF(PROC_MASK) | ROOT, "ok")),
    ROW("cgroup_path", "ENOENT", "cgroup namespace", WITHOUT(OFF(CGROUPNS), "ok")),
};

static const struct escape_row network[] = {
    ROW("host_abstract", "ECONNREFUSED", "network namespace", WITHOUT(OFF(NETNS), "ok")),
    ROW("host_loopback", "ECONNREFUSED", "network namespace", WITHOUT(OFF(NETNS), "ok")),
    ROW("metadata", "ENETUNREACH", "network namespace", BECAUSE("no address of that kind is near")),
    ROW("metadata_6", "ENETUNREACH", "network namespace",
        BECAUSE("no address of that kind is near")),
    ROW("netlink", "EAFNOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("netlink_upper", "EAFNOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "ok")),
    ROW("packet", "EAFNOSUPPORT", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok"),
        OR("EAFNOSUPPORT")),
    ROW("vsock", "EAFNOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("EAFNOSUPPORT")),
    ROW("alg", "EAFNOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("EAFNOSUPPORT")),
    ROW("socketpair_netlink", "EAFNOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "EFAULT")),
    ROW("socketpair_tipc", "EAFNOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "EFAULT"),
        OR("EAFNOSUPPORT")),
    ROW("raw_ip", "EPERM", "capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok")),
    ROW("sctp", "EPROTONOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("EPROTONOSUPPORT")),
    ROW("sctp_by_type", "ESOCKTNOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "ok"),
        OR("ESOCKTNOSUPPORT")),
    ROW("dccp", "ESOCKTNOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("ESOCKTNOSUPPORT")),
    ROW("mptcp", "EPROTONOSUPPORT", FILTER, WITHOUT(OFF(SECCOMP), "ok"), OR("EPROTONOSUPPORT")),
    ROW("unknown_protocol", "EPROTONOSUPPORT", FILTER, BECAUSE("no module has it")),
    ROW("host_name", "ENOENT", "uts namespace", WITHOUT(OFF(UTSNS), "ok")),
    ROW("sethostname", "EPERM", FILTER ", capabilities", WITHOUT(OFF(SECCOMP) | ROOT, "ok")),
    ROW("host_shm", "ENOENT", "ipc namespace", WITHOUT(OFF(IPCNS), "ok")),
    ROW("host_queue", "ENOENT", "ipc namespace", WITHOUT(OFF(IPCNS), "ok")),
};

static const struct escape_row limits[] = {
    ROW("fork_bomb", "EAGAIN", "cgroup", WITHOUT(OFF(CGROUP), "ok")),
    ROW("memory_bomb", "SIGKILL", "cgroup", WITHOUT(OFF(CGROUP), "ok")),
    ROW("open_many", "EMFILE", "rlimits", WITHOUT(OFF(RLIMITS), "ok")),
    ROW("large_file", "EFBIG", "rlimits", WITHOUT(OFF(RLIMITS), "ok")),
    ROW("make_queue", "EMFILE", "rlimits", WITHOUT(OFF(RLIMITS), "ok")),
    ROW("be_realtime", "EPERM", "rlimits", BECAUSE(NO_MORE)),
    ROW("go_first", "EACCES", "rlimits", BECAUSE(NO_MORE)),
    ROW("raise_limit", "EPERM", "capabilities", BECAUSE(FIRST_NS)),
};

/* With a job beside it that has made `after` and still runs. */
static const struct escape_row neighbours[] = {
    ROW("find_abstract", "ECONNREFUSED", "network namespace", WITHOUT(OFF(NETNS), "ok"),
        AFTER("hold_abstract")),
    ROW("find_key", "ENOENT", "ipc namespace", WITHOUT(OFF(IPCNS), "ok"), AFTER("hold_key")),
    ROW("read_left_tmp", "ENOENT", "own tmpfs", BECAUSE(BY_NATURE), AFTER("leave_tmp")),
    ROW("read_left_shm", "ENOENT", "own tmpfs", BECAUSE(BY_NATURE), AFTER("leave_shm")),
    ROW("read_left_file", "ENOENT", "read-only mounts, own uid",
        WITHOUT(OFF(READ_ONLY) | OFF(OWN_UIDS), "ok"), AFTER("leave_file")),
};

static const struct escape_row allowed[] = {
    ROW("write_own_memory", "ok", "allowed"),
    ROW("run_from_memory", "ok", "allowed"),

    ROW("own_notifications", "ok", "allowed"),
};

#define CLASS(title, array)                            \
    {                                                  \
        title, array, sizeof(array) / sizeof(array)[0] \
    }

const struct escape_class escape_classes[] = {
    CLASS("system_calls", system_calls),
    CLASS("foreign_calls", foreign_calls),
    CLASS("terminals", terminals),
    CLASS("mounts", mounts),
    CLASS("processes", processes),
    CLASS("privileges", privileges),
    CLASS("init", init),
    CLASS("files", files),
    CLASS("proc", proc),
    CLASS("network", network),
    CLASS("limits", limits),
    CLASS("neighbours", neighbours),
    CLASS("allowed", allowed),
};

const size_t n_escape_classes = sizeof escape_classes / sizeof escape_classes[0];
