/*
 * Whatever becomes of an interpreter that waits for its program, or of the setter that is to start
 * it: the job gets a true answer in time, and no process, no cell and no cgroup is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "tests/contract/raw_launcher.h"

#define WAIT_MS   10000
#define PIDS_MAX  64
#define GONE_MS   2000
#define FILE_MB   40
#define NO_ANSWER (-1)
#define ANY_KIND  ((1u << AL_PRESTART_KINDS) - 1)

/* --- who waits --- */

struct waiting {
    pid_t interpreter; /* python's; 0: none */
    pid_t setter;      /* that belongs to it */
};

static size_t list_children(const struct raw_launcher *l, pid_t pids[PIDS_MAX])
{
    char path[64], list[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", l->pid, l->pid);
    al_io_read_file(AT_FDCWD, path, list, sizeof list);
    size_t n = 0;
    for (char *at = list; *at && n < PIDS_MAX; at += strspn(at, " ")) {
        pids[n++] = (pid_t)strtol(at, &at, 10);
    }
    return n;
}

static bool has(pid_t pid, const char *file, const char *text)
{
    char path[64], data[4096];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    ssize_t n = al_io_read_file(AT_FDCWD, path, data, sizeof data);
    return n > 0 && memmem(data, (size_t)n, text, strlen(text));
}

static bool share(pid_t a, pid_t b, const char *ns)
{
    char path[64], of_a[64] = "", of_b[64] = "";
    snprintf(path, sizeof path, "/proc/%d/ns/%s", a, ns);
    ssize_t n = readlink(path, of_a, sizeof of_a - 1);
    snprintf(path, sizeof path, "/proc/%d/ns/%s", b, ns);
    return n > 0 && readlink(path, of_b, sizeof of_b - 1) > 0 && strcmp(of_a, of_b) == 0;
}

/* A setter is in its interpreter's cell, but for the pids, and has the filter when it is ready. */
static struct waiting look(const struct raw_launcher *l)
{
    pid_t pids[PIDS_MAX];
    struct waiting w = {0};
    size_t n = list_children(l, pids);
    for (size_t i = 0; i < n; i++) {
        if (has(pids[i], "environ", "PYTHONPATH=/.airlock")) {
            w.interpreter = pids[i];
        }
    }
    for (size_t i = 0; i < n && w.interpreter; i++) {
        if (share(pids[i], w.interpreter, "user") && share(pids[i], l->pid, "pid") &&
            has(pids[i], "status", "Seccomp:\t2"))
        {
            w.setter = pids[i];
        }
    }
    return w;
}

/* --- jobs --- */

static struct al_msg_spawn message(void)
{
    struct al_msg_spawn m = raw_message(AL_CELL_NATIVE, "python");
    m.may_prestart = ANY_KIND;
    return m;
}

/* A launcher in which a job has just had a started interpreter, and the next one waits, alone. */
static struct waiting start_and_wait(struct raw_launcher *l)
{
    raw_start(l);
    for (int64_t end_ms = al_now_ms() + WAIT_MS; al_now_ms() < end_ms; usleep(20000)) {
        struct al_launched job;
        struct al_msg_exit e;
        struct al_msg_spawn m = message();
        assert_int_equal(raw_run(l, &m, "print(1)", &job, NULL), 0);
        assert_true(raw_wait_exit(job.control, &e));
        al_launched_close(&job);
        assert_int_equal(e.wait_status, 0);
        if (!e.prestarted) {
            continue;
        }
        for (; al_now_ms() < end_ms; usleep(5000)) {
            struct waiting w = look(l);
            if (w.interpreter && w.setter) {
                usleep(100000); /* it says that it waits right before it does */
                return w;
            }
        }
    }
    fail_msg("no interpreter waits");
    return (struct waiting){0};
}

/* Runs `code` with that message; NO_ANSWER or the wait status. */
static int run(const struct raw_launcher *l, const struct al_msg_spawn *m, const char *code,
               struct al_msg_exit *ret)
{
    struct al_launched job;
    assert_int_equal(raw_run(l, m, code, &job, NULL), 0);
    bool answered = raw_wait_exit(job.control, ret);
    al_launched_close(&job);
    return answered ? ret->wait_status : NO_ANSWER;
}

/* The launcher is well, and when it has ended nothing is left. */
static void assert_works_and_stop(struct raw_launcher *l)
{
    struct al_msg_exit e;
    struct al_msg_spawn m = message();
    assert_int_equal(run(l, &m, "print(1)", &e), 0);
    assert_string_equal(e.error, "");
    raw_assert_works(l);
    assert_int_equal(raw_stop(l), 0);
    assert_int_equal(raw_count_cgroups(l), 0);
}

/* --- whoever waits dies --- */

/* Both, and the launcher has seen it: it has reaped them. */
static void assert_gone(const struct waiting *w)
{
    for (int64_t end_ms = al_now_ms() + GONE_MS; al_now_ms() < end_ms; usleep(5000)) {
        if (kill(w->interpreter, 0) < 0 && kill(w->setter, 0) < 0) {
            return;
        }
    }
    fail_msg("the other half of a dead cell is still there");
}

static void test_interpreter_killed__its_cell_goes(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct waiting w = start_and_wait(&l);
    kill(w.interpreter, SIGKILL);
    assert_gone(&w);
    assert_works_and_stop(&l);
}

static void test_setter_killed__its_cell_goes(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct waiting w = start_and_wait(&l);
    kill(w.setter, SIGKILL);
    assert_gone(&w);
    assert_works_and_stop(&l);
}

/* The cell is dying when the job comes: another one, or an error, but no invented death. */
static void test_setter_killed_at_once__true_answer(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct waiting w = start_and_wait(&l);
    struct al_launched job;
    struct al_msg_exit e;
    char refused[AL_RESULT_ERROR_MAX] = "";
    struct al_msg_spawn m = message();
    kill(w.setter, SIGKILL);
    if (raw_run(&l, &m, "print(1)", &job, refused) == 0) {
        assert_true(raw_wait_exit(job.control, &e));
        al_launched_close(&job);
        assert_true(e.ran ? e.wait_status == 0 : e.error[0] != '\0');
    } else {
        assert_string_not_equal(refused, "");
    }
    assert_works_and_stop(&l);
}

static void test_launcher_killed__interpreters_go(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct waiting w = start_and_wait(&l);
    raw_kill(&l);
    for (int64_t end_ms = al_now_ms() + GONE_MS; al_now_ms() < end_ms; usleep(5000)) {
        if (kill(w.interpreter, 0) < 0 && kill(w.setter, 0) < 0) {
            break;
        }
        waitpid(-1, NULL, WNOHANG); /* orphans become ours */
    }
    assert_int_equal(kill(w.interpreter, 0), -1);
    assert_int_equal(kill(w.setter, 0), -1);
    assert_true(raw_no_cgroups(&l, GONE_MS));
    raw_stop(&l);
}

/* --- between the assignment and the start: the setter is stopped, so that it stays there --- */

struct held {
    struct raw_launcher l;
    struct waiting w;
    struct al_launched job;
};

static void start_held(struct held *h, const struct al_msg_spawn *m, const char *code)
{
    h->w = start_and_wait(&h->l);
    assert_int_equal(kill(h->w.setter, SIGSTOP), 0);
    assert_int_equal(raw_run(&h->l, m, code, &h->job, NULL), 0);
}

static void send_signal(const struct held *h, int signo)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    struct al_msg_signal sig = {.signo = signo};
    size_t len = al_msg_encode_signal(&sig, data);
    assert_int_equal(send(h->job.control, data, len, 0), (ssize_t)len);
}

