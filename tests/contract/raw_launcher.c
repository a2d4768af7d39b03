#include "tests/contract/raw_launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "backends/launcher/instance.h"
#include "tests/support/runner.h"

enum al_cell_kind raw_kind = AL_CELL_NATIVE;

void raw_choose_kind(int argc, char **argv)
{
    static const char *const names[AL_CELL_KINDS] = {"native", "local", "bubblewrap", "firejail"};
    size_t i = 0;
    while (argc > 1 && i < AL_CELL_KINDS && strcmp(argv[1], names[i]) != 0) {
        i++;
    }
    if (i == AL_CELL_KINDS) {
        fprintf(stderr, "there are no cells of the kind %s\n", argv[1]);
        exit(2);
    }
    raw_kind = (enum al_cell_kind)i;
}

static const char *launcher_path(void)
{
    const char *path = getenv("AIRLOCK_LAUNCHER");
    return path ? path : "backends/launcher/airlock-launcher"; /* in the test's runfiles */
}

/* Versions are given, so that nothing is asked for them and a start takes no time. */
static const char config_text[] =
    "[local]\nallow_unsafe = yes\n"
    "[cells]\nprestarted = 1\n"
    "[maxima]\nmemory_mb = 512\n"
    "[runtime bash]\nversion = 1\n"
    "argv = /bin/bash {code}\ncode_file = main.sh\n"
    "[runtime python]\nversion = 1\n"
    "argv = /usr/bin/python3 {code}\ncode_file = main.py\nprestart = python\n"
    "[runtime javascript]\nversion = 1\n"
    "argv = /usr/bin/node {code}\ncode_file = main.js\nprestart = node\n"
    "[runtime typescript]\nversion = 1\n"
    "compile = /bin/bash {code}\n" /* a compiler to be told what to do */
    "argv = /bin/bash {output}\n"
    "code_file = main.ts\noutput_file = main.js\n";

static void write_config(const struct raw_launcher *l)
{
    char path[64];
    snprintf(path, sizeof path, "%s/conf", l->data_dir);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(config_text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void take_hello(struct raw_launcher *l)
{
    static uint8_t data[AL_MSG_BYTES_MAX];
    static struct al_msg_hello hello;
    ssize_t got = recv(l->socket, data, sizeof data, 0);
    assert_true(got > 0);
    assert_int_equal(al_msg_decode_hello(data, (size_t)got, &hello), 0);
    for (size_t i = 0; i < AL_CELL_KINDS; i++) {
        if (!hello.cells[i].available) {
            fail_msg("cells of kind %zu: %s", i, hello.cells[i].reason);
        }
    }
    assert_int_equal(hello.n_runtimes, al_test_is_slow() ? 3 : 4); /* there is no node there */
}

pid_t raw_fork_launcher(const struct raw_launcher *l, int theirs)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char number[16], config[64];
        snprintf(number, sizeof number, "%d", theirs);
        snprintf(config, sizeof config, "%s/conf", l->data_dir);
        fcntl(theirs, F_SETFD, 0);
        execl(launcher_path(), launcher_path(), "--socket", number, "--data-dir", l->data_dir,
              "--config", config, NULL);
        _exit(127);
    }
    close(theirs);
    return pid;
}

void raw_start_again(struct raw_launcher *l)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    l->socket = fds[0];
    l->pid = raw_fork_launcher(l, fds[1]);
    take_hello(l);
}

void raw_start(struct raw_launcher *l)
{
    *l = (struct raw_launcher){.data_dir = "/tmp/airlock-raw-XXXXXX"};
    assert_non_null(mkdtemp(l->data_dir));
    write_config(l);
    char name[AL_INSTANCE_NAME_MAX];
    assert_int_equal(al_instance_name(l->data_dir, name, NULL), 0);
    snprintf(l->instance, sizeof l->instance, "airlock-%s", name);
    raw_start_again(l);
}

