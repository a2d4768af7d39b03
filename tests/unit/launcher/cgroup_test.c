/* Real cgroups, below a parent of the test's own. */
#include "backends/launcher/cgroup.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "backends/base/io.h"

static char instance[32];
static struct al_cgroups groups;

static int set_up(void **state)
{
    (void)state;
    struct al_err err = {0};
    if (al_cgroups_init(&groups, "", instance, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    return 0;
}

static void close_dirs(const struct al_cgroups *g)
{
    for (size_t i = 0; i < g->n_dirs; i++) {
        close(g->dirs[i].fd);
    }
}

static int tear_down(void **state)
{
    (void)state;
    bool swept = groups.ops->sweep(&groups, true);
    close_dirs(&groups);
    return swept ? 0 : -1;
}

static void make(const char *name)
{
    struct al_err err = {0};
    if (groups.ops->make(&groups, name, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

/* A child in the group; it runs `fn` and then waits to be killed. */
static pid_t start_in(const char *name, void (*fn)(void))
{
    int fds[2];
    char byte;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (groups.ops->join(&groups, name, true, NULL) < 0) {
            _exit(1);
        }
        if (fn) {
            fn();
        }
        ssize_t put = write(fds[1], "", 1);
        (void)put;
        pause();
        _exit(0);
    }
    close(fds[1]);
    ssize_t got = read(fds[0], &byte, 1);
    (void)got; /* 0: it died, which may be what the test is about */
    close(fds[0]);
    return pid;
}

static int reap(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    reap(pid);
}

/* The kernel may hold a group for a moment after its last process. */
static int remove_soon(const char *name)
{
    int rc = -EBUSY;
    for (int i = 0; i < 400 && rc < 0; i++) {
        rc = groups.ops->remove(&groups, name);
        usleep(rc < 0 ? 5000 : 0);
    }
    return rc;
}

static void test_init__folders_are_the_instances(void **state)
{
    (void)state;
    assert_in_range(groups.n_dirs, 1, 4); /* as the controllers are mounted */
    for (size_t i = 0; i < groups.n_dirs; i++) {
        assert_non_null(strstr(groups.dirs[i].path, instance));
        assert_int_equal(access(groups.dirs[i].path, F_OK), 0);
    }
}

static void test_init__a_living_instance_is_refused(void **state)
{
    (void)state;
    struct al_cgroups second;
    struct al_err err = {0};
    assert_true(al_cgroups_init(&second, "", instance, &err) < 0);
    assert_int_equal(err.code, AL_ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.text, "belongs to another launcher"));
    close_dirs(&second);
}

/* As after the sweep of a dead launcher's reaper: the folder goes in mid-wait. */
static void test_init__waits_for_the_lock_and_makes_the_folder_anew(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        usleep(300000);
        _exit(groups.ops->sweep(&groups, true) ? 0 : 1);
    }
    close_dirs(&groups); /* the child has the lock now */
    int64_t start_ms = al_now_ms();
    assert_int_equal(al_cgroups_init(&groups, "", instance, NULL), 0);
    assert_true(al_now_ms() - start_ms >= 250);
    assert_int_equal(reap(pid), 0);
    make("0123456789abcdef");
    assert_int_equal(groups.ops->remove(&groups, "0123456789abcdef"), 0);
}

static void test_init__unknown_parent(void **state)
{
    (void)state;
    struct al_cgroups other;
    struct al_err err = {0};
    assert_true(al_cgroups_init(&other, "nonexistent/parent", instance, &err) < 0);
    assert_non_null(strstr(err.text, "nonexistent/parent"));
}

static void test_make__twice(void **state)
{
    (void)state;
    struct al_err err = {0};
    make("a");
    assert_true(groups.ops->make(&groups, "a", &err) < 0);
    assert_non_null(strstr(err.text, "File exists"));
}

static void test_remove__none_busy_empty(void **state)
{
    (void)state;
    assert_int_equal(groups.ops->remove(&groups, "none"), 0);
    make("a");
    pid_t pid = start_in("a", NULL);
    assert_int_equal(groups.ops->remove(&groups, "a"), -EBUSY);
    stop(pid);
    assert_int_equal(remove_soon("a"), 0);
    assert_int_equal(groups.ops->remove(&groups, "a"), 0);
}

static const struct al_quotas quotas = {.memory_mb = 32, .pids = 3};

static void test_usage__of_none_is_nothing(void **state)
{
    (void)state;
    struct al_cgroup_usage usage;
    memset(&usage, 0xff, sizeof usage);
    groups.ops->usage(&groups, "none", &usage);
    assert_int_equal(usage.cpu_us, 0);
    assert_int_equal(usage.memory_peak_bytes, 0);
    assert_int_equal(usage.oom_kills, 0);
    assert_int_equal(usage.pids_denied, 0);
    assert_int_equal(groups.ops->cpu_us(&groups, "none"), 0);
}

static void spin(void)
{
    for (int64_t end_ms = al_now_ms() + 100; al_now_ms() < end_ms;) {
    }
}

static void test_usage__counts_cpu(void **state)
{
    (void)state;
    make("a");
    pid_t pid = start_in("a", spin);
    assert_in_range(groups.ops->cpu_us(&groups, "a"), 10000, 200000);
    stop(pid);
    struct al_cgroup_usage usage;
    groups.ops->usage(&groups, "a", &usage);
    assert_in_range(usage.cpu_us, 10000, 300000);
    assert_int_equal(usage.oom_kills, 0);
}

/* A group's weight beside others, in percent of the kernel's default. */
static int weight_of(const char *name)
{
    static const struct {
        const char *file;
        int usual;
    } versions[] = {{"cpu.shares", 1024}, {"cpu.weight", 100}};
    char path[64], text[32];
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", name, versions[i].file);
        if (al_io_read_file(groups.dirs[groups.cpu].fd, path, text, sizeof text) > 0) {
            return (int)(strtol(text, NULL, 10) * 100 / versions[i].usual);
        }
    }
    return -1;
}

static void test_share__of_a_new_group_and_less(void **state)
{
    (void)state;
    make("a");
    make("b");
    assert_int_equal(weight_of("a"), 100);
    groups.ops->share(&groups, "a", 25);
    assert_int_equal(weight_of("a"), 25);
    assert_int_equal(weight_of("b"), 100);
    groups.ops->share(&groups, "none", 25); /* gone already: nothing happens */
}

static void test_share__all_jobs_have_one_for_each_processor(void **state)
{
    (void)state;
    assert_int_equal(weight_of("."), 100 * sysconf(_SC_NPROCESSORS_ONLN));
}

/* All on one CPU, until they are killed. */
static void spin_as_many(int n)
{
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    for (int i = 0; i < n; i++) {
        if (fork() == 0) {
            for (;;) {
            }
        }
    }
}

static void spin_alone(void)
{
    spin_as_many(1);
}

static void spin_four(void)
{
    spin_as_many(4);
}

static void test_cpu__groups_share_equally(void **state)
{
    (void)state;
    make("one");
    make("four");
    pid_t one = start_in("one", spin_alone);
    pid_t four = start_in("four", spin_four);
    int64_t before_one = groups.ops->cpu_us(&groups, "one");
    int64_t before_four = groups.ops->cpu_us(&groups, "four");
    int64_t used_one = 0, used_four = 0;
    for (int i = 0; i < 1000 && used_one + used_four < 500000; i++) { /* on a busy machine long */
        usleep(20000);
        used_one = groups.ops->cpu_us(&groups, "one") - before_one;
        used_four = groups.ops->cpu_us(&groups, "four") - before_four;
    }
    assert_true(groups.ops->sweep(&groups, false));
    reap(one);
    reap(four);
    if (used_four > 2 * used_one || used_one > 2 * used_four) { /* by processes it were 1 to 4 */
        fail_msg("one process got %lld us, four got %lld", (long long)used_one,
                 (long long)used_four);
    }
}

static void touch(size_t mb)
{
    char *p = mmap(NULL, mb << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        _exit(1);
    }
    for (size_t i = 0; i < mb << 20; i += 4096) {
        ((volatile char *)p)[i] = 1;
    }
}

static void touch_16(void)
{
    touch(16);
}

static void touch_64(void)
{
    touch(64);
}

static void test_memory__below_and_above_the_limit(void **state)
{
    (void)state;
    struct al_cgroup_usage usage;
    make("below");
    assert_int_equal(groups.ops->limit(&groups, "below", &quotas, NULL), 0);
    stop(start_in("below", touch_16));
    groups.ops->usage(&groups, "below", &usage);
    assert_in_range(usage.memory_peak_bytes, 16 << 20, 32 << 20);
    assert_int_equal(usage.oom_kills, 0);

    make("above");
    assert_int_equal(groups.ops->limit(&groups, "above", &quotas, NULL), 0);
    int status = reap(start_in("above", touch_64));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    groups.ops->usage(&groups, "above", &usage);
    assert_in_range(usage.memory_peak_bytes, 31 << 20, 32 << 20);
    assert_int_equal(usage.oom_kills, 1);
}

/* Fails with what went wrong, not with EBUSY. */
static void test_limit__below_what_is_used(void **state)
{
    (void)state;
    const struct al_quotas small = {.memory_mb = 4, .pids = 3};
    struct al_err err = {0};
    make("a");
    pid_t pid = start_in("a", touch_16);
    assert_true(groups.ops->limit(&groups, "a", &small, &err) < 0);
    assert_non_null(strstr(err.text, "memory_mb: 4 MiB are too few"));
    stop(pid);
}

static void fork_many(void)
{
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pause();
        }
    }
}