static void finish_held(struct held *h, struct al_msg_exit *ret)
{
    assert_true(raw_wait_exit(h->job.control, ret));
    assert_true(ret->prestarted);
    al_launched_close(&h->job);
    assert_works_and_stop(&h->l);
}

static void test_killed_before_start__at_once(void **state)
{
    (void)state;
    struct held h;
    struct al_msg_exit e;
    struct al_msg_spawn m = message();
    uint8_t data[AL_MSG_BYTES_MAX];
    start_held(&h, &m, "print(1)");
    size_t len = al_msg_encode_empty(AL_MSG_KILL, data);
    int64_t start_ms = al_now_ms();
    assert_int_equal(send(h.job.control, data, len, 0), (ssize_t)len);
    finish_held(&h, &e);
    assert_true(al_now_ms() - start_ms < 5000);
    assert_true(e.killed);
    assert_false(e.ran);
}

static void test_caller_gone_before_start__cell_goes(void **state)
{
    (void)state;
    struct held h;
    struct al_msg_spawn m = message();
    start_held(&h, &m, "print(1)");
    al_launched_close(&h.job);
    assert_gone(&h.w);
    assert_works_and_stop(&h.l);
}

static void test_signal_before_start__reaches_the_program(void **state)
{
    (void)state;
    struct held h;
    struct al_msg_exit e;
    struct al_msg_spawn m = message();
    start_held(&h, &m, "import time\ntime.sleep(50)");
    send_signal(&h, SIGTERM);
    kill(h.w.setter, SIGCONT);
    finish_held(&h, &e);
    assert_true(e.ran);
    assert_int_equal(e.wait_status, SIGTERM);
}

static void test_interpreter_killed_before_start__backend_error(void **state)
{
    (void)state;
    struct held h;
    struct al_msg_exit e;
    struct al_msg_spawn m = message();
    start_held(&h, &m, "print(1)");
    kill(h.w.interpreter, SIGKILL);
    finish_held(&h, &e);
    assert_false(e.ran);
    assert_string_not_equal(e.error, "");
}