int raw_wait(struct raw_launcher *l, int64_t ms)
{
    int status = -1;
    for (int64_t end_ms = al_now_ms() + ms; l->pid > 0 && al_now_ms() < end_ms; usleep(2000)) {
        if (waitpid(l->pid, &status, WNOHANG) == l->pid) {
            l->pid = 0;
            return status;
        }
    }
    return -1;
}

int raw_stop(struct raw_launcher *l)
{
    char path[64];
    int status = -1;
    close(l->socket);
    if (l->pid > 0) {
        status = raw_wait(l, 10000);
        assert_int_not_equal(status, -1);
    }
    snprintf(path, sizeof path, "%s/conf", l->data_dir);
    unlink(path);
    rmdir(l->data_dir);
    return status;
}

void raw_kill(struct raw_launcher *l)
{
    kill(l->pid, SIGKILL);
    waitpid(l->pid, NULL, 0);
    l->pid = 0;
    close(l->socket);
}

struct al_job_spec raw_spec(const char *code)
{
    return (struct al_job_spec){.code = {(const uint8_t *)code, strlen(code)}};
}

struct al_msg_spawn raw_message(enum al_cell_kind kind, const char *language)
{
    static unsigned serial;
    const int times = al_test_is_slow() ? 6 : 1;
    struct al_msg_spawn m = {.kind = kind,
                             .workdir = "/sandbox",
                             .quotas = {.cpu_ms = 5000 * times,
                                        .wall_ms = 60000 * times,
                                        .memory_mb = 128,
                                        .pids = 32,
                                        .file_size_mb = 16,
                                        .open_files = 64,
                                        .disk_mb = 16}};
    snprintf(m.job_id, sizeof m.job_id, "%08x%08x", (unsigned)getpid(), serial++);
    snprintf(m.runtime, sizeof m.runtime, "%s@1", language);
    return m;
}

int raw_send(const struct raw_launcher *l, const struct al_msg_spawn *m, int control, int bundle)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    struct iovec iov = {.iov_base = data, .iov_len = al_msg_encode_spawn(m, data)};
    const int fds[] = {control, bundle};
    return al_io_send_fds(l->socket, &iov, 1, fds, 2, true);
}

static int take_answer(int control, bool artifacts, struct al_launched *ret, char *ret_refused)
{
    uint8_t data[1024];
    int fds[AL_IO_FDS_MAX] = {-1, -1, -1, -1, -1};
    size_t n = 0;
    ssize_t got = al_io_recv_fds(control, data, sizeof data, fds, &n);
    assert_true(got > 0);
    struct al_msg_refused refused;
    if (al_msg_decode_refused(data, (size_t)got, &refused) == 0) {
        snprintf(ret_refused, AL_RESULT_ERROR_MAX, "%s", refused.text);
        return -1;
    }
    assert_int_equal(al_msg_decode_empty(AL_MSG_SPAWNED, data, (size_t)got), 0);
    size_t compile = 3 + artifacts;
    assert_in_range(n, compile, compile + 1);
    *ret = (struct al_launched){.control = control,
                                .terminal_fd = -1,
                                .stdin_fd = fds[0],
                                .stdout_fd = fds[1],
                                .stderr_fd = fds[2],
                                .artifacts_fd = artifacts ? fds[3] : -1,
                                .compile_fd = fds[compile]};
    return 0;
}

