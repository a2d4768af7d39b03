#include "backends/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/cleanup.h"

int al_io_read_full(int fd, void *data, size_t n)
{
    char *p = data;
    while (n > 0) {
        ssize_t got = TEMP_FAILURE_RETRY(read(fd, p, n));
        if (got < 0) {
            return -errno;
        }
        if (got == 0) {
            return -ENODATA;
        }
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

int al_io_write_full(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        ssize_t put = TEMP_FAILURE_RETRY(write(fd, p, n));
        if (put < 0) {
            return -errno;
        }
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

ssize_t al_io_read_file(int dirfd, const char *path, char *data, size_t size)
{
    al_auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    size_t len = 0;
    while (len < size) {
        ssize_t got = TEMP_FAILURE_RETRY(read(fd, data + len, size - len));
        if (got < 0) {
            return -errno;
        }
        if (got == 0) {
            data[len] = '\0';
            return (ssize_t)len;
        }
        len += (size_t)got;
    }
    return -EFBIG;
}

int al_io_write_file(int dirfd, const char *path, const char *text)
{
    al_auto_close int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    return al_io_write_full(fd, text, strlen(text));
}

int al_io_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) {
        return -errno;
    }
    int want = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return want == flags || fcntl(fd, F_SETFL, want) == 0 ? 0 : -errno;
}

int al_io_send_fds(int sock, const struct iovec *iov, size_t n_iov, const int *fds, size_t n_fds,
                   bool wait)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(AL_IO_FDS_MAX * sizeof(int))];
    } control = {0};
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = n_iov};
    if (n_fds > AL_IO_FDS_MAX) {
        return -EINVAL;
    }
    if (n_fds > 0) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    return TEMP_FAILURE_RETRY(sendmsg(sock, &msg, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT))) < 0
               ? -errno
               : 0;
}

static size_t take_fds(struct msghdr *msg, int *fds, bool *ret_too_many)
{
    size_t n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            if (n < AL_IO_FDS_MAX) {
                fds[n++] = fd;
            } else {
                close(fd);
                *ret_too_many = true;
            }
        }
    }
    return n;
}

ssize_t al_io_recv_fds(int sock, void *data, size_t size, int *ret_fds, size_t *ret_n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(AL_IO_FDS_MAX * sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = data, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    ssize_t got = TEMP_FAILURE_RETRY(recvmsg(sock, &msg, MSG_CMSG_CLOEXEC));
    if (got < 0) {
        return -errno;
    }
    int fds[AL_IO_FDS_MAX];
    bool bad = (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    size_t n = take_fds(&msg, fds, &bad);
    if (bad) {
        for (size_t i = 0; i < n; i++) {
            close(fds[i]);
        }
        return -EBADMSG;
    }
    memcpy(ret_fds, fds, n * sizeof(int));
    *ret_n_fds = n;
    return got;
}

static int write_iovecs(int fd, const struct iovec *iov, size_t n_iov)
{
    for (size_t i = 0; i < n_iov; i++) {
        int rc = al_io_write_full(fd, iov[i].iov_base, iov[i].iov_len);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int al_io_sealed_memfd(const char *name, const struct iovec *iov, size_t n_iov)
{
    al_auto_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return -errno;
    }
    int rc = write_iovecs(fd, iov, n_iov);
    if (rc < 0) {
        return rc;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0) {
        return -errno;
    }
    return al_steal_fd(&fd);
}
