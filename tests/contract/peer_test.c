/*
 * An airlockd that lies: whatever comes over the launcher's sockets, it refuses or ends, no job
 * gets more than it may have, and the other jobs go on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "tests/contract/raw_launcher.h"
#include "tests/support/runner.h"

#define MARK "4217.5"

static struct raw_launcher shared;

static int start_shared(void **state)
{
    (void)state;
    raw_start(&shared);
    return 0;
}

static int stop_shared(void **state)
{
    (void)state;
    int status = raw_stop(&shared);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* --- messages that end it --- */

struct fatal_row {
    const char *name;
    size_t n_fds;
    size_t cut;     /* bytes left out at the end of a good SPAWN */
    size_t grow;    /* bytes added */
    int other_type; /* instead of SPAWN; 0: as it is */
};

static const struct fatal_row fatal_rows[] = {
    {"fatal/no_fds", 0, 0, 0, 0},
    {"fatal/one_fd", 1, 0, 0, 0},
    {"fatal/three_fds", 3, 0, 0, 0},
    {"fatal/four_fds", 4, 0, 0, 0},
    {"fatal/cut", 2, 1, 0, 0},
    {"fatal/trailing_byte", 2, 0, 1, 0},
    {"fatal/longer_than_any_message", 2, 0, AL_MSG_BYTES_MAX, 0},
    {"fatal/hello", 2, 0, 0, AL_MSG_HELLO},
    {"fatal/kill", 2, 0, 0, AL_MSG_KILL},
    {"fatal/unknown_type", 2, 0, 0, 77},
};

static void test_fatal(void **state)
{
    const struct fatal_row *row = *state;
    static uint8_t data[2 * AL_MSG_BYTES_MAX];
    struct raw_launcher l;
    struct al_launched job;
    raw_start(&l);
    struct al_msg_spawn m = raw_message(raw_kind, "bash");
    assert_int_equal(raw_run(&l, &m, "sleep " MARK, &job, NULL), 0);
    assert_true(raw_wait_started(job.control));
    m = raw_message(raw_kind, "bash");
    size_t len = al_msg_encode_spawn(&m, data) - row->cut + row->grow;
    if (row->other_type) {
        data[0] = (uint8_t)row->other_type;
    }
    const int fds[] = {l.socket, l.socket, l.socket, l.socket};
    struct iovec iov = {.iov_base = data, .iov_len = len};
    assert_int_equal(al_io_send_fds(l.socket, &iov, 1, fds, row->n_fds, true), 0);
    int status = raw_wait(&l, 5000);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_true(raw_all_gone(MARK, 1000));
    assert_int_equal(raw_count_cgroups(&l), 0);
    al_launched_close(&job);
    raw_stop(&l);
}

