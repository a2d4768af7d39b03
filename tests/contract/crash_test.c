/*
 * Whoever dies, and whenever: no process of a job lives on, and no cgroup is left. The launcher is
 * killed, the process that plays airlockd is killed, a job's control socket is closed.
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
#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "tests/contract/raw_launcher.h"
#include "tests/support/runner.h"

#define MARK    "5823.5" /* in the command line of every process of a job */
#define SLEEP   "sleep " MARK
#define TREE    "setsid setsid " SLEEP " & trap '' TERM; " SLEEP " & while :; do " SLEEP "; done"
#define GONE_MS (al_test_is_slow() ? 6000 : 1000)
#define JOBS    8

/* Every kind has its turn. */
static enum al_cell_kind kind_of(size_t i)
{
    return (enum al_cell_kind)(i % AL_CELL_KINDS);
}

/* Several jobs of all kinds that sleep for long. */
static void start_jobs(const struct raw_launcher *l, struct al_launched jobs[JOBS])
{
    for (size_t i = 0; i < JOBS; i++) {
        struct al_msg_spawn m = raw_message(kind_of(i), "bash");
        assert_int_equal(raw_run(l, &m, TREE, &jobs[i], NULL), 0);
    }
    for (size_t i = 0; i < JOBS; i++) {
        assert_true(raw_wait_started(jobs[i].control));
    }
}

static void close_jobs(struct al_launched jobs[JOBS])
{
    for (size_t i = 0; i < JOBS; i++) {
        al_launched_close(&jobs[i]);
    }
}

static void wait_for_sleepers(int n)
{
    for (int i = 0; i < 6000 && al_test_count_processes(MARK) < n; i++) {
        usleep(5000);
    }
    assert_true(al_test_count_processes(MARK) >= n);
}

static void assert_nothing_left(const struct raw_launcher *l)
{
    assert_true(raw_all_gone(MARK, GONE_MS));
    assert_true(raw_no_cgroups(l, 2000));
}

/* A clean end: nothing is left when the launcher has been reaped. */
static void test_stop__leaves_nothing(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_launched jobs[JOBS];
    raw_start(&l);
    assert_true(raw_count_cgroups(&l) > 0);
    start_jobs(&l, jobs);
    wait_for_sleepers(JOBS);
    int status = raw_stop(&l);
    assert_int_equal(al_test_count_processes(MARK), 0);
    assert_int_equal(raw_count_cgroups(&l), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close_jobs(jobs);
}

static void test_launcher_killed__nothing_is_left(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_launched jobs[JOBS];
    raw_start(&l);
    start_jobs(&l, jobs);
    wait_for_sleepers(JOBS);
    raw_kill(&l);
    assert_nothing_left(&l);
    close_jobs(jobs);
    raw_stop(&l);
}

/* In the middle of building cells: the moments differ from round to round. */
static void test_launcher_killed_in_setup__nothing_is_left(void **state)
{
    (void)state;
    for (unsigned round = 0; round < (al_test_is_slow() ? 4 : 20); round++) {
        struct raw_launcher l;
        struct al_launched jobs[JOBS];
        raw_start(&l);
        for (size_t i = 0; i < JOBS; i++) {
            struct al_msg_spawn m = raw_message(kind_of(i), "bash");
            assert_int_equal(raw_run(&l, &m, TREE, &jobs[i], NULL), 0);
        }
        usleep(round * 400);
        raw_kill(&l);
        assert_nothing_left(&l);
        close_jobs(jobs);
        raw_stop(&l);
    }
}

/* The reaper sweeps for the dead launcher while its successor starts. */
static void test_launcher_killed__next_one_works_at_once(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_launched jobs[JOBS];
    raw_start(&l);
    for (int round = 0; round < 5; round++) {
        start_jobs(&l, jobs);
        raw_kill(&l);
        raw_start_again(&l);
        raw_assert_works(&l);
        assert_int_equal(al_test_count_processes(MARK), 0);
        raw_assert_works(&l);
        close_jobs(jobs);
    }
    raw_stop(&l);
}

/* Nobody is left to clean up but the next start. */
static void test_launcher_and_reaper_killed__next_start_sweeps(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_launched jobs[JOBS];
    raw_start(&l);
    start_jobs(&l, jobs);
    wait_for_sleepers(JOBS);
    kill(-l.pid, SIGKILL); /* its session: the reaper and every init too */
    raw_kill(&l);
    assert_true(raw_all_gone(MARK, GONE_MS));
    assert_true(raw_count_cgroups(&l) > 0);
    raw_start_again(&l);
    raw_assert_works(&l);
    close_jobs(jobs);
    raw_stop(&l);
    assert_int_equal(raw_count_cgroups(&l), 0);
}

static pid_t find_reaper(const struct raw_launcher *l)
{
    char path[64], list[4096] = "", name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", l->pid, l->pid);
    assert_true(al_io_read_file(AT_FDCWD, path, list, sizeof list) > 0);
    for (char *at = list; *at; at += strspn(at, " ")) {
        pid_t pid = (pid_t)strtol(at, &at, 10);
        snprintf(path, sizeof path, "/proc/%d/comm", pid);
        if (al_io_read_file(AT_FDCWD, path, name, sizeof name) > 0 &&
            strcmp(name, "airlock-reaper\n") == 0) {
            return pid;
        }
    }
    fail_msg("no reaper among %s", list);
    return 0;
}

/* A launcher whose reaper is gone does not go on to leave cgroups behind. */
static void test_reaper_killed__launcher_ends(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_launched jobs[JOBS];
    raw_start(&l);
    start_jobs(&l, jobs);
    kill(find_reaper(&l), SIGKILL);
    int status = raw_wait(&l, 3000);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_nothing_left(&l);
    close_jobs(jobs);
    raw_stop(&l);
}

/* Groups of cells in the first hierarchy of the launcher. */
static long count_groups(const struct raw_launcher *l)
{
    for (int fd = 3; fd < 32; fd++) {
        char path[64], target[256];
        struct stat st;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", l->pid, fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n > 0 && memmem(target, (size_t)n, "/airlock-", 9) && stat(path, &st) == 0) {
            return (long)st.st_nlink - 2;
        }
    }
    fail_msg("the launcher has no cgroup open");
    return 0;
}

