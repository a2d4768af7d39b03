#include "backends/launcher/instance.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_name__same_for_the_same_folder(void **state)
{
    (void)state;
    char folder[] = "/tmp/instance-XXXXXX", other[] = "/tmp/instance-XXXXXX";
    char a[AL_INSTANCE_NAME_MAX], b[AL_INSTANCE_NAME_MAX], path[64];
    assert_non_null(mkdtemp(folder));
    assert_non_null(mkdtemp(other));
    assert_int_equal(al_instance_name(folder, a, NULL), 0);
    snprintf(path, sizeof path, "%s/../%s/.", folder, folder + strlen("/tmp/"));
    assert_int_equal(al_instance_name(path, b, NULL), 0);
    assert_string_equal(a, b);
    assert_int_equal(strspn(a, "0123456789abcdef"), 16);
    assert_int_equal(al_instance_name(other, b, NULL), 0);
    assert_string_not_equal(a, b);
    rmdir(folder);
    rmdir(other);
}

static void test_name__no_such_folder(void **state)
{
    (void)state;
    char name[AL_INSTANCE_NAME_MAX];
    struct al_err err = {0};
    assert_true(al_instance_name("/nonexistent/x", name, &err) < 0);
    assert_string_equal(err.text, "data-dir /nonexistent/x: No such file or directory");
}

/* The range that a process of its own gets; it holds it until it is killed. */
static uid_t range_of_another(pid_t *ret_pid, uint32_t jobs_max)
{
    int fds[2];
    uid_t base = 0;
    assert_int_equal(pipe(fds), 0);
    *ret_pid = fork();
    if (*ret_pid == 0) {
        struct al_cells_config config = {.uid_base = 1900000000, .jobs_max = jobs_max};
        if (al_instance_lock_uids(&config, NULL) < 0) {
            _exit(1);
        }
        ssize_t put = write(fds[1], &config.uid_base, sizeof config.uid_base);
        (void)put;
        pause();
        _exit(0);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &base, sizeof base), sizeof base);
    close(fds[0]);
    return base;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_uids__each_process_gets_its_own_and_ranges_come_back(void **state)
{
    (void)state;
    pid_t pids[2];
    uid_t first = range_of_another(&pids[0], AL_JOBS_MAX);
    uid_t second = range_of_another(&pids[1], 10);
    assert_int_equal(first, 1900000000);
    assert_true(second >= first + 2 * AL_JOBS_MAX); /* whatever jobs_max each of them has */
    stop(pids[0]);
    assert_int_equal(range_of_another(&pids[0], 10), first);
    stop(pids[0]);
    stop(pids[1]);
    unlink("/run/airlock/uids.1900000000");
    unlink("/run/airlock/uids.1900008192");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name__same_for_the_same_folder),
        cmocka_unit_test(test_name__no_such_folder),
        cmocka_unit_test(test_uids__each_process_gets_its_own_and_ranges_come_back),
    };
    return cmocka_run_group_tests_name("instance", tests, NULL, NULL);
}
