/*
 * The filter, loaded: each call is made twice in a child, without the filter and with it. A refusal
 * that the kernel would have made anyway shows nothing, so the arguments are chosen such that it
 * answers something else (or does it).
 */
#include "backends/launcher/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

#define UPPER_GARBAGE 0xdeadbeef00000000
#define NOWHERE       0x10 /* an address that faults */

struct row {
    const char *name;
    long nr;
    unsigned long args[6];
    int error;  /* with the filter; 0: the same as without */
    bool maybe; /* this kernel may refuse it by itself, in the same way */
};

#define DONE          (-1) /* an error of it: says that it has done what it has not */
#define PASSES        .error = 0
#define NOT_PERMITTED .error = EPERM
#define NO_FAMILY     .error = EAFNOSUPPORT
#define NO_PROTOCOL   .error = EPROTONOSUPPORT

static const struct row rows[] = {
    /* mounts and namespaces */
    {"mount", SYS_mount, {NOWHERE, NOWHERE, NOWHERE}, NOT_PERMITTED},
    {"umount2", SYS_umount2, {NOWHERE}, NOT_PERMITTED},
    {"pivot_root", SYS_pivot_root, {NOWHERE, NOWHERE}, NOT_PERMITTED},
    {"chroot", SYS_chroot, {NOWHERE}, NOT_PERMITTED},
    {"open_tree", SYS_open_tree, {-1, NOWHERE}, NOT_PERMITTED},
    {"move_mount", SYS_move_mount, {-1, NOWHERE, -1, NOWHERE}, NOT_PERMITTED},
    {"fsopen", SYS_fsopen, {NOWHERE}, NOT_PERMITTED},
    {"mount_setattr", SYS_mount_setattr, {-1, NOWHERE, 0, NOWHERE, 32}, NOT_PERMITTED},
    {"unshare_mount", SYS_unshare, {CLONE_NEWNS}, NOT_PERMITTED},
    {"unshare_user", SYS_unshare, {CLONE_NEWUSER}, NOT_PERMITTED},
    {"unshare_of_nothing", SYS_unshare, {0}, NOT_PERMITTED},
    {"setns", SYS_setns, {-1, 0}, NOT_PERMITTED},
    {"clone_user", SYS_clone, {CLONE_NEWUSER | SIGCHLD}, NOT_PERMITTED},
    {"clone_pid", SYS_clone, {CLONE_NEWPID | SIGCHLD}, NOT_PERMITTED},
    {"clone_mount", SYS_clone, {CLONE_NEWNS | SIGCHLD}, NOT_PERMITTED},
    {"clone_net", SYS_clone, {CLONE_NEWNET | SIGCHLD}, NOT_PERMITTED},
    {"clone_ipc", SYS_clone, {CLONE_NEWIPC | SIGCHLD}, NOT_PERMITTED},
    {"clone_uts", SYS_clone, {CLONE_NEWUTS | SIGCHLD}, NOT_PERMITTED},
    {"clone_cgroup", SYS_clone, {CLONE_NEWCGROUP | SIGCHLD}, NOT_PERMITTED},
    {"clone_two", SYS_clone, {CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD}, NOT_PERMITTED},
    {"clone_user_with_garbage",
     SYS_clone,
     {UPPER_GARBAGE | CLONE_NEWUSER | SIGCHLD},
     NOT_PERMITTED},
    {"clone_parent", SYS_clone, {CLONE_PARENT | SIGCHLD}, NOT_PERMITTED},
    {"clone_plain", SYS_clone, {SIGCHLD}, PASSES},
    {"clone3", SYS_clone3, {NOWHERE, 88}, .error = ENOSYS},

    /* keys, tracing, other processes */
    {"keyctl", SYS_keyctl, {9999}, NOT_PERMITTED, .maybe = true},
    {"add_key", SYS_add_key, {NOWHERE}, NOT_PERMITTED, .maybe = true},
    {"request_key", SYS_request_key, {NOWHERE}, NOT_PERMITTED, .maybe = true},
    {"bpf", SYS_bpf, {9999, NOWHERE, 8}, NOT_PERMITTED, .maybe = true},
    {"perf_event_open", SYS_perf_event_open, {NOWHERE}, NOT_PERMITTED, .maybe = true},
    {"ptrace", SYS_ptrace, {PTRACE_TRACEME}, NOT_PERMITTED},
    {"process_vm_readv", SYS_process_vm_readv, {0, 0, 0, 0, 0, 1}, NOT_PERMITTED},
    {"process_vm_writev", SYS_process_vm_writev, {0, 0, 0, 0, 0, 1}, NOT_PERMITTED},
    {"pidfd_getfd", SYS_pidfd_getfd, {-1, 0, 0}, NOT_PERMITTED},
    {"kcmp", SYS_kcmp, {1, 1, 99}, NOT_PERMITTED, .maybe = true},

    /* attack surface */
    {"io_uring_setup", SYS_io_uring_setup, {1, NOWHERE}, NOT_PERMITTED, .maybe = true},
    {"io_uring_enter", SYS_io_uring_enter, {-1}, NOT_PERMITTED, .maybe = true},
    {"io_uring_register", SYS_io_uring_register, {-1}, NOT_PERMITTED, .maybe = true},
    {"io_setup", SYS_io_setup, {1, NOWHERE}, .error = ENOSYS, .maybe = true},
    {"userfaultfd", SYS_userfaultfd, {-1}, NOT_PERMITTED, .maybe = true},
    {"fanotify_init", SYS_fanotify_init, {-1, 0}, NOT_PERMITTED, .maybe = true},
    {"open_by_handle_at", SYS_open_by_handle_at, {-1, NOWHERE, 0}, NOT_PERMITTED},
    {"name_to_handle_at", SYS_name_to_handle_at, {-1, NOWHERE}, NOT_PERMITTED},
#ifdef SYS_modify_ldt
    {"modify_ldt", SYS_modify_ldt, {9999}, NOT_PERMITTED},
#endif
    {"vmsplice", SYS_vmsplice, {-1, NOWHERE, 1}, NOT_PERMITTED},
    {"move_pages", SYS_move_pages, {0, 1, NOWHERE, 0, NOWHERE, 0}, NOT_PERMITTED},

    /* the machine */
    {"reboot", SYS_reboot, {0, 0, 0}, NOT_PERMITTED, .maybe = true},
    {"swapon", SYS_swapon, {NOWHERE, -1}, NOT_PERMITTED, .maybe = true},
    {"kexec_load", SYS_kexec_load, {0, 1, NOWHERE, -1}, NOT_PERMITTED, .maybe = true},
    {"init_module", SYS_init_module, {NOWHERE, 1, NOWHERE}, NOT_PERMITTED, .maybe = true},
    {"quotactl_fd", SYS_quotactl_fd, {-1, 0, 0, 0}, NOT_PERMITTED, .maybe = true},
    {"syslog", SYS_syslog, {99}, NOT_PERMITTED, .maybe = true},
    {"clock_settime", SYS_clock_settime, {0, NOWHERE}, NOT_PERMITTED},
    {"adjtimex", SYS_adjtimex, {NOWHERE}, NOT_PERMITTED},
    {"sethostname", SYS_sethostname, {NOWHERE, -1}, NOT_PERMITTED},
    {"personality", SYS_personality, {0xffffffff}, NOT_PERMITTED},

    /* younger than the filter */
    {"listmount", 458, {NOWHERE, NOWHERE, 1}, .error = ENOSYS, .maybe = true},
    {"open_tree_attr", 467, {-1, NOWHERE, 0, NOWHERE, 32}, .error = ENOSYS, .maybe = true},
    {"next_to_the_last", 450, {0, 0, 0, 1}, PASSES},

    /* terminals */
    {"ioctl_tiocsti", SYS_ioctl, {-1, TIOCSTI, NOWHERE}, NOT_PERMITTED},
    {"ioctl_tiocsti_with_garbage",
     SYS_ioctl,
     {-1, UPPER_GARBAGE | TIOCSTI, NOWHERE},
     NOT_PERMITTED},
    {"ioctl_tioclinux", SYS_ioctl, {-1, 0x541c, NOWHERE}, NOT_PERMITTED},
    {"ioctl_tioclinux_with_garbage",
     SYS_ioctl,
     {-1, UPPER_GARBAGE | 0x541c, NOWHERE},
     NOT_PERMITTED},
    {"ioctl_tiocsetd", SYS_ioctl, {-1, TIOCSETD, NOWHERE}, NOT_PERMITTED},
    {"ioctl_tcgets", SYS_ioctl, {-1, TCGETS, NOWHERE}, PASSES},
    {"ioctl_fionread", SYS_ioctl, {-1, FIONREAD, NOWHERE}, PASSES},

    /* socket families */
    {"socket_unix", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, PASSES},
    {"socket_inet", SYS_socket, {AF_INET, SOCK_STREAM, 0}, PASSES},
    {"socket_inet6", SYS_socket, {AF_INET6, SOCK_DGRAM, 0}, PASSES},
    {"socket_unspec", SYS_socket, {AF_UNSPEC, SOCK_STREAM, 0}, NO_FAMILY, .maybe = true},
    {"socket_ax25", SYS_socket, {AF_AX25, SOCK_STREAM, 0}, NO_FAMILY, .maybe = true},
    {"socket_x25", SYS_socket, {AF_X25, SOCK_STREAM, 0}, NO_FAMILY, .maybe = true},
    {"socket_netlink", SYS_socket, {AF_NETLINK, SOCK_RAW, 0}, NO_FAMILY},
    {"socket_netlink_with_garbage",
     SYS_socket,
     {UPPER_GARBAGE | AF_NETLINK, SOCK_RAW, 0},
     NO_FAMILY},
    {"socket_packet", SYS_socket, {AF_PACKET, SOCK_RAW, 0}, NO_FAMILY, .maybe = true},
    {"socket_alg", SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}, NO_FAMILY, .maybe = true},
    {"socket_vsock", SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, NO_FAMILY, .maybe = true},
    {"socketpair_netlink", SYS_socketpair, {AF_NETLINK, SOCK_RAW, 0, NOWHERE}, NO_FAMILY},
    {"socketpair_unix", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, NOWHERE}, PASSES},
    {"socket_tcp", SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP}, PASSES},
    {"socket_tcp_with_garbage",
     SYS_socket,
     {UPPER_GARBAGE | AF_INET, UPPER_GARBAGE | SOCK_STREAM, UPPER_GARBAGE | IPPROTO_TCP},
     PASSES},
    {"socket_udp", SYS_socket, {AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP}, PASSES},
    {"socket_ping", SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}, PASSES},
    {"socket_unix_seqpacket", SYS_socket, {AF_UNIX, SOCK_SEQPACKET, 0}, PASSES},
    {"socket_mptcp", SYS_socket, {AF_INET, SOCK_STREAM, IPPROTO_MPTCP}, NO_PROTOCOL},
    {"socket_mptcp_with_garbage",
     SYS_socket,
     {AF_INET6, SOCK_STREAM, UPPER_GARBAGE | IPPROTO_MPTCP},
     NO_PROTOCOL},
    {"socket_raw_gre", SYS_socket, {AF_INET, SOCK_RAW, IPPROTO_GRE}, NO_PROTOCOL},
    {"socket_sctp",
     SYS_socket,
     {AF_INET, SOCK_SEQPACKET, 0},
     .error = ESOCKTNOSUPPORT,
     .maybe = true},
    {"socket_negative", SYS_socket, {-1, SOCK_STREAM, 0}, NO_FAMILY, .maybe = true},

    /* nothing of the host's is flushed: an invalid fd goes unnoticed */
    {"syncfs", SYS_syncfs, {-1}, .error = DONE},

    /* ordinary life */
    {"getpid", SYS_getpid, {0}, PASSES},
    {"openat", SYS_openat, {-1, NOWHERE, O_RDONLY}, PASSES},
    {"mmap", SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}, PASSES},
    {"futex", SYS_futex, {NOWHERE}, PASSES},
    {"setsid", SYS_setsid, {0}, PASSES},
    {"memfd_create", SYS_memfd_create, {NOWHERE}, PASSES},
    {"seccomp", SYS_seccomp, {9}, PASSES},
    {"prctl", SYS_prctl, {PR_GET_DUMPABLE}, PASSES},
};