/* Nobody reads at the other end, and the launcher's is the last reference: its close would wait. */
static void test_control__lingers(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_job_spec spec = raw_spec("sleep " MARK);
    struct al_msg_spawn m = raw_message(raw_kind, "bash");
    const struct linger linger = {.l_onoff = 1, .l_linger = 60};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    char block[65536] = "";
    raw_start(&l);
    int bundle = al_bundle_create(&spec);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int control = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(connect(control, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(setsockopt(control, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    while (send(control, block, sizeof block, MSG_DONTWAIT) > 0) {
    }
    assert_int_equal(raw_send(&l, &m, control, bundle), 0);
    close(control);
    int status = raw_wait(&l, 3000);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    close(listener);
    close(bundle);
    raw_stop(&l);
}

/* --- jobs that are refused --- */

static void set_runtime(struct al_msg_spawn *m, const char *runtime)
{
    snprintf(m->runtime, sizeof m->runtime, "%s", runtime);
}

static void set_workdir(struct al_msg_spawn *m, const char *workdir)
{
    snprintf(m->workdir, sizeof m->workdir, "%s", workdir);
}

static void set_memory(struct al_msg_spawn *m, const char *value)
{
    m->quotas.memory_mb = (uint32_t)strtoul(value, NULL, 10);
}

static void set_wall(struct al_msg_spawn *m, const char *value)
{
    m->quotas.wall_ms = strtol(value, NULL, 10);
}

struct refused_row {
    const char *name;
    void (*set)(struct al_msg_spawn *m, const char *value);
    const char *value;
    const char *text; /* NULL: accepted */
};

#define WORKDIR "workdir is not below /sandbox or /tmp"
#define MAXIMUM "a quota is above its configured maximum"

static const struct refused_row refused_rows[] = {
    {"runtime_unknown", set_runtime, "perl@5", "no runtime perl@5"},
    {"runtime_without_version", set_runtime, "bash", "no runtime bash"},
    {"runtime_version_prefix", set_runtime, "bash@", "no runtime bash@"},
    {"runtime_empty", set_runtime, "", "no runtime "},
    {"runtime_path", set_runtime, "/bin/sh@1", "no runtime /bin/sh@1"},
    {"workdir_root", set_workdir, "/", WORKDIR},
    {"workdir_empty", set_workdir, "", WORKDIR},
    {"workdir_relative", set_workdir, "sandbox", WORKDIR},
    {"workdir_elsewhere", set_workdir, "/etc", WORKDIR},
    {"workdir_only_begins_alike", set_workdir, "/sandboxed", WORKDIR},
    {"workdir_tmp_only_begins_alike", set_workdir, "/tmpfs", WORKDIR},
    {"workdir_up", set_workdir, "/sandbox/..", WORKDIR},
    {"workdir_up_and_away", set_workdir, "/sandbox/../etc", WORKDIR},
    {"workdir_up_in_the_middle", set_workdir, "/sandbox/a/../../../etc", WORKDIR},
    {"workdir_dot", set_workdir, "/tmp/.", WORKDIR},
    {"workdir_double_slash", set_workdir, "/sandbox//a", WORKDIR},
    {"workdir_trailing_slash", set_workdir, "/sandbox/", WORKDIR},
    {"workdir_hidden_names_are_fine", set_workdir, "/sandbox/..a/.b", NULL},
    {"memory_at_the_maximum", set_memory, "512", NULL},
    {"memory_above", set_memory, "513", MAXIMUM},
    {"wall_above", set_wall, "3600001", MAXIMUM},
};

static void test_refused(void **state)
{
    const struct refused_row *row = *state;
    struct al_launched job;
    char text[AL_RESULT_ERROR_MAX] = "";
    struct al_msg_spawn m = raw_message(raw_kind, "bash");
    row->set(&m, row->value);
    int rc = raw_run(&shared, &m, "true", &job, text);
    if (row->text) {
        assert_int_equal(rc, -1);
        assert_string_equal(text, row->text);
    } else {
        struct al_msg_exit e;
        assert_int_equal(rc, 0);
        assert_true(raw_wait_exit(job.control, &e));
        assert_true(e.ran);
        al_launched_close(&job);
    }
    raw_assert_works(&shared);
}

/* --- fds that are not what they should be --- */

static void assert_bundle_refused(int bundle)
{
    int fds[2];
    uint8_t data[1024];
    struct al_msg_refused refused;
    struct al_msg_spawn m = raw_message(raw_kind, "bash");
    assert_true(bundle >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(raw_send(&shared, &m, fds[1], bundle), 0);
    close(bundle);
    close(fds[1]);
    ssize_t got = raw_receive(fds[0], data, sizeof data, 5000);
    assert_true(got > 0);
    assert_int_equal(al_msg_decode_refused(data, (size_t)got, &refused), 0);
    assert_string_equal(refused.text, "the bundle is not a sealed memfd");
    close(fds[0]);
}

static void test_bundle__not_a_sealed_memfd(void **state)
{
    (void)state;
    assert_bundle_refused(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
    assert_bundle_refused(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    assert_bundle_refused(eventfd(0, EFD_CLOEXEC));
    raw_assert_works(&shared);
}

static int count_bundles_held(void)
{
    char path[64], link[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)shared.pid);
    al_auto_closedir DIR *fds = opendir(path);
    int n = 0;
    assert_non_null(fds);
    for (const struct dirent *e; (e = readdir(fds)) != NULL;) {
        ssize_t len = readlinkat(dirfd(fds), e->d_name, link, sizeof link - 1);
        link[len > 0 ? len : 0] = '\0';
        n += strncmp(link, "/memfd:airlock-job", strlen("/memfd:airlock-job")) == 0;
    }
    return n;
}

/* What a request brings along may be large, and its program may live long. */
static void test_bundle__is_let_go_once_it_is_unpacked(void **state)
{
    (void)state;
    static const struct {
        const char *language;
        const char *code;
        uint64_t artifact_bytes; /* 0: none are wanted; else the collector reads the globs */
        int held;
    } rows[] = {
        {"bash", "sleep " MARK, 0, 0},
        {"typescript", "echo sleep " MARK " > main.js", 0, 0},
        {"bash", "sleep " MARK, 1000, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct al_msg_spawn m = raw_message(raw_kind, rows[i].language);
        struct al_launched job;
        char refused[256];
        m.quotas.artifact_bytes = rows[i].artifact_bytes;
        assert_int_equal(raw_run(&shared, &m, rows[i].code, &job, refused), 0);
        int64_t deadline_ms = al_now_ms() + 10000;
        while (al_test_count_processes(MARK) == 0 && al_now_ms() < deadline_ms) {
            usleep(10000);
        }
        assert_int_equal(count_bundles_held(), rows[i].held);
        al_launched_close(&job);
        assert_true(raw_all_gone(MARK, 5000));
        for (int k = 0; k < 500 && count_bundles_held() > 0; k++) {
            usleep(10000); /* the rest of its cell is yet to be reaped */
        }
        assert_int_equal(count_bundles_held(), 0);
    }
}

/* A control "socket" on which nothing can be answered: the job dies, nothing else does. */
static void test_control__not_a_socket(void **state)
{
    (void)state;
    struct al_job_spec spec = raw_spec("sleep " MARK);
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    const int controls[] = {pipes[0], pipes[1], eventfd(0, EFD_CLOEXEC),
                            open("/etc/passwd", O_RDONLY | O_CLOEXEC),
                            open("/", O_PATH | O_CLOEXEC)};
    int bundle = al_bundle_create(&spec);
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        struct al_msg_spawn m = raw_message(raw_kind, "bash");
        assert_int_equal(raw_send(&shared, &m, controls[i], bundle), 0);
        close(controls[i]);
        raw_assert_works(&shared);
    }
    close(bundle);
    assert_true(raw_all_gone(MARK, 1000));
}

static void fill_socket(int fd)
{
    char block[4096] = "";
    while (send(fd, block, sizeof block, MSG_DONTWAIT) > 0) {
    }
    while (send(fd, block, 1, MSG_DONTWAIT) > 0) {
    }
}

/* The launcher's answers find no room, on a socket that would wait for it. */
static void test_control__full(void **state)
{
    (void)state;
    struct al_job_spec spec = raw_spec("sleep " MARK);
    int bundle = al_bundle_create(&spec);
    static const char *const runtimes[] = {"bash@1", "perl@5"}; /* started, refused */
    for (size_t i = 0; i < 2; i++) {
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        fill_socket(fds[1]);
        struct al_msg_spawn m = raw_message(raw_kind, "bash");
        set_runtime(&m, runtimes[i]);
        assert_int_equal(raw_send(&shared, &m, fds[1], bundle), 0);
        int64_t start_ms = al_now_ms();
        raw_assert_works(&shared);
        assert_true(al_now_ms() - start_ms < 2000);
        assert_true(raw_all_gone(MARK, 1000));
        close(fds[0]);
        close(fds[1]);
    }
    close(bundle);
}

static void test_control__nonsense_kills_the_job(void **state)
{
    (void)state;
    static const uint8_t words[][6] = {{AL_MSG_SPAWN, 0},
                                       {AL_MSG_KILL, 0, 0},
                                       {AL_MSG_SIGNAL, 0, 0, 0, 0, 0},
                                       {AL_MSG_SIGNAL, 0, 64},
                                       {0},
                                       {AL_MSG_EXIT, 0}};
    static const size_t lens[] = {2, 3, 6, 6, 1, 2};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        struct al_launched job;
        struct al_msg_spawn m = raw_message(raw_kind, "bash");
        assert_int_equal(raw_run(&shared, &m, "sleep " MARK, &job, NULL), 0);
        assert_true(raw_wait_started(job.control));
        assert_int_equal(send(job.control, words[i], lens[i], 0), lens[i]);
        assert_true(raw_all_gone(MARK, 1000));
        al_launched_close(&job);
    }
    raw_assert_works(&shared);
}

static void test_signals__reach_that_job_only(void **state)
{
    (void)state;
    struct al_launched job;
    struct al_msg_exit e;
    uint8_t data[16];
    struct al_msg_spawn m = raw_message(raw_kind, "bash");
    assert_int_equal(raw_run(&shared, &m, "sleep " MARK, &job, NULL), 0);
    assert_true(raw_wait_started(job.control));
    const struct al_msg_signal sig = {.signo = SIGKILL};
    size_t n = al_msg_encode_signal(&sig, data);
    assert_int_equal(send(job.control, data, n, 0), n);
    assert_true(raw_wait_exit(job.control, &e));
    assert_true(e.ran);
    assert_int_equal(e.wait_status, SIGKILL);
    assert_false(e.killed);
    al_launched_close(&job);
    raw_assert_works(&shared);
}

/* --- bundles that lie; read inside the cell, so they cost their own job only --- */

struct item {
    uint32_t type, mode, name_len, terminated;
    uint64_t data_len;
};

struct bundle_row {
    const char *name;
    const char *path; /* of a file; NULL: the bytes are rubbish */
    const char *error;
};

#define X10(s) s s s s s s s s s s

static const struct bundle_row bundle_rows[] = {
    {"bundle/rubbish", NULL, "the job's bundle is malformed"},
    {"bundle/up", "../x", "cannot make the file '../x': Invalid cross-device link"},
    {"bundle/up_in_the_middle", "a/../../x",
     "cannot make the file 'a/../../x': Invalid cross-device link"},
    {"bundle/absolute", "/tmp/x",
     "cannot make the folder of file '/tmp/x': No such file or directory"},
    {"bundle/empty", "", "cannot make the file '': No such file or directory"},
    {"bundle/the_code_itself", "main.sh", "cannot make the file 'main.sh': File exists"},
    {"bundle/name_too_long", X10(X10("abc")), "cannot make the file '" X10("abc")},
    {"bundle/umlauts_are_cut_between_characters", X10(X10("\xc3\xbc\xc3\xbc")),
     "cannot make the file '\xc3\xbc"},
};

static int make_bundle(const struct bundle_row *row)
{
    const struct item code = {AL_BUNDLE_CODE, 0644, 0, 0, 4};
    struct item file = {AL_BUNDLE_FILE, 0644, 0, 0, 1};
    static const char rubbish[] = "\xff\xff\xff\xff rubbish";
    const struct iovec bad = {(void *)rubbish, sizeof rubbish};
    if (!row->path) {
        return al_io_sealed_memfd("x", &bad, 1);
    }
    file.name_len = (uint32_t)strlen(row->path);
    const struct iovec iov[] = {
        {(void *)&code, sizeof code},           {"", 1}, {"true", 4}, {&file, sizeof file},
        {(void *)row->path, file.name_len + 1}, {"x", 1}};
    return al_io_sealed_memfd("x", iov, 6);
}

static bool is_whole_utf8(const char *text)
{
    size_t n = strlen(text);
    return n == 0 || (unsigned char)text[n - 1] != 0xc3;
}

static void test_bundle(void **state)
{
    const struct bundle_row *row = *state;
    int fds[2];
    struct al_msg_exit e;
    struct al_msg_spawn m = raw_message(raw_kind, "bash");
    int bundle = make_bundle(row);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(raw_send(&shared, &m, fds[1], bundle), 0);
    close(bundle);
    close(fds[1]);
    assert_true(raw_wait_exit(fds[0], &e));
    close(fds[0]);
    assert_false(e.ran);
    if (strncmp(e.error, row->error, strlen(row->error)) != 0) {
        fail_msg("%s", e.error);
    }
    assert_true(is_whole_utf8(e.error));
    raw_assert_works(&shared);
}

/* --- what arrives while a compile step has ended and nobody has looked yet --- */

/* A compile step that ends at once, and a program that does not. */
#define COMPILES "printf 'echo started; sleep " MARK "' > main.js"

/* A caller may send one as soon as it has the job, and may not know when exec has happened. */
static void test_signals__before_exec_are_not_lost(void **state)
{
    (void)state;
    uint8_t data[16];
    const struct al_msg_signal sig = {.signo = SIGTERM};
    size_t n = al_msg_encode_signal(&sig, data);
    for (int i = 0; i < 10; i++) {
        struct al_launched job;
        struct al_msg_exit e;
        struct al_msg_spawn m = raw_message(i % 2 ? AL_CELL_LOCAL : raw_kind, "bash");
        assert_int_equal(raw_run(&shared, &m, "exec sleep " MARK, &job, NULL), 0);
        assert_int_equal(send(job.control, data, n, 0), n);
        assert_true(raw_wait_started(job.control));
        assert_true(raw_wait_exit(job.control, &e));
        assert_int_equal(e.wait_status, SIGTERM);
        al_launched_close(&job);
    }
}

/* A launcher that looks late must not take the program's time for the cell's. */
static void test_figures__begin_at_exec(void **state)
{
    (void)state;
    struct al_launched job;
    struct al_msg_exit e;
    struct al_msg_spawn m = raw_message(raw_kind, "python");
    assert_int_equal(
        raw_run(&shared, &m, "import time\nwhile time.process_time() < 0.2: pass\n", &job, NULL),
        0);
    kill(shared.pid, SIGSTOP);
    usleep(800000);
    kill(shared.pid, SIGCONT);
    assert_true(raw_wait_exit(job.control, &e));
    assert_true(e.ran);
    assert_in_range(e.cpu_us, 190000, 800000);
    assert_in_range(e.duration_us, 190000, 5000000);
    al_launched_close(&job);
}

static void test_kill__as_the_compile_step_ends(void **state)
{
    (void)state;
    struct al_launched job;
    struct al_msg_exit e;
    uint8_t data[8];
    struct al_msg_spawn m = raw_message(raw_kind, "typescript");
    assert_int_equal(raw_run(&shared, &m, "read x; " COMPILES, &job, NULL), 0);
    assert_true(raw_wait_started(job.control));
    kill(shared.pid, SIGSTOP);
    size_t n = al_msg_encode_empty(AL_MSG_KILL, data);
    assert_int_equal(send(job.control, data, n, 0), n);
    al_close_fd(&job.stdin_fd); /* it goes on, and ends while the launcher does not look */
    usleep(200000);
    kill(shared.pid, SIGCONT);
    assert_true(raw_wait_exit(job.control, &e));
    assert_true(e.killed);
    assert_false(e.ran);
    assert_true(raw_all_gone(MARK, 1000));
    al_launched_close(&job);
}

static void test_wall__as_the_compile_step_ends(void **state)
{
    (void)state;
    struct al_launched job;
    struct al_msg_exit e;
    struct al_msg_spawn m = raw_message(raw_kind, "typescript");
    m.quotas.wall_ms = 300;
    assert_int_equal(raw_run(&shared, &m, "read x; " COMPILES, &job, NULL), 0);
    assert_true(raw_wait_started(job.control));
    kill(shared.pid, SIGSTOP);
    usleep(400000); /* the timer comes first */
    al_close_fd(&job.stdin_fd);
    usleep(200000);
    kill(shared.pid, SIGCONT);
    assert_true(raw_wait_exit(job.control, &e));
    assert_int_equal(e.limit, AL_LIMIT_WALL);
    assert_true(raw_all_gone(MARK, 1000));
    al_launched_close(&job);
}

/* The other way round: a program that has ended was not killed. */
static void test_kill__after_the_program_has_ended(void **state)
{
    (void)state;
    struct al_launched job;
    struct al_msg_exit e;
    uint8_t data[8];
    struct al_msg_spawn m = raw_message(raw_kind, "bash");
    m.quotas.wall_ms = 300;
    assert_int_equal(raw_run(&shared, &m, "read x; exit 4", &job, NULL), 0);
    assert_true(raw_wait_started(job.control));
    kill(shared.pid, SIGSTOP);
    size_t n = al_msg_encode_empty(AL_MSG_KILL, data);
    assert_int_equal(send(job.control, data, n, 0), n);
    al_close_fd(&job.stdin_fd);
    usleep(500000); /* beyond the wall limit too */
    kill(shared.pid, SIGCONT);
    assert_true(raw_wait_exit(job.control, &e));
    assert_true(e.ran);
    assert_false(e.killed);
    assert_int_equal(e.limit, AL_LIMIT_NONE);
    assert_int_equal(e.wait_status, 4 << 8);
    al_launched_close(&job);
}

/* --- two of one instance --- */

static void test_second_launcher_of_a_data_dir__has_no_cells(void **state)
{
    (void)state;
    uint8_t data[AL_MSG_BYTES_MAX];
    static struct al_msg_hello hello;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    struct raw_launcher second = shared;
    second.socket = fds[0];
    second.pid = raw_fork_launcher(&second, fds[1]);
    ssize_t got = raw_receive(second.socket, data, sizeof data, 10000);
    assert_true(got > 0);
    assert_int_equal(al_msg_decode_hello(data, (size_t)got, &hello), 0);
    assert_false(hello.cells[raw_kind].available);
    assert_non_null(strstr(hello.cells[raw_kind].reason, "belongs to another launcher"));
    close(second.socket);
    assert_int_not_equal(raw_wait(&second, 5000), -1);
    raw_assert_works(&shared);
}

#define FATAL_ROWS   (sizeof fatal_rows / sizeof fatal_rows[0])
#define REFUSED_ROWS (sizeof refused_rows / sizeof refused_rows[0])
#define BUNDLE_ROWS  (sizeof bundle_rows / sizeof bundle_rows[0])

int main(int argc, char **argv)
{
    raw_choose_kind(argc, argv);
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundle__not_a_sealed_memfd),
        cmocka_unit_test(test_bundle__is_let_go_once_it_is_unpacked),
        cmocka_unit_test(test_control__not_a_socket),
        cmocka_unit_test(test_control__lingers),
        cmocka_unit_test(test_control__full),
        cmocka_unit_test(test_control__nonsense_kills_the_job),
        cmocka_unit_test(test_signals__reach_that_job_only),
        cmocka_unit_test(test_signals__before_exec_are_not_lost),
        cmocka_unit_test(test_figures__begin_at_exec),
        cmocka_unit_test(test_kill__as_the_compile_step_ends),
        cmocka_unit_test(test_wall__as_the_compile_step_ends),
        cmocka_unit_test(test_kill__after_the_program_has_ended),
        cmocka_unit_test(test_second_launcher_of_a_data_dir__has_no_cells),
    };
    static struct CMUnitTest fatal[FATAL_ROWS], refused[REFUSED_ROWS], bundle[BUNDLE_ROWS];
    for (size_t i = 0; i < FATAL_ROWS; i++) {
        fatal[i] = (struct CMUnitTest){.name = fatal_rows[i].name,
                                       .test_func = test_fatal,
                                       .initial_state = (void *)&fatal_rows[i]};
    }
    for (size_t i = 0; i < REFUSED_ROWS; i++) {
        refused[i] = (struct CMUnitTest){.name = refused_rows[i].name,
                                         .test_func = test_refused,
                                         .initial_state = (void *)&refused_rows[i]};
    }
    for (size_t i = 0; i < BUNDLE_ROWS; i++) {
        bundle[i] = (struct CMUnitTest){.name = bundle_rows[i].name,
                                        .test_func = test_bundle,
                                        .initial_state = (void *)&bundle_rows[i]};
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int failed = cmocka_run_group_tests_name("peer", tests, start_shared, stop_shared);
    failed += cmocka_run_group_tests_name("refused", refused, start_shared, stop_shared);
    failed += cmocka_run_group_tests_name("bundles", bundle, start_shared, stop_shared);
    return failed + cmocka_run_group_tests_name("fatal", fatal, NULL, NULL);
}
