/* Where the instance's folder goes in version 2. Needs a machine that has it: tests/vm/run. */
#include "backends/launcher/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/api/backend.h"
#include "backends/base/io.h"

#define MOUNT      "/sys/fs/cgroup"
#define ALL_LAYERS (AL_LAYER_CGROUP_MEMORY | AL_LAYER_CGROUP_PIDS | AL_LAYER_CGROUP_CPU)

static char service[64]; /* a group of the test's own, as a supervisor would make it */
static char instance[32];

/* What a start of the launcher came to; shared by way of a pipe. */
struct outcome {
    int rc;
    uint32_t layers;
    char path[512];
    char own[256]; /* the launcher's group afterwards */
    char error[AL_ERR_TEXT_MAX];
};

static void write_to(const char *group, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", group, file);
    if (al_io_write_file(AT_FDCWD, path, text) < 0) {
        fprintf(stderr, "cannot write %s to %s\n", text, path);
        _exit(1);
    }
}

static void start_launcher(const char *parent, struct outcome *o)
{
    struct al_cgroups groups;
    struct al_err err = {0};
    *o = (struct outcome){0};
    o->rc = al_cgroups_init(&groups, parent, instance, &err);
    snprintf(o->error, sizeof o->error, "%s", err.text);
    al_io_read_file(AT_FDCWD, "/proc/self/cgroup", o->own, sizeof o->own);
    if (o->rc == 0) {
        o->layers = groups.layers;
        snprintf(o->path, sizeof o->path, "%s", groups.dirs[0].path);
        groups.ops->sweep(&groups, true);
    }
}

/* In a child: an airlockd in `group`, which starts a launcher `times` times. */
static void run_service(const char *group, const char *parent, int times, struct outcome *ret)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t airlockd = fork();
    if (airlockd == 0) {
        write_to(group, "cgroup.procs", "0");
        for (int i = 0; i < times; i++) {
            pid_t launcher = fork();
            if (launcher == 0) {
                struct outcome o;
                start_launcher(parent, &o);
                _exit(write(fds[1], &o, sizeof o) == sizeof o ? 0 : 1);
            }
            waitpid(launcher, NULL, 0);
        }
        char own[256] = "";
        al_io_read_file(AT_FDCWD, "/proc/self/cgroup", own, sizeof own);
        _exit(strstr(own, "/airlock-supervisor") ? 1 : 0);
    }
    close(fds[1]);
    for (int i = 0; i < times; i++) {
        assert_int_equal(read(fds[0], ret, sizeof *ret), sizeof *ret);
    }
    close(fds[0]);
    int status;
    assert_int_equal(waitpid(airlockd, &status, 0), airlockd);
    /* Both are moved, or none. */
    assert_int_equal(WEXITSTATUS(status), strstr(ret->own, "/airlock-supervisor") ? 1 : 0);
}

static bool has_v2(void)
{
    return access(MOUNT "/cgroup.controllers", F_OK) == 0;
}

/* Version 1, or both: nothing to be seen here. */
static void need_v2(void)
{
    if (!has_v2()) {
        skip();
    }
}

static int set_up(void **state)
{
    (void)state;
    if (!has_v2()) {
        return 0;
    }
    write_to(MOUNT, "cgroup.subtree_control", "+memory +pids +cpu");
    return mkdir(service, 0755);
}

static int tear_down(void **state)
{
    (void)state;
    char leaf[128];
    if (!has_v2()) {
        return 0;
    }
    snprintf(leaf, sizeof leaf, "%s/airlock-supervisor", service);
    rmdir(leaf);
    snprintf(leaf, sizeof leaf, "%s/inner", service);
    rmdir(leaf);
    return rmdir(service);
}

static void assert_below(const struct outcome *o, const char *base)
{
    char path[128];
    if (o->rc < 0) {
        fail_msg("%s", o->error);
    }
    snprintf(path, sizeof path, "%s/airlock-%s", base, instance);
    assert_string_equal(o->path, path);
}

static void test_service__moves_into_a_leaf_of_its_own_group(void **state)
{
    (void)state;
    need_v2();
    struct outcome o;
    run_service(service, "", 1, &o);
    assert_below(&o, service);
    assert_int_equal(o.layers, ALL_LAYERS);
    assert_non_null(strstr(o.own, "/airlock-supervisor"));
}

static void test_service__started_again_stays_there(void **state)
{
    (void)state;
    need_v2();
    struct outcome o;
    run_service(service, "", 2, &o);
    assert_below(&o, service);
    assert_int_equal(o.layers, ALL_LAYERS);
}

static void test_shell__strangers_are_left_alone(void **state)
{
    (void)state;
    need_v2();
    struct outcome o;
    pid_t stranger = fork();
    if (stranger == 0) {
        write_to(service, "cgroup.procs", "0");
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(stranger, &status, WUNTRACED), stranger);
    run_service(service, "", 1, &o);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
    assert_below(&o, MOUNT);
    assert_int_equal(o.layers, ALL_LAYERS);
    assert_null(strstr(o.own, "/airlock-supervisor"));
}

static void test_parent__is_taken_as_it_is(void **state)
{
    (void)state;
    need_v2();
    struct outcome o;
    char inner[128];
    snprintf(inner, sizeof inner, "%s/inner", service);
    assert_int_equal(mkdir(inner, 0755), 0);
    write_to(service, "cgroup.subtree_control", "+pids");
    run_service(MOUNT, inner + strlen(MOUNT), 1, &o);
    assert_below(&o, inner);
    assert_int_equal(o.layers, AL_LAYER_CGROUP_PIDS);
}

static void test_parent__that_is_not_there(void **state)
{
    (void)state;
    need_v2();
    struct outcome o;
    run_service(MOUNT, "none/such", 1, &o);
    assert_true(o.rc < 0);
    assert_non_null(strstr(o.error, "none/such"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_service__moves_into_a_leaf_of_its_own_group),
        TEST(test_service__started_again_stays_there),
        TEST(test_shell__strangers_are_left_alone),
        TEST(test_parent__is_taken_as_it_is),
        TEST(test_parent__that_is_not_there),
    };
    snprintf(instance, sizeof instance, "delegate-%d", getpid());
    snprintf(service, sizeof service, MOUNT "/test-%d", getpid());
    return cmocka_run_group_tests_name("cgroup delegation", tests, NULL, NULL);
}