static struct sock_fprog filter;

static void load_filter(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_seccomp, 1, 0, &filter) < 0) {
        _exit(255);
    }
}

/* The wait status of a child that runs `fn`. */
static int run_in_child(bool filtered, void (*fn)(const void *arg), const void *arg)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (filtered) {
            load_filter();
        }
        fn(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* Exits with errno, 0 when the call did what it should. */
static void call(const void *arg)
{
    const struct row *row = arg;
    const unsigned long *a = row->args;
    long rc = syscall(row->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    _exit(rc < 0 ? errno : 0);
}

static void test_row(void **state)
{
    const struct row *row = *state;
    int plain = run_in_child(false, call, row);
    int filtered = run_in_child(true, call, row);
    assert_true(WIFEXITED(plain));
    assert_true(WIFEXITED(filtered));
    int want = row->error == DONE ? 0 : row->error ? row->error : WEXITSTATUS(plain);
    assert_int_equal(WEXITSTATUS(filtered), want);
    if (row->error && !row->maybe) {
        assert_int_not_equal(WEXITSTATUS(plain), row->error);
    }
}

/* --- programs go on working --- */

static void *set_flag(void *arg)
{
    *(bool *)arg = true;
    return NULL;
}

static void live(const void *arg)
{
    (void)arg;
    bool ran = false;
    pthread_t thread;
    if (pthread_create(&thread, NULL, set_flag, &ran) != 0 || pthread_join(thread, NULL) != 0 ||
        !ran) {
        _exit(1);
    }
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(7);
    }
    if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7) {
        _exit(2);
    }
    char *const argv[] = {"sh", "-c", "exit 9", NULL};
    char *const env[] = {NULL};
    if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, env) != 0 ||
        waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 9)
    {
        _exit(3);
    }
    int fds[2];
    _exit(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0 && pipe(fds) == 0 ? 0 : 4);
}

