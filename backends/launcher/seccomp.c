/*
 * Theory of operation. The filter is a short list of what a program in a cell has no business with,
 * over a default of allow for all calls that were known when it was written: other layers
 * (namespaces, no capabilities, own uid) already stop most of it, the filter takes the kernel's
 * most attacked entry points out of reach. Younger calls, and sockets, are decided in its head.
 * Short, because its load time is part of every start. Foreign ABIs (32-bit, x32) kill the process:
 * their numbers would slip past. CLONE_PARENT would make children of the launcher, which nobody
 * expects to reap. io_setup answers ENOSYS: all of the machine has one number of such requests,
 * fs.aio-max-nr. clone3 answers ENOSYS, since a filter cannot look into its struct, and libraries
 * then fall back to clone, whose namespace flags are refused. ioctl numbers are compared in their
 * lower 32 bits only, as the kernel does. TIOCSETD would load line disciplines into the kernel.
 * sync and syncfs do nothing: a cell's files are in memory, and the host's disks are not its to
 * keep busy.
 */
#include "backends/launcher/seccomp.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/seccomp_head.h"

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif
#define LOW_32 0xffffffffu

static const int denied[] = {
    /* mounts and namespaces */
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    /* keys, tracing, other processes' memory */
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
    /* large or young attack surface */
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(move_pages),
    SCMP_SYS(migrate_pages),
    SCMP_SYS(vmsplice),
    SCMP_SYS(modify_ldt),
    /* the machine itself */
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(quotactl_fd),
    SCMP_SYS(syslog),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(vhangup),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(nfsservctl),
    SCMP_SYS(personality),
};

static const unsigned long denied_flags[] = {
    CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNS,     CLONE_NEWNET,
    CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_PARENT,
};

/* A program that lowers AL_CORE_LIMIT to 0 is told that it has. */
static int keep_core_limit(scmp_filter_ctx ctx)
{
    int rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(0), SCMP_SYS(setrlimit), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, LOW_32, RLIMIT_CORE));
    return rc < 0 ? rc
                  : seccomp_rule_add(ctx, SCMP_ACT_ERRNO(0), SCMP_SYS(prlimit64), 2,
                                     SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_32, RLIMIT_CORE),
                                     SCMP_A2(SCMP_CMP_NE, 0));
}

static int add_rules(scmp_filter_ctx ctx)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof denied / sizeof denied[0] && rc == 0; i++) {
        rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
    }
    for (size_t i = 0; i < sizeof denied_flags / sizeof denied_flags[0] && rc == 0; i++) {
        rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, denied_flags[i], denied_flags[i]));
    }
    const int missing[] = {SCMP_SYS(clone3), SCMP_SYS(io_setup)};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0] && rc == 0; i++) {
        rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), missing[i], 0);
    }
    const int pretended[] = {SCMP_SYS(sync), SCMP_SYS(syncfs)};
    for (size_t i = 0; i < sizeof pretended / sizeof pretended[0] && rc == 0; i++) {
        rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(0), pretended[i], 0);
    }
    const scmp_datum_t ioctls[] = {TIOCSTI, TIOCLINUX, TIOCSETD};
    for (size_t i = 0; i < sizeof ioctls / sizeof ioctls[0] && rc == 0; i++) {
        rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                              SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_32, ioctls[i]));
    }
    if (rc == 0) {
        rc = keep_core_limit(ctx);
    }
    if (rc == 0) {
        rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socketpair), 1,
                              SCMP_A0(SCMP_CMP_NE, AF_UNIX));
    }
    return rc;
}

static int export_program(scmp_filter_ctx ctx, struct sock_fprog *ret, struct al_err *err)
{
    al_auto_close int fd = memfd_create("seccomp", MFD_CLOEXEC);
    if (fd < 0) {
        return al_err_errno(err, errno, "memfd_create");
    }
    int rc = seccomp_export_bpf(ctx, fd);
    struct stat st;
    if (rc < 0 || fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        return al_err_errno(err, rc < 0 ? -rc : errno, "cannot export the seccomp filter");
    }
    al_auto_free struct sock_filter *filter =
        malloc(AL_SECCOMP_HEAD_MAX * sizeof *filter + (size_t)st.st_size);
    if (!filter) {
        return al_err_errno(err, ENOMEM, "seccomp filter");
    }
    const size_t head = al_seccomp_head(filter);
    rc = al_io_read_full(fd, filter + head, (size_t)st.st_size);
    if (rc < 0) {
        return al_err_errno(err, -rc, "cannot read the seccomp filter");
    }
    ret->len = (unsigned short)(head + (size_t)st.st_size / sizeof *filter);
    ret->filter = al_steal(filter);
    return 0;
}

int al_seccomp_build(struct sock_fprog *ret, struct al_err *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    if (!ctx) {
        return al_err_set(err, AL_ERR_INTERNAL, "libseccomp has no filter for this architecture");
    }
    int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (rc == 0) {
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree, not a chain */
    }
    if (rc == 0) {
        rc = add_rules(ctx);
    }
    rc = rc < 0 ? al_err_errno(err, -rc, "cannot build the seccomp filter")
                : export_program(ctx, ret, err);
    seccomp_release(ctx);
    return rc;
}
