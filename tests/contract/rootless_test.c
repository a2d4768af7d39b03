/* A launcher that an ordinary user has started, with a configuration that does without what such a
 * one cannot have. As root this test becomes nobody first. */
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "tests/support/runner.h"

#define NOBODY 65534
#define LESS                                                                            \
    "[cells]\nprepared = 1\nrequire = userns pidns netns mountns ipcns utsns cgroupns " \
    "pivot_root\n"                                                                      \
    "  no_capabilities no_new_privs seccomp rlimits\n"

static char launcher_dir[] = "/tmp/airlock-rootless-XXXXXX";
static char launcher[64];

static void require_that(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

/* Where the build has put it, nobody may not come. */
static void copy_launcher(void)
{
    struct stat st;
    require_that(mkdtemp(launcher_dir) && chmod(launcher_dir, 0755) == 0, "mkdtemp");
    snprintf(launcher, sizeof launcher, "%s/airlock-launcher", launcher_dir);
    const char *built = getenv("AIRLOCK_LAUNCHER");
    built = built ? built : "backends/launcher/airlock-launcher"; /* in the test's runfiles */
    al_auto_close int from = open(built, O_RDONLY | O_CLOEXEC);
    al_auto_close int to = open(launcher, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    require_that(from >= 0 && to >= 0 && fstat(from, &st) == 0, built);
    for (ssize_t left = st.st_size; left > 0;) {
        ssize_t n = sendfile(to, from, NULL, (size_t)left);
        require_that(n > 0, "sendfile");
        left -= n;
    }
    setenv("AIRLOCK_LAUNCHER", launcher, 1);
}

static void become_nobody(void)
{
    copy_launcher();
    require_that(chown(launcher_dir, NOBODY, NOBODY) == 0 && setgroups(0, NULL) == 0 &&
                     setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
                     setresuid(NOBODY, NOBODY, NOBODY) == 0,
                 "cannot become nobody");
}

static void forget_launcher(void)
{
    if (launcher[0]) {
        unlink(launcher);
        rmdir(launcher_dir);
    }
}

static void test_as_configured_by_default__not_available(void **state)
{
    (void)state;
    al_test_start_with("");
    const struct al_backend *b = al_test_backend_of(AL_TEST_NATIVE);
    assert_false(b->available);
    assert_non_null(strstr(b->unavailable_reason, "not started as root"));
    assert_non_null(strstr(b->unavailable_reason, "own_uid"));
    al_test_stop();
}

static void test_less_required__claims_what_it_has(void **state)
{
    (void)state;
    al_test_start_with(LESS);
    const struct al_backend *b = al_test_backend_of(AL_TEST_NATIVE);
    if (!b->available) {
        fail_msg("%s", b->unavailable_reason);
    }
    assert_int_equal(b->isolation & ~AL_LAYERS_CGROUP,
                     AL_LAYERS_ALL & ~AL_LAYERS_CGROUP & ~AL_LAYER_OWN_UID);
    if (getenv("AIRLOCK_TEST_DELEGATED")) { /* whoever runs us has given us a cgroup */
        assert_int_equal(b->isolation & AL_LAYERS_CGROUP, AL_LAYERS_CGROUP);
    }
    assert_false(al_test_backend_of(AL_TEST_LOCAL)->available);
    al_test_stop();
}

static void small(struct al_job_spec *s)
{
    s->quotas.memory_mb = 64;
    s->quotas.pids = 8;
}

static void cpu_500ms(struct al_job_spec *s)
{
    s->quotas.cpu_ms = 500;
}

static void wall_1s(struct al_job_spec *s)
{
    s->quotas.wall_ms = 1000;
}

static void two_files(struct al_job_spec *s)
{
    static const struct al_file files[] = {
        {"a/b.py", {(const uint8_t *)"x = 7\n", 6}, 0644},
        {"tool.sh", {(const uint8_t *)"#!/bin/sh\necho tool\n", 20}, 0755},
    };
    s->files = files;
    s->n_files = 2;
}

/* As many children as there may be, which end soon, and how many that were. */
#define FORKS                                                       \
    "import os, time\nfor i in range(20):\n try: pid = os.fork()\n" \
    " except OSError: print(i, flush=True); break\n if pid == 0: time.sleep(30)"

static const struct row {
    const char *name, *language, *code;
    void (*change)(struct al_job_spec *);
    enum al_status status;
    enum al_limit limit;
    const char *out;
} rows[] = {
    {"python", "python", "print(1)", NULL, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "1\n"},
    {"node", "javascript", "console.log(1)", NULL, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "1\n"},
    {"typescript", "typescript", "const n: number = 1; console.log(n)", NULL, AL_STATUS_SUCCEEDED,
     AL_LIMIT_NONE, "1\n"},
    {"exit_code", "bash", "exit 3", NULL, AL_STATUS_FAILED, AL_LIMIT_NONE, ""},
    {"files", "bash", "./tool.sh; cat a/b.py; touch here $TMPDIR/there && stat -c %u here",
     two_files, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "tool\nx = 7\n1000\n"},
    {"wall", "bash", "setsid sleep 8317.5 & sleep 8317.5", wall_1s, AL_STATUS_TIMEOUT,
     AL_LIMIT_WALL, ""},
    {"tree_dies", "bash", "setsid sleep 8317.5 & sleep 8317.5 & echo a", NULL, AL_STATUS_SUCCEEDED,
     AL_LIMIT_NONE, "a\n"},
    {"cpu_of_a_process", "python", "while True: pass", cpu_500ms, AL_STATUS_TIMEOUT, AL_LIMIT_CPU,
     ""},

    {"nobody_else_is_there", "python",
     "import os; print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()), os.getuid())",
     NULL, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "[1, 2] 1000\n"},
    {"init_cannot_be_killed", "bash", "kill -9 1; kill -TERM 1; sleep 0.2; echo alive", NULL,
     AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "alive\n"},
    {"init_cannot_be_looked_into", "bash",
     "for f in environ mem maps fd/0; do head -c 1 /proc/1/$f 2>/dev/null && echo $f; done; echo "
     "end",
     NULL, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "end\n"},
    {"no_capabilities", "bash",
     "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status | cut -f2 | sort -u", NULL,
     AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "0000000000000000\n1\n"},
    {"root_is_read_only", "bash",
     "touch /x /usr/x /etc/x 2>/dev/null; chmod 666 /etc/passwd "
     "2>/dev/null; ls /root /home /run 2>/dev/null; echo end",
     NULL, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "end\n"},
    {"no_network", "python",
     "import socket\ns = socket.socket(); s.settimeout(2)\n"
     "try: s.connect(('192.0.2.1', 80))\nexcept OSError as e: print(e.errno)",
     NULL, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "101\n"},
    {"filter", "python",
     "import socket\ntry: socket.socket(16, 3, 0)\nexcept OSError as e: print(e.errno)", NULL,
     AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "97\n"},
};

/* What stands in where there is no cgroup; and where one is delegated, what that does. */
static const struct row without_cgroup[] = {
    {"memory_of_a_process", "python",
     "try: bytearray(100 << 20)\nexcept MemoryError: print('no memory')", small,
     AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "no memory\n"},
    {"processes_of_a_user", "python", FORKS, small, AL_STATUS_SUCCEEDED, AL_LIMIT_NONE, "7\n"},
};
static const struct row with_cgroup[] = {
    {"memory_of_the_job", "bash", "python3 -c 'bytearray(100 << 20)'; echo on", small,
     AL_STATUS_FAILED, AL_LIMIT_MEMORY, "on\n"},
    {"processes_of_the_job", "python", FORKS "\nraise SystemExit(1)", small, AL_STATUS_FAILED,
     AL_LIMIT_PIDS, "7\n"},
};

static void check(const struct row *row, struct al_backend *b)
{
    struct al_job_spec spec = al_test_spec(b, row->language, row->code);
    struct al_test_run r;
    if (row->change) {
        row->change(&spec);
    }
    al_test_run(b, &spec, NULL, &r);
    if (r.rc != 0 || r.result.status != row->status || r.result.limit_hit != row->limit) {
        fail_msg("rc %d (%s) status %d limit %d exit %d/%d (%s)\n%.400s", r.rc, r.err.text,
                 r.result.status, r.result.limit_hit, r.result.exit_kind, r.result.exit_value,
                 r.result.error, (const char *)r.out[AL_STDERR].data);
    }
    assert_string_equal((const char *)r.out[AL_STDOUT].data, row->out);
    assert_true(r.result.cpu_us > 0);
    assert_int_equal(r.result.isolation & AL_LAYER_OWN_UID, 0);
    al_test_run_finish(&r);
    assert_int_equal(al_test_count_processes("8317.5"), 0);
}

enum groups { ANY, NONE, SOME };

static void run_row(const struct row *row, enum groups groups)
{
    al_test_start_with(LESS);
    struct al_backend *b = al_test_backend_of(AL_TEST_NATIVE);
    enum groups has = b->isolation & AL_LAYERS_CGROUP ? SOME : NONE;
    bool can = (groups == ANY || groups == has) && al_backend_find_language(b, row->language);
    if (can) {
        check(row, b);
    }
    al_test_stop();
    if (!can) {
        skip();
    }
}

static void test_row(void **state)
{
    run_row(*state, ANY);
}

static void test_row_without_cgroup(void **state)
{
    run_row(*state, NONE);
}

static void test_row_with_cgroup(void **state)
{
    run_row(*state, SOME);
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

static size_t add_rows(struct CMUnitTest *to, const struct row *of, size_t n, CMUnitTestFunction fn)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = (struct CMUnitTest){
            .name = of[i].name, .test_func = fn, .initial_state = (void *)&of[i]};
    }
    return n;
}

int main(void)
{
    static struct CMUnitTest tests[2 + COUNT(rows) + COUNT(without_cgroup) + COUNT(with_cgroup)] = {
        cmocka_unit_test(test_as_configured_by_default__not_available),
        cmocka_unit_test(test_less_required__claims_what_it_has),
    };
    size_t n = 2;
    n += add_rows(tests + n, rows, COUNT(rows), test_row);
    n += add_rows(tests + n, without_cgroup, COUNT(without_cgroup), test_row_without_cgroup);
    n += add_rows(tests + n, with_cgroup, COUNT(with_cgroup), test_row_with_cgroup);
    if (geteuid() == 0) {
        become_nobody();
    }
    int failed = cmocka_run_group_tests_name("rootless", tests, NULL, NULL);
    forget_launcher();
    return failed;
}
