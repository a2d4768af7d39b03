#include "backends/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct pair {
    int a, b;
};

static struct pair make_sockets(void)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    return (struct pair){fds[0], fds[1]};
}

static void close_pair(struct pair p)
{
    close(p.a);
    close(p.b);
}

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

/* --- whole reads and writes --- */

static void test_read_full__joins_pieces(void **state)
{
    (void)state;
    int fds[2];
    char got[7] = "";
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(al_io_write_full(fds[1], "abc", 3), 0);
    assert_int_equal(al_io_write_full(fds[1], "def", 3), 0);
    assert_int_equal(al_io_read_full(fds[0], got, 6), 0);
    assert_string_equal(got, "abcdef");
    assert_int_equal(al_io_write_full(fds[1], "gh", 2), 0);
    close(fds[1]);
    assert_int_equal(al_io_read_full(fds[0], got, 3), -ENODATA);
    assert_int_equal(al_io_read_full(fds[0], got, 0), 0);
    close(fds[0]);
}

static void test_write_full__says_why_not(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    close(fds[0]);
    assert_int_equal(al_io_write_full(fds[1], "a", 1), -EPIPE);
    close(fds[1]);
    assert_int_equal(al_io_write_full(-1, "a", 1), -EBADF);
    char c;
    assert_int_equal(al_io_read_full(-1, &c, 1), -EBADF);
}

/* --- small files --- */

static void write_temporary(char *path, const char *text)
{
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(al_io_write_full(fd, text, strlen(text)), 0);
    close(fd);
}

static void test_read_file__needs_room_for_the_terminator(void **state)
{
    (void)state;
    char path[] = "/tmp/io-test-XXXXXX", text[8];
    write_temporary(path, "1234567");
    assert_int_equal(al_io_read_file(AT_FDCWD, path, text, 8), 7);
    assert_string_equal(text, "1234567");
    assert_int_equal(al_io_read_file(AT_FDCWD, path, text, 7), -EFBIG);
    assert_int_equal(al_io_read_file(AT_FDCWD, path, text, 3), -EFBIG);
    unlink(path);
    assert_int_equal(al_io_read_file(AT_FDCWD, path, text, 8), -ENOENT);
}

static void test_write_file__replaces_nothing_it_was_not_told_to(void **state)
{
    (void)state;
    char path[] = "/tmp/io-test-XXXXXX", text[8];
    write_temporary(path, "abc");
    assert_int_equal(al_io_write_file(AT_FDCWD, path, "xy"), 0);
    assert_int_equal(al_io_read_file(AT_FDCWD, path, text, sizeof text), 3);
    assert_string_equal(text, "xyc");
    unlink(path);
    assert_int_equal(al_io_write_file(AT_FDCWD, path, "xy"), -ENOENT);
}

static void test_set_nonblock__both_ways(void **state)
{
    (void)state;
    struct pair p = make_sockets();
    char c;
    assert_int_equal(al_io_set_nonblock(p.a, true), 0);
    assert_int_equal(al_io_set_nonblock(p.a, true), 0);
    assert_true(read(p.a, &c, 1) < 0 && errno == EAGAIN);
    assert_int_equal(al_io_set_nonblock(p.a, false), 0);
    assert_false(fcntl(p.a, F_GETFL) & O_NONBLOCK);
    assert_int_equal(al_io_set_nonblock(-1, true), -EBADF);
    close_pair(p);
}

/* --- messages with fds --- */

static int send_text(int sock, const char *text, const int *fds, size_t n)
{
    struct iovec iov = {.iov_base = (void *)text, .iov_len = strlen(text)};
    return al_io_send_fds(sock, &iov, 1, fds, n, true);
}

static void test_fds__arrive_as_others_and_cloexec(void **state)
{
    (void)state;
    struct pair p = make_sockets();
    char text[8] = "";
    int sent[AL_IO_FDS_MAX], fds[AL_IO_FDS_MAX];
    size_t n = 99;
    for (size_t i = 0; i < AL_IO_FDS_MAX; i++) {
        sent[i] = p.b;
    }
    assert_int_equal(send_text(p.a, "hello", sent, AL_IO_FDS_MAX), 0);
    assert_int_equal(al_io_recv_fds(p.b, text, sizeof text, fds, &n), 5);
    assert_int_equal(n, AL_IO_FDS_MAX);
    assert_string_equal(text, "hello");
    for (size_t i = 0; i < n; i++) {
        assert_int_not_equal(fds[i], p.b);
        assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
        close(fds[i]);
    }
    close_pair(p);
}