int raw_run(const struct raw_launcher *l, const struct al_msg_spawn *m, const char *code,
            struct al_launched *ret, char *ret_refused)
{
    int fds[2];
    char ignored[AL_RESULT_ERROR_MAX];
    static const char *const globs[] = {"*"};
    struct al_job_spec spec = raw_spec(code);
    spec.artifacts = globs;
    spec.n_artifacts = m->quotas.artifact_bytes > 0;
    int bundle = al_bundle_create(&spec);
    assert_true(bundle >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(raw_send(l, m, fds[1], bundle), 0);
    close(bundle);
    close(fds[1]);
    int rc =
        take_answer(fds[0], m->quotas.artifact_bytes > 0, ret, ret_refused ? ret_refused : ignored);
    if (rc < 0) {
        close(fds[0]);
    }
    return rc;
}

ssize_t raw_receive(int control, void *data, size_t size, int64_t ms)
{
    struct pollfd pfd = {.fd = control, .events = POLLIN};
    if (poll(&pfd, 1, (int)ms) != 1) {
        return -1;
    }
    ssize_t got = recv(control, data, size, 0);
    return got < 0 ? 0 : got;
}

bool raw_wait_started(int control)
{
    uint8_t data[1024];
    ssize_t got = raw_receive(control, data, sizeof data, 10000);
    return got > 0 && al_msg_decode_empty(AL_MSG_STARTED, data, (size_t)got) == 0;
}

bool raw_wait_exit(int control, struct al_msg_exit *ret)
{
    uint8_t data[1024];
    for (ssize_t got; (got = raw_receive(control, data, sizeof data, 10000)) > 0;) {
        if (al_msg_decode_exit(data, (size_t)got, ret) == 0) {
            return true;
        }
    }
    return false;
}

void raw_assert_works(const struct raw_launcher *l)
{
    struct al_launched job = {.control = -1, .terminal_fd = -1};
    struct al_msg_exit e = {.ran = false};
    char out[8] = "", refused[AL_RESULT_ERROR_MAX];
    struct al_msg_spawn m = raw_message(raw_kind, "bash");
    if (raw_run(l, &m, "echo ok", &job, refused) < 0) {
        fail_msg("refused: %s", refused);
    }
    assert_true(raw_wait_exit(job.control, &e));
    if (!e.ran || e.wait_status != 0) {
        fail_msg("ran %d status %d %s", e.ran, e.wait_status, e.error);
    }
    assert_int_equal(read(job.stdout_fd, out, sizeof out - 1), 3);
    assert_string_equal(out, "ok\n");
    al_launched_close(&job);
}

/* --- what is left --- */

static const char *wanted;
static int found;

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    found += type == FTW_D && strcmp(path + at->base, wanted) == 0;
    return 0;
}

int raw_count_cgroups(const struct raw_launcher *l)
{
    wanted = l->instance;
    found = 0;
    nftw("/sys/fs/cgroup", visit, 8, FTW_PHYS);
    return found;
}

static int least, most;

static int visit_share(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    const char *file = path + at->base;
    int usual = strcmp(file, "cpu.shares") == 0 ? 1024 : strcmp(file, "cpu.weight") == 0 ? 100 : 0;
    const char *below = usual ? strstr(path, wanted) : NULL;
    const char *group = below ? strchr(below, '/') : NULL;
    char text[32];
    if (type == FTW_F && group && group + 1 != file &&
        al_io_read_file(AT_FDCWD, path, text, sizeof text) > 0)
    {
        int percent = (int)(strtol(text, NULL, 10) * 100 / usual);
        least = percent < least ? percent : least;
        most = percent > most ? percent : most;
    }
    return 0;
}

void raw_shares(const struct raw_launcher *l, int *ret_least, int *ret_most)
{
    wanted = l->instance;
    least = INT_MAX;
    most = 0;
    nftw("/sys/fs/cgroup", visit_share, 8, FTW_PHYS);
    *ret_least = least;
    *ret_most = most;
}

bool raw_no_cgroups(const struct raw_launcher *l, int64_t ms)
{
    int64_t end_ms = al_now_ms() + ms;
    while (raw_count_cgroups(l) > 0) {
        if (al_now_ms() > end_ms) {
            return false;
        }
        usleep(10000);
    }
    return true;
}

bool raw_all_gone(const char *text, int64_t ms)
{
    int64_t end_ms = al_now_ms() + ms;
    while (al_test_count_processes(text) > 0) {
        if (al_now_ms() > end_ms) {
            return false;
        }
        usleep(5000);
    }
    return true;
}
