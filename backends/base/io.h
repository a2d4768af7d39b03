/*
 * Input and output on fds: short reads and writes finished, EINTR retried, every new fd CLOEXEC.
 * All return 0 (or what they say) or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Exactly n bytes, or -ENODATA when the end came first. */
int al_io_read_full(int fd, void *data, size_t n);
int al_io_write_full(int fd, const void *data, size_t n);

/* A whole small file below `dirfd` (AT_FDCWD for a path) as a terminated string into `data`; the
 * length, or -EFBIG when it does not fit, or -errno. */
ssize_t al_io_read_file(int dirfd, const char *path, char *data, size_t size);
int al_io_write_file(int dirfd, const char *path, const char *text);

int al_io_set_nonblock(int fd, bool on);

/* One SEQPACKET message with up to AL_IO_FDS_MAX fds. send: -EAGAIN when the socket is full and it
 * is non-blocking or not to be waited for, never SIGPIPE. recv: the length of the message (0: the
 * peer is gone); fds that came are CLOEXEC and put into `ret_fds` (room for AL_IO_FDS_MAX), the
 * caller owns them. A message that was cut, or that carried more fds, is -EBADMSG and its fds are
 * closed. */
#define AL_IO_FDS_MAX 5
int al_io_send_fds(int sock, const struct iovec *iov, size_t n_iov, const int *fds, size_t n_fds,
                   bool wait);
ssize_t al_io_recv_fds(int sock, void *data, size_t size, int *ret_fds, size_t *ret_n_fds);

/* A memfd that holds the iovecs' bytes, sealed against every change. The fd or -errno. */
int al_io_sealed_memfd(const char *name, const struct iovec *iov, size_t n_iov);
