/*
 * Theory of operation. Two things need comparisons of ranges and lists, which libseccomp makes long
 * or not at all, and both are decided before its part begins:
 *
 * A call that is younger than the kernel we know is answered as that kernel would, by ENOSYS, which
 * every library knows how to live with. So what a new kernel brings is not open by default. On x86
 * this also takes 512 to 547, at which some kernels served calls of the x32 table.
 *
 * Sockets are UNIX ones, or TCP, UDP and ping over IPv4 or IPv6. The kernel would look for a module
 * for any other family or protocol, and run modprobe as root, outside of the cell, to load it.
 * These arguments are ints: their upper halves are not looked at, as in the kernel.
 *
 * Calls of other tables (arch, x32) pass to libseccomp's part, which kills for them.
 */
#include "backends/launcher/seccomp_head.h"

#include <endian.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define LAST_CALL 450 /* set_mempolicy_home_node, of Linux 6.1; one number everywhere */
#define X32_BIT   0x40000000
#define TYPE_MASK 0xf

#define LOW_HALF    (__BYTE_ORDER == __BIG_ENDIAN ? sizeof(uint32_t) : 0)
#define ARGUMENT(n) (offsetof(struct seccomp_data, args[n]) + LOW_HALF)

/* Where each instruction lies. */
enum {
    LOAD_ARCH,
    IS_NATIVE,
    LOAD_NUMBER,
    IS_X32,
    IS_YOUNG,
    IS_SOCKET,
    LOAD_FAMILY,
    IS_UNIX,
    IS_INET,
    IS_INET6,
    LOAD_PROTOCOL,
    IS_DEFAULT,
    IS_TCP,
    IS_UDP,
    IS_ICMP,
    IS_ICMP6,
    LOAD_TYPE,
    MASK_TYPE,
    IS_STREAM,
    IS_DATAGRAM,
    IS_RAW, /* the kernel asks for a capability */
    REFUSE_FAMILY,
    REFUSE_PROTOCOL,
    REFUSE_TYPE,
    REFUSE_CALL,
    END,
};

#define LOAD(here, offset) [here] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define TEST(here, test, value, yes, no) \
    [here] = BPF_JUMP(BPF_JMP | (test) | BPF_K, value, (yes) - (here)-1, (no) - (here)-1)
#define REFUSE(here, error) [here] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

size_t al_seccomp_head(struct sock_filter ret[AL_SECCOMP_HEAD_MAX])
{
    const struct sock_filter head[END] = {
        LOAD(LOAD_ARCH, offsetof(struct seccomp_data, arch)),
        TEST(IS_NATIVE, BPF_JEQ, seccomp_arch_native(), LOAD_NUMBER, END),
        LOAD(LOAD_NUMBER, offsetof(struct seccomp_data, nr)),
        TEST(IS_X32, BPF_JGE, X32_BIT, END, IS_YOUNG),
        TEST(IS_YOUNG, BPF_JGT, LAST_CALL, REFUSE_CALL, IS_SOCKET),
        TEST(IS_SOCKET, BPF_JEQ, SYS_socket, LOAD_FAMILY, END),

        LOAD(LOAD_FAMILY, ARGUMENT(0)),
        TEST(IS_UNIX, BPF_JEQ, AF_UNIX, END, IS_INET),
        TEST(IS_INET, BPF_JEQ, AF_INET, LOAD_PROTOCOL, IS_INET6),
        TEST(IS_INET6, BPF_JEQ, AF_INET6, LOAD_PROTOCOL, REFUSE_FAMILY),

        LOAD(LOAD_PROTOCOL, ARGUMENT(2)),
        TEST(IS_DEFAULT, BPF_JEQ, 0, LOAD_TYPE, IS_TCP),
        TEST(IS_TCP, BPF_JEQ, IPPROTO_TCP, LOAD_TYPE, IS_UDP),
        TEST(IS_UDP, BPF_JEQ, IPPROTO_UDP, LOAD_TYPE, IS_ICMP),
        TEST(IS_ICMP, BPF_JEQ, IPPROTO_ICMP, LOAD_TYPE, IS_ICMP6),
        TEST(IS_ICMP6, BPF_JEQ, IPPROTO_ICMPV6, LOAD_TYPE, REFUSE_PROTOCOL),

        LOAD(LOAD_TYPE, ARGUMENT(1)),
        [MASK_TYPE] = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TYPE_MASK),
        TEST(IS_STREAM, BPF_JEQ, SOCK_STREAM, END, IS_DATAGRAM),
        TEST(IS_DATAGRAM, BPF_JEQ, SOCK_DGRAM, END, IS_RAW),
        TEST(IS_RAW, BPF_JEQ, SOCK_RAW, END, REFUSE_TYPE),

        REFUSE(REFUSE_FAMILY, EAFNOSUPPORT),
        REFUSE(REFUSE_PROTOCOL, EPROTONOSUPPORT),
        REFUSE(REFUSE_TYPE, ESOCKTNOSUPPORT),
        REFUSE(REFUSE_CALL, ENOSYS),
    };
    _Static_assert(END <= AL_SECCOMP_HEAD_MAX, "the head fits");
    memcpy(ret, head, sizeof head);
    return END;
}
