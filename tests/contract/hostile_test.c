/*
 * What a hostile program takes from others: from the machine's root, and from the launcher itself.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/contract/raw_launcher.h"
#include "tests/support/runner.h"

#define MARK    "6127.5"
#define READY_S 10

/* Starts a job, whose code prints a line when it has done its worst, and waits for that. */
static void run_until_ready(const struct raw_launcher *l, enum al_cell_kind kind, const char *code,
                            struct al_launched *job)
{
    char line[64];
    struct al_msg_spawn m = raw_message(kind, "bash");
    assert_int_equal(raw_run(l, &m, code, job, NULL), 0);
    assert_true(raw_wait_started(job->control));
    for (int i = 0; i < READY_S * 100 && read(job->stdout_fd, line, sizeof line) <= 0; i++) {
        usleep(10000);
    }
}

/* The kernel counts them by user, 128 as a rule, and a namespace's also to its owner. */
static void test_inotify_used_up__roots_is_not(void **state)
{
    (void)state;
    static const char code[] = "exec python3 -c '\n"
                               "import ctypes, os, time\n"
                               "for i in range(5):\n"
                               "    if os.fork() == 0:\n"
                               "        while ctypes.CDLL(None).inotify_init1(0) >= 0: pass\n"
                               "        print(1, flush=True)\n"
                               "        time.sleep(" MARK ")\n"
                               "time.sleep(" MARK ")'";
    struct raw_launcher l;
    struct al_launched job;
    raw_start(&l);
    run_until_ready(&l, raw_kind, code, &job);
    usleep(500000); /* all five of them */
    int fd = inotify_init1(IN_CLOEXEC);
    assert_true(fd >= 0);
    close(fd);
    al_launched_close(&job);
    raw_stop(&l);
}

/* Children that a program of a local cell gives the launcher: dead before it, and after. */
static void test_children_for_the_launcher__it_ends(void **state)
{
    (void)state;
    static const char code[] =
        "exec python3 -c '\n"
        "import ctypes, os, time\n"
        "nr = 56 if os.uname().machine == \"x86_64\" else 220\n"
        "for i in range(4):\n"
        "    if ctypes.CDLL(None).syscall(nr, 0x8000 | 17, 0, 0, 0, 0) == 0:\n"
        "        time.sleep(0 if i % 2 else " MARK "); os._exit(0)\n"
        "print(1, flush=True)\n"
        "time.sleep(" MARK ")'";
    struct raw_launcher l;
    struct al_launched job;
    raw_start(&l);
    run_until_ready(&l, AL_CELL_LOCAL, code, &job);
    close(l.socket);
    l.socket = -1;
    int status = raw_wait(&l, 3000);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(raw_all_gone(MARK, 1000));
    al_launched_close(&job);
    raw_stop(&l);
}

/* What burns yields to what is new. */
static void test_much_cpu_used__the_share_falls(void **state)
{
    (void)state;
    struct raw_launcher l;
    struct al_launched job;
    int least = 100, most = 0;
    raw_start(&l);
    run_until_ready(&l, raw_kind, "echo; while :; do :; done", &job);
    for (int i = 0; i < 100 && least != 25; i++) {
        usleep(50000);
        raw_shares(&l, &least, &most);
    }
    assert_int_equal(least, 25);
    assert_int_equal(most, 100); /* those made ahead */
    al_launched_close(&job);
    raw_stop(&l);
}

int main(int argc, char **argv)
{
    raw_choose_kind(argc, argv);
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inotify_used_up__roots_is_not),
        cmocka_unit_test(test_much_cpu_used__the_share_falls),
        cmocka_unit_test(test_children_for_the_launcher__it_ends),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