static void test_threads_processes_and_exec__work(void **state)
{
    (void)state;
    int status = run_in_child(true, live, NULL);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- foreign system-call tables --- */

#ifdef __x86_64__
static void call_x32(const void *arg)
{
    (void)arg;
    syscall(0x40000000 | SYS_getpid);
}

static void call_32_bit(const void *arg)
{
    (void)arg;
    long nr = 20; /* getpid */
    __asm__ volatile("int $0x80" : "+a"(nr) : : "memory");
}

static void assert_kills(void (*fn)(const void *arg))
{
    int status = run_in_child(true, fn, NULL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void test_x32__kills(void **state)
{
    (void)state;
    assert_kills(call_x32);
}

static void test_32_bit__kills(void **state)
{
    (void)state;
    if (WIFSIGNALED(run_in_child(false, call_32_bit, NULL))) {
        skip(); /* this kernel has no such calls */
    }
    assert_kills(call_32_bit);
}

static const struct CMUnitTest foreign[] = {
    cmocka_unit_test(test_x32__kills),
    cmocka_unit_test(test_32_bit__kills),
};
#define FOREIGN 2
#else
static const struct CMUnitTest foreign[1];
#define FOREIGN 0
#endif

static void test_build__stays_short(void **state)
{
    (void)state;
    assert_in_range(filter.len, 20, 250); /* loading it is part of every start */
}

#define ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build__stays_short),
        cmocka_unit_test(test_threads_processes_and_exec__work),
    };
    static struct CMUnitTest table[ROWS];
    struct al_err err = {0};
    if (al_seccomp_build(&filter, &err) < 0) {
        print_error("%s\n", err.text);
        return 1;
    }
    for (size_t i = 0; i < ROWS; i++) {
        table[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    int failed = cmocka_run_group_tests_name("seccomp", tests, NULL, NULL);
    failed += _cmocka_run_group_tests("seccomp foreign", foreign, FOREIGN, NULL, NULL);
    failed += cmocka_run_group_tests_name("seccomp rows", table, NULL, NULL);
    free(filter.filter);
    return failed;
}
