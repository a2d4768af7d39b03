/* The network, and the other ways from one process to another. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/escape/attack/attack.h"

#define UPPER 0xdeadbeef00000000

static int connect_abstract(const char *name)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t n = strlen(name);
    memcpy(addr.sun_path + 1, name, n);
    return fd < 0 ? NOT_TRIED
                  : outcome(connect(fd, (struct sockaddr *)&addr,
                                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)));
}

/* ESCAPE_DIR is the name of the host's socket too. */
static int host_abstract(void)
{
    return connect_abstract(host_dir());
}

static int connect_inet(const char *address, int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, address, &addr.sin_addr);
    return fd < 0 ? NOT_TRIED : outcome(connect(fd, (struct sockaddr *)&addr, sizeof addr));
}

static int host_loopback(void)
{
    const char *port = getenv("ESCAPE_PORT");
    return port ? connect_inet("127.0.0.1", atoi(port)) : NOT_TRIED;
}

static int metadata(void)
{
    return connect_inet("169.254.169.254", 80);
}

static int metadata_6(void)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET6, "fd00:ec2::254", &addr.sin6_addr);
    return fd < 0 ? NOT_TRIED : outcome(connect(fd, (struct sockaddr *)&addr, sizeof addr));
}

/* --- inter-process communication --- */

static int host_shm(void)
{
    const char *key = getenv("ESCAPE_SHM_KEY");
    return key ? outcome(shmget((key_t)atoi(key), 1, 0)) : NOT_TRIED;
}

static int host_queue(void)
{
    const char *name = getenv("ESCAPE_QUEUE");
    return name ? outcome(mq_open(name, O_RDONLY)) : NOT_TRIED;
}

static int host_name(void)
{
    struct utsname name;
    const char *hosts = getenv("ESCAPE_HOSTNAME");
    if (!hosts || uname(&name) < 0) {
        return NOT_TRIED;
    }
    return strcmp(name.nodename, hosts) == 0 ? 0 : ENOENT;
}

static int make_queue(void)
{
    return outcome(mq_open("/escape", O_RDWR | O_CREAT, 0600, NULL));
}

static int hold_key(void)
{
    return outcome(shmget(0x5e5c, 4096, IPC_CREAT | 0666));
}

static int find_key(void)
{
    return outcome(shmget(0x5e5c, 4096, 0));
}

/* Says so and stays until the job is killed. */
static int hold_abstract(void)
{
    static const char name[] = "escape-neighbour";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(addr.sun_path + 1, name, sizeof name - 1);
    if (bind(fd, (struct sockaddr *)&addr,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof name)) < 0 ||
        listen(fd, 4) < 0)
    {
        return errno;
    }
    pid_t pid = fork(); /* keeps it */
    if (pid == 0) {
        alarm(0);
        pause();
        _exit(0);
    }
    return pid < 0 ? NOT_TRIED : 0;
}

static int find_abstract(void)
{
    return connect_abstract("escape-neighbour");
}

#define SOCKET(family, type, protocol) \
    NULL, SYS_socket,                  \
    {                                  \
        family, type, protocol         \
    }

const struct attack net_attacks[] = {
    DOES("host_abstract", host_abstract),
    DOES("host_loopback", host_loopback),
    DOES("metadata", metadata),
    DOES("metadata_6", metadata_6),
    CALL("netlink", SYS_socket, AF_NETLINK, SOCK_RAW, 0),
    CALL("netlink_upper", SYS_socket, UPPER | AF_NETLINK, SOCK_RAW, 0),
    CALL("packet", SYS_socket, AF_PACKET, SOCK_RAW, 0),
    CALL("vsock", SYS_socket, AF_VSOCK, SOCK_STREAM, 0),
    CALL("alg", SYS_socket, AF_ALG, SOCK_SEQPACKET, 0),
    CALL("raw_ip", SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP),
    CALL("sctp", SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP),
    CALL("sctp_by_type", SYS_socket, AF_INET, SOCK_SEQPACKET, 0),
    CALL("dccp", SYS_socket, AF_INET, SOCK_DCCP, 0),
    CALL("mptcp", SYS_socket, AF_INET, SOCK_STREAM, 262),
    CALL("unknown_protocol", SYS_socket, AF_INET6, SOCK_STREAM, 99),
    CALL("socketpair_netlink", SYS_socketpair, AF_NETLINK, SOCK_RAW, 0, 16),
    CALL("socketpair_tipc", SYS_socketpair, AF_TIPC, SOCK_STREAM, 0, 16),
    DOES("host_shm", host_shm),
    DOES("host_queue", host_queue),
    DOES("host_name", host_name),
    DOES("make_queue", make_queue),
    DOES("hold_key", hold_key),
    DOES("find_key", find_key),
    DOES("hold_abstract", hold_abstract),
    DOES("find_abstract", find_abstract),
    {.name = NULL},
};