static void test_setter_killed_before_start__backend_error(void **state)
{
    (void)state;
    struct held h;
    struct al_msg_exit e;
    struct al_msg_spawn m = message();
    start_held(&h, &m, "print(1)");
    kill(h.w.setter, SIGKILL);
    finish_held(&h, &e);
    assert_false(e.ran);
    assert_string_not_equal(e.error, "");
}

/* Nobody goes on: the wall limit ends it. */
static void test_interpreter_stopped__wall_limit(void **state)
{
    (void)state;
    struct held h;
    struct al_msg_exit e;
    struct al_msg_spawn m = message();
    m.quotas.wall_ms = 300;
    start_held(&h, &m, "print(1)");
    kill(h.w.interpreter, SIGSTOP);
    kill(h.w.setter, SIGCONT);
    finish_held(&h, &e);
    assert_int_equal(e.limit, AL_LIMIT_WALL);
}

/* --- bundles that do not fit: the same answer as without a started interpreter --- */

struct bundle_row {
    const char *name;
    size_t files; /* of FILE_MB each */
    uint32_t disk_mb;
    const char *path;   /* of one more file; NULL: none */
    bool meets_memory;  /* the kernel kills for it */
    const char *answer; /* part of the error; NULL: none */
};

static const struct bundle_row bundle_rows[] = {
    {"larger_than_the_disk", 1, 8, NULL, false, "cannot write the file 'f0'"},
    {"larger_than_memory", 4, 256, NULL, true, NULL},
    {"file_in_the_codes_place", 0, 8, "main.py", false, "cannot make the file 'main.py'"},
    {"file_below_a_file", 0, 8, "main.py/x", false, "cannot make the file 'main.py/x'"},
    {"fits", 1, 64, "a/b", false, NULL},
};