static void test_pids__denied_are_counted_and_the_sweep_kills_all(void **state)
{
    (void)state;
    struct al_cgroup_usage usage;
    make("a");
    assert_int_equal(groups.ops->limit(&groups, "a", &quotas, NULL), 0);
    pid_t pid = start_in("a", fork_many);
    groups.ops->usage(&groups, "a", &usage);
    assert_int_equal(usage.pids_denied, 3);
    assert_true(usage.pids_peak == 0 || usage.pids_peak == 3);
    assert_true(groups.ops->sweep(&groups, false));
    assert_int_equal(kill(pid, 0), 0); /* a zombie: killed, and ours to reap */
    assert_int_equal(reap(pid), SIGKILL);
    assert_int_equal(access(groups.dirs[0].path, F_OK), 0); /* the folder stays */
    assert_int_equal(groups.ops->remove(&groups, "a"), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_init__folders_are_the_instances),
        TEST(test_init__a_living_instance_is_refused),
        TEST(test_init__waits_for_the_lock_and_makes_the_folder_anew),
        TEST(test_init__unknown_parent),
        TEST(test_make__twice),
        TEST(test_remove__none_busy_empty),
        TEST(test_usage__of_none_is_nothing),
        TEST(test_usage__counts_cpu),
        TEST(test_share__of_a_new_group_and_less),
        TEST(test_share__all_jobs_have_one_for_each_processor),
        TEST(test_cpu__groups_share_equally),
        TEST(test_memory__below_and_above_the_limit),
        TEST(test_limit__below_what_is_used),
        TEST(test_pids__denied_are_counted_and_the_sweep_kills_all),
    };
    snprintf(instance, sizeof instance, "unit-test-%d", getpid());
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
