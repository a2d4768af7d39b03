/*
 * Many jobs at once: every result is that of its own job, and nothing of the machine's being busy
 * (EBUSY at rmdir, EAGAIN or EPERM at clone) ever surfaces.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/runner.h"

#define THREADS_MAX 16

/* Fewer where it is slow, or they meet their wall limits. */
static struct {
    int threads, jobs, burst;
} count = {.threads = THREADS_MAX, .jobs = 20, .burst = 30};

struct worker {
    struct al_backend *backend;
    int number;
    int wrong;
    char why[400]; /* of the first wrong one */
};

static void check(struct worker *w, const struct al_test_run *run, bool right)
{
    if (!right && w->wrong++ == 0) {
        snprintf(w->why, sizeof w->why,
                 "rc %d (%.100s) status %d/%d limit %d exit %d/%d (%.60s): %.40s", run->rc,
                 run->err.text, run->result.status, run->result.reason, run->result.limit_hit,
                 run->result.exit_kind, run->result.exit_value, run->result.error,
                 (const char *)run->out[AL_STDOUT].data);
    }
}

static bool succeeded(const struct al_test_run *run)
{
    return run->rc == 0 && run->result.status == AL_STATUS_SUCCEEDED;
}

/* Prints who it is, twice on each channel, and ends with a code of its own. */
static void run_own_words(struct worker *w, int i)
{
    char code[200], want[64];
    int exit_code = 1 + (w->number * count.jobs + i) % 100;
    snprintf(code, sizeof code, "echo %d-%d; echo e%d-%d >&2; echo %d-%d; exit %d", w->number, i,
             w->number, i, w->number, i, exit_code);
    snprintf(want, sizeof want, "%d-%d\n%d-%d\n", w->number, i, w->number, i);
    struct al_job_spec spec = al_test_spec(w->backend, "bash", code);
    struct al_test_run run;
    al_test_run(w->backend, &spec, NULL, &run);
    check(w, &run,
          run.rc == 0 && run.result.status == AL_STATUS_FAILED &&
              run.result.reason == AL_REASON_EXIT && run.result.exit_value == exit_code &&
              strcmp((const char *)run.out[AL_STDOUT].data, want) == 0);
    al_test_run_finish(&run);
}

/* Stdin goes through and comes back whole. */
static void run_cat(struct worker *w, int i)
{
    static const uint8_t zeros[300000];
    struct al_job_spec spec = al_test_spec(w->backend, "bash", "cat");
    spec.stdin_bytes = (struct al_bytes){zeros, sizeof zeros - (size_t)i};
    struct al_test_run run;
    al_test_run(w->backend, &spec, NULL, &run);
    check(w, &run, succeeded(&run) && run.out[AL_STDOUT].len == spec.stdin_bytes.len);
    al_test_run_finish(&run);
}

/* Killed in mid-run, with a tree of its own. */
static void run_cancelled(struct worker *w)
{
    static const struct al_test_caller caller = {.cancel_on_output = true};
    struct al_job_spec spec =
        al_test_spec(w->backend, "bash", "sleep 6174.5 & setsid sleep 6174.5 & echo; wait");
    struct al_test_run run;
    al_test_run(w->backend, &spec, &caller, &run);
    check(w, &run, run.rc == 0 && run.result.status == AL_STATUS_KILLED);
    al_test_run_finish(&run);
}

static void run_over_memory(struct worker *w)
{
    struct al_job_spec spec = al_test_spec(w->backend, "python", "b = bytearray(100 << 20)");
    spec.quotas.memory_mb = 32;
    struct al_test_run run;
    al_test_run(w->backend, &spec, NULL, &run);
    check(w, &run, run.rc == 0 && run.result.limit_hit == AL_LIMIT_MEMORY);
    al_test_run_finish(&run);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < count.jobs; i++) {
        if (i % 5 == 3) {
            run_cat(w, i);
        } else if (i % 10 == 4) {
            run_cancelled(w);
        } else if (i % 10 == 9) {
            run_over_memory(w);
        } else {
            run_own_words(w, i);
        }
    }
    return NULL;
}

static void test_threads_of_jobs(void **state)
{
    struct al_backend *backend = *state;
    static struct worker workers[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    for (int i = 0; i < count.threads; i++) {
        workers[i] = (struct worker){.backend = backend, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < count.threads; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < count.threads; i++) {
        if (workers[i].wrong > 0) {
            fail_msg("thread %d: %d wrong, the first: %s", i, workers[i].wrong, workers[i].why);
        }
    }
    assert_int_equal(al_test_count_processes("6174.5"), 0);
}

/* One at a time, but without a breath between: figures of one run do not show in the next. */
static void test_burst__figures_are_each_runs_own(void **state)
{
    struct al_backend *backend = *state;
    for (int i = 0; i < count.burst; i++) {
        bool large = i % 2 == 0;
        struct al_job_spec spec =
            al_test_spec(backend, "python",
                         large ? "b = bytearray(150 << 20)\nwhile len(b) == 0: pass" : "pass");
        struct al_test_run run;
        al_test_run(backend, &spec, NULL, &run);
        assert_int_equal(run.rc, 0);
        assert_int_equal(run.result.status, AL_STATUS_SUCCEEDED);
        assert_int_equal(run.result.memory_peak_bytes > 100 << 20, large);
        al_test_run_finish(&run);
    }
}

/* parallel_test [PATTERN]: all, or those whose name matches. */
int main(int argc, char **argv)
{
    if (al_test_is_slow()) {
        count.threads = 4;
        count.jobs = 10;
        count.burst = 6;
    }
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    al_test_start();
    struct al_backend *native = al_test_backend_of(AL_TEST_NATIVE);
    struct al_backend *local = al_test_backend_of(AL_TEST_LOCAL);
    struct al_backend *bubblewrap = al_test_backend_of(AL_TEST_BUBBLEWRAP);
    struct al_backend *firejail = al_test_backend_of(AL_TEST_FIREJAIL);
    const struct CMUnitTest tests[] = {
        {"native/threads", test_threads_of_jobs, NULL, NULL, native},
        {"local/threads", test_threads_of_jobs, NULL, NULL, local},
        {"bubblewrap/threads", test_threads_of_jobs, NULL, NULL, bubblewrap},
        {"firejail/threads", test_threads_of_jobs, NULL, NULL, firejail},
        {"native/burst", test_burst__figures_are_each_runs_own, NULL, NULL, native},
        {"local/burst", test_burst__figures_are_each_runs_own, NULL, NULL, local},
        {"bubblewrap/burst", test_burst__figures_are_each_runs_own, NULL, NULL, bubblewrap},
        {"firejail/burst", test_burst__figures_are_each_runs_own, NULL, NULL, firejail},
    };
    int failed = cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
    al_test_stop();
    return failed;
}