static int send_bundle(const struct raw_launcher *l, const struct bundle_row *row,
                       const struct al_msg_spawn *m)
{
    static uint8_t content[FILE_MB << 20];
    static const char *const names[] = {"f0", "f1", "f2", "f3"};
    struct al_file files[5];
    struct al_job_spec spec = raw_spec("print(1)");
    size_t n = 0;
    for (; n < row->files; n++) {
        files[n] = (struct al_file){names[n], {content, sizeof content}, 0644};
    }
    if (row->path) {
        files[n++] = (struct al_file){row->path, {content, 1}, 0644};
    }
    spec.files = files;
    spec.n_files = n;
    al_auto_close int bundle = al_bundle_create(&spec);
    int fds[2];
    assert_true(bundle >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(raw_send(l, m, fds[1], bundle), 0);
    close(fds[1]);
    return fds[0];
}

/* Until one of each kind was had; what they answer has to be alike. */
static void test_bundle(void **state)
{
    const struct bundle_row *row = *state;
    struct raw_launcher l;
    start_and_wait(&l);
    bool had[2] = {false};
    for (int64_t end_ms = al_now_ms() + WAIT_MS; !(had[0] && had[1]) && al_now_ms() < end_ms;) {
        struct al_msg_spawn m = message();
        struct al_msg_exit e;
        m.may_prestart = had[1] ? 0 : ANY_KIND;
        m.quotas.disk_mb = row->disk_mb;
        m.quotas.file_size_mb = FILE_MB;
        al_auto_close int control = send_bundle(&l, row, &m);
        assert_true(raw_wait_exit(control, &e));
        had[e.prestarted] = true;
        assert_int_equal(e.ran, !row->answer && !row->meets_memory);
        assert_int_equal(e.oom_kills > 0, row->meets_memory);
        if (row->answer && !strstr(e.error, row->answer)) {
            fail_msg("started ahead %d: '%s'", e.prestarted, e.error);
        }
        usleep(20000);
    }
    assert_true(had[0] && had[1]);
    assert_works_and_stop(&l);
}

/* --- rest --- */

static long count_sleeps(const struct raw_launcher *l)
{
    static const char key[] = "voluntary_ctxt_switches:";
    char path[64], text[4096] = "";
    snprintf(path, sizeof path, "/proc/%d/status", l->pid);
    al_io_read_file(AT_FDCWD, path, text, sizeof text);
    const char *at = strstr(text, key);
    assert_non_null(at);
    return strtol(at + strlen(key), NULL, 10);
}

/* The job has taken a cell out of a pool that is not low: that one is refilled when it has ended.
 */
static void test_job_sleeps__launcher_sleeps(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_launched job;
    struct al_msg_spawn m = raw_message(AL_CELL_NATIVE, "bash");
    raw_start(&l);
    usleep(300000); /* until the pools are full */
    assert_int_equal(raw_run(&l, &m, "sleep 60", &job, NULL), 0);
    assert_true(raw_wait_started(job.control));
    usleep(200000);
    long before = count_sleeps(&l);
    usleep(1000000);
    assert_in_range(count_sleeps(&l) - before, 0, 40);
    al_launched_close(&job);
    assert_works_and_stop(&l);
}

/* --- figures --- */

struct figures_row {
    const char *name;
    const char *code;
    bool racy_memory; /* depends on who is quicker */
};

static const struct figures_row figures_rows[] = {
    {"nothing", "pass", false},
    {"memory", "b = bytearray(60 << 20)", false},
    {"children",
     "import os\nfor i in range(5):\n if os.fork() == 0:\n  import time\n"
     "  time.sleep(60)\ntime = 1",
     false},
    {"fork_bomb", "import os\ntry:\n while True: os.fork()\nexcept OSError: pass", true},
};

/* Of `n` runs of the kind; the least of what a busy machine makes larger. */
static void measure(const struct raw_launcher *l, bool ahead, const char *code,
                    struct al_msg_exit *ret)
{
    int left = 5;
    *ret = (struct al_msg_exit){.cpu_us = INT64_MAX, .memory_peak_bytes = UINT64_MAX};
    for (int64_t end_ms = al_now_ms() + 2 * WAIT_MS; left > 0 && al_now_ms() < end_ms;) {
        struct al_msg_spawn m = message();
        struct al_msg_exit e;
        m.may_prestart = ahead ? ANY_KIND : 0;
        assert_int_not_equal(run(l, &m, code, &e), NO_ANSWER);
        if (e.prestarted == ahead) {
            ret->cpu_us = e.cpu_us < ret->cpu_us ? e.cpu_us : ret->cpu_us;
            ret->memory_peak_bytes = e.memory_peak_bytes < ret->memory_peak_bytes
                                         ? e.memory_peak_bytes
                                         : ret->memory_peak_bytes;
            ret->pids_peak = e.pids_peak > ret->pids_peak ? e.pids_peak : ret->pids_peak;
            left--;
        }
        usleep(20000);
    }
    assert_int_equal(left, 0);
}

/* The setter is none of the program's processes, and what it took to start the interpreter is none
 * of its time. */
static void test_figures(void **state)
{
    const struct figures_row *row = *state;
    struct raw_launcher l;
    struct al_msg_exit cold, ahead;
    start_and_wait(&l);
    measure(&l, false, row->code, &cold);
    measure(&l, true, row->code, &ahead);
    print_message("cpu %lld us, started ahead %lld; memory %llu KiB, %llu; pids %u, %u\n",
                  (long long)cold.cpu_us, (long long)ahead.cpu_us,
                  (unsigned long long)cold.memory_peak_bytes >> 10,
                  (unsigned long long)ahead.memory_peak_bytes >> 10, cold.pids_peak,
                  ahead.pids_peak);
    assert_int_equal(ahead.pids_peak, cold.pids_peak);
    assert_true(ahead.cpu_us > 0);
    if (!row->racy_memory) {
        assert_in_range(ahead.memory_peak_bytes, cold.memory_peak_bytes - (1 << 20),
                        cold.memory_peak_bytes + (1 << 20));
    }
    assert_works_and_stop(&l);
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(test_interpreter_killed__its_cell_goes),
        cmocka_unit_test(test_setter_killed__its_cell_goes),
        cmocka_unit_test(test_setter_killed_at_once__true_answer),
        cmocka_unit_test(test_launcher_killed__interpreters_go),
        cmocka_unit_test(test_killed_before_start__at_once),
        cmocka_unit_test(test_caller_gone_before_start__cell_goes),
        cmocka_unit_test(test_signal_before_start__reaches_the_program),
        cmocka_unit_test(test_interpreter_killed_before_start__backend_error),
        cmocka_unit_test(test_setter_killed_before_start__backend_error),
        cmocka_unit_test(test_interpreter_stopped__wall_limit),
        cmocka_unit_test(test_job_sleeps__launcher_sleeps),
    };
    struct CMUnitTest tests[COUNT(plain) + COUNT(bundle_rows) + COUNT(figures_rows)];
    size_t n = COUNT(plain);
    memcpy(tests, plain, sizeof plain);
    for (size_t i = 0; i < COUNT(bundle_rows); i++) {
        tests[n++] = (struct CMUnitTest){bundle_rows[i].name, test_bundle, NULL, NULL,
                                         (void *)&bundle_rows[i]};
    }
    for (size_t i = 0; i < COUNT(figures_rows); i++) {
        tests[n++] = (struct CMUnitTest){figures_rows[i].name, test_figures, NULL, NULL,
                                         (void *)&figures_rows[i]};
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return _cmocka_run_group_tests("prestart", tests, n, NULL, NULL);
}