/* More jobs end than its socket holds. */
static void test_reaper_stopped__launcher_removes(void **state)
{
    (void)state;
    enum { ENDED = 400, MADE_AHEAD = 10 };
    struct raw_launcher l;
    struct al_msg_exit e;
    raw_start(&l);
    kill(find_reaper(&l), SIGSTOP);
    for (int i = 0; i < ENDED; i++) {
        struct al_launched job;
        struct al_msg_spawn m = raw_message(AL_CELL_LOCAL, "bash");
        assert_int_equal(raw_run(&l, &m, "exit 0", &job, NULL), 0);
        assert_true(raw_wait_exit(job.control, &e));
        al_launched_close(&job);
    }
    kill(find_reaper(&l), SIGCONT);
    for (int i = 0; i < 200 && count_groups(&l) > MADE_AHEAD; i++) {
        usleep(10000);
    }
    assert_in_range(count_groups(&l), 0, MADE_AHEAD);
    raw_stop(&l);
}

/* The child plays airlockd: it starts a launcher and jobs, says so, and is killed. */
static void test_airlockd_killed__nothing_is_left(void **state)
{
    (void)state;
    struct raw_launcher l;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct al_launched jobs[JOBS];
        raw_start(&l);
        start_jobs(&l, jobs);
        ssize_t put = send(fds[1], &l, sizeof l, 0);
        (void)put;
        pause();
        _exit(0);
    }
    close(fds[1]);
    assert_int_equal(recv(fds[0], &l, sizeof l, 0), sizeof l);
    close(fds[0]);
    wait_for_sleepers(JOBS);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_nothing_left(&l);
    int status = raw_wait(&l, 3000); /* it has become our child */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    l.socket = -1;
    raw_stop(&l);
}

/* --- one job's control socket --- */

static void test_control_closed__kills_that_job_only(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_launched jobs[JOBS], other;
    struct al_msg_exit e;
    raw_start(&l);
    struct al_msg_spawn m = raw_message(AL_CELL_NATIVE, "bash");
    assert_int_equal(raw_run(&l, &m, "read x; exit 3", &other, NULL), 0);
    start_jobs(&l, jobs);
    close_jobs(jobs);
    assert_true(raw_all_gone(MARK, GONE_MS));
    close(other.stdin_fd);
    other.stdin_fd = -1;
    assert_true(raw_wait_exit(other.control, &e));
    assert_true(e.ran);
    assert_int_equal(e.wait_status, 3 << 8);
    al_launched_close(&other);
    raw_stop(&l);
}

/* Gone before the first answer: nothing may start for nobody. */
static void test_control_closed_at_once__no_job(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_job_spec spec = raw_spec(TREE);
    raw_start(&l);
    int bundle = al_bundle_create(&spec);
    for (size_t i = 0; i < 20; i++) {
        int fds[2];
        struct al_msg_spawn m = raw_message(kind_of(i), "bash");
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(raw_send(&l, &m, fds[1], bundle), 0);
        close(fds[1]);
        close(fds[0]);
    }
    close(bundle);
    raw_assert_works(&l); /* so that all of them have been taken */
    assert_true(raw_all_gone(MARK, GONE_MS));
    raw_stop(&l);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop__leaves_nothing),
        cmocka_unit_test(test_launcher_killed__nothing_is_left),
        cmocka_unit_test(test_launcher_killed_in_setup__nothing_is_left),
        cmocka_unit_test(test_launcher_killed__next_one_works_at_once),
        cmocka_unit_test(test_launcher_and_reaper_killed__next_start_sweeps),
        cmocka_unit_test(test_reaper_killed__launcher_ends),
        cmocka_unit_test(test_reaper_stopped__launcher_removes),
        cmocka_unit_test(test_airlockd_killed__nothing_is_left),
        cmocka_unit_test(test_control_closed__kills_that_job_only),
        cmocka_unit_test(test_control_closed_at_once__no_job),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (al_test_is_slow()) {
        cmocka_set_skip_filter("test_reaper_stopped__*"); /* 400 jobs: minutes, when emulated */
    }
    return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}