static void test_fds__none_and_the_end(void **state)
{
    (void)state;
    struct pair p = make_sockets();
    char text[8];
    int fds[AL_IO_FDS_MAX];
    size_t n = 99;
    assert_int_equal(send_text(p.a, "hello", NULL, 0), 0);
    assert_int_equal(al_io_recv_fds(p.b, text, sizeof text, fds, &n), 5);
    assert_int_equal(n, 0);
    close(p.a);
    assert_int_equal(al_io_recv_fds(p.b, text, sizeof text, fds, &n), 0);
    assert_int_equal(n, 0);
    close(p.b);
}

static void test_send_fds__more_than_the_maximum(void **state)
{
    (void)state;
    struct pair p = make_sockets();
    int fds[AL_IO_FDS_MAX + 1] = {0};
    assert_int_equal(send_text(p.a, "x", fds, AL_IO_FDS_MAX + 1), -EINVAL);
    close_pair(p);
}

static void test_recv_fds__cut_message_leaks_nothing(void **state)
{
    (void)state;
    struct pair p = make_sockets();
    char text[4];
    int fds[AL_IO_FDS_MAX], sent[] = {p.a, p.b};
    size_t n = 99;
    int before = count_fds();
    assert_int_equal(send_text(p.a, "hello", sent, 2), 0);
    assert_int_equal(al_io_recv_fds(p.b, text, sizeof text, fds, &n), -EBADMSG);
    assert_int_equal(count_fds(), before);
    close_pair(p);
}

static void test_recv_fds__more_fds_than_the_maximum_leak_nothing(void **state)
{
    (void)state;
    struct pair p = make_sockets();
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE((AL_IO_FDS_MAX + 3) * sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = "x", .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS,
                          .cmsg_len = CMSG_LEN((AL_IO_FDS_MAX + 3) * sizeof(int))};
    for (size_t i = 0; i < AL_IO_FDS_MAX + 3; i++) {
        memcpy(CMSG_DATA(c) + i * sizeof(int), &p.a, sizeof(int));
    }
    char text[4];
    int fds[AL_IO_FDS_MAX];
    size_t n = 99;
    int before = count_fds();
    assert_int_equal(sendmsg(p.a, &msg, 0), 1);
    assert_int_equal(al_io_recv_fds(p.b, text, sizeof text, fds, &n), -EBADMSG);
    assert_int_equal(count_fds(), before);
    close_pair(p);
}

static void test_send_fds__full_and_gone(void **state)
{
    (void)state;
    struct pair p = make_sockets();
    struct iovec iov = {.iov_base = "filler", .iov_len = 6};
    int rc;
    while ((rc = al_io_send_fds(p.a, &iov, 1, NULL, 0, false)) == 0) {
    }
    assert_int_equal(rc, -EAGAIN); /* though the socket itself would wait */
    assert_int_equal(al_io_set_nonblock(p.a, true), 0);
    assert_int_equal(send_text(p.a, "x", NULL, 0), -EAGAIN);
    close(p.b);
    rc = send_text(p.a, "x", NULL, 0);
    assert_true(rc == -EPIPE || rc == -ECONNRESET); /* the latter: its queue was not empty */
    close(p.a);
}

/* --- sealed memory --- */

static void test_sealed_memfd__holds_the_bytes_and_nobody_changes_them(void **state)
{
    (void)state;
    const struct iovec iov[] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    char text[6] = "";
    int fd = al_io_sealed_memfd("test", iov, 3);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(pread(fd, text, 5, 0), 5);
    assert_string_equal(text, "abcde");
    assert_true(pwrite(fd, "x", 1, 0) < 0 && errno == EPERM);
    assert_true(ftruncate(fd, 1) < 0 && errno == EPERM);
    assert_true(ftruncate(fd, 100) < 0 && errno == EPERM);
    assert_ptr_equal(mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_true(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0);
    close(fd);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_full__joins_pieces),
        cmocka_unit_test(test_write_full__says_why_not),
        cmocka_unit_test(test_read_file__needs_room_for_the_terminator),
        cmocka_unit_test(test_write_file__replaces_nothing_it_was_not_told_to),
        cmocka_unit_test(test_set_nonblock__both_ways),
        cmocka_unit_test(test_fds__arrive_as_others_and_cloexec),
        cmocka_unit_test(test_fds__none_and_the_end),
        cmocka_unit_test(test_send_fds__more_than_the_maximum),
        cmocka_unit_test(test_recv_fds__cut_message_leaks_nothing),
        cmocka_unit_test(test_recv_fds__more_fds_than_the_maximum_leak_nothing),
        cmocka_unit_test(test_send_fds__full_and_gone),
        cmocka_unit_test(test_sealed_memfd__holds_the_bytes_and_nobody_changes_them),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
