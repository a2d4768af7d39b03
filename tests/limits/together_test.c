/*
 * Jobs at once, each with limits of its own: each result tells its own job's limits and figures,
 * also beside those that do their worst to the machine.
 */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/limits/program.h"

#define JOBS     64
#define SLACK_US 5000000 /* of a wall limit, on a machine with 64 jobs a few processors */

struct job;

/* What becomes of a job; number i of 64 does kinds[i % n]. */
struct kind {
    const char *name;
    const char *code; /* after all jobs have met; "@" is the number that prepare gave */
    int (*prepare)(struct al_quotas *q, int i); /* sets the limit, gives the number */
    bool (*is_right)(const struct job *job);    /* besides status and limit */
    enum al_status status;
    enum al_limit limit;
};

struct job {
    pthread_t thread;
    const struct kind *kind;
    struct al_backend *backend;
    struct al_test_meeting *meeting;
    struct al_job_spec spec;
    char code[256];
    int number;
    struct al_test_run run;
};

static bool is_near(double said, double real, double percent, double slack)
{
    double off = said > real ? said - real : real - said;
    return off <= real * percent / 100 + slack;
}

/* --- the kinds --- */

/* Memory that its own limit has room for and the smallest of the others has not. */
static int prepare_fine(struct al_quotas *q, int i)
{
    q->memory_mb = 64 + (uint32_t)i;
    return 40 + i / 4;
}

static bool has_own_memory(const struct job *job)
{
    struct worker_said said;
    return worker_read(&job->run, &said) &&
           is_near((double)job->run.result.memory_peak_bytes / 1024, (double)said.memory_kib, 5,
                   0) &&
           said.memory_kib >= job->number * 1024;
}

static int prepare_memory(struct al_quotas *q, int i)
{
    q->memory_mb = 16 + (uint32_t)i / 2;
    return (int)q->memory_mb + 20;
}

static bool has_memory_limit(const struct job *job)
{
    double limit = (double)(job->spec.quotas.memory_mb << 20);
    return is_near((double)job->run.result.memory_peak_bytes, limit, 5, 0);
}

static int prepare_wall(struct al_quotas *q, int i)
{
    q->wall_ms = 4000 + 10 * i;
    return 60;
}

static bool has_wall_limit(const struct job *job)
{
    int64_t limit_us = job->spec.quotas.wall_ms * 1000, said_us = job->run.result.duration_us;
    return said_us >= limit_us && said_us <= limit_us + SLACK_US;
}

static int prepare_cpu(struct al_quotas *q, int i)
{
    q->cpu_ms = 100 + 2 * i;
    return 0;
}

static bool has_cpu_limit(const struct job *job)
{
    double limit_us = (double)job->spec.quotas.cpu_ms * 1000;
    double said_us = (double)job->run.result.cpu_us;
    return said_us >= limit_us && is_near(said_us, limit_us, 3, 4000);
}

static int prepare_pids(struct al_quotas *q, int i)
{
    q->pids = 5 + (uint32_t)i / 8;
    return 20;
}

static bool has_pids_limit(const struct job *job)
{
    return job->run.result.pids_peak == job->spec.quotas.pids;
}

static int prepare_exit(struct al_quotas *q, int i)
{
    (void)q;
    return 1 + i;
}

static bool has_own_words(const struct job *job)
{
    char want[32];
    snprintf(want, sizeof want, "ready\nnumber %d\n", job->number);
    return job->run.result.exit_value == job->number &&
           strcmp((const char *)job->run.out[AL_STDOUT].data, want) == 0;
}

static int prepare_output(struct al_quotas *q, int i)
{
    q->output_bytes = 1000 + (uint64_t)i;
    return 0;
}

static bool has_output_limit(const struct job *job)
{
    return job->run.out[AL_STDOUT].len == job->spec.quotas.output_bytes &&
           job->run.result.stdout_truncated;
}

static const struct kind kinds[] = {
    {"fine", "exec ./worker anon=@", prepare_fine, has_own_memory, AL_STATUS_SUCCEEDED,
     AL_LIMIT_NONE},
    {"memory", "exec ./worker anon=@", prepare_memory, has_memory_limit, AL_STATUS_FAILED,
     AL_LIMIT_MEMORY},
    {"wall", "sleep @", prepare_wall, has_wall_limit, AL_STATUS_TIMEOUT, AL_LIMIT_WALL},
    {"cpu", "while :; do :; done", prepare_cpu, has_cpu_limit, AL_STATUS_TIMEOUT, AL_LIMIT_CPU},
    {"pids", "exec ./worker children=@,cpu=1", prepare_pids, has_pids_limit, AL_STATUS_FAILED,
     AL_LIMIT_PIDS},
    {"exit", "echo number @; exit @", prepare_exit, has_own_words, AL_STATUS_FAILED, AL_LIMIT_NONE},
    {"output", "exec yes", prepare_output, has_output_limit, AL_STATUS_FAILED, AL_LIMIT_OUTPUT},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* --- all at once --- */

static void prepare(struct job *job, int i)
{
    struct al_quotas q = worker_spec(job->backend, "", NULL).quotas;
    q.wall_ms = 120000; /* all of them share the processors with whatever else runs */
    job->number = job->kind->prepare(&q, i);
    size_t n = (size_t)snprintf(job->code, sizeof job->code, "echo ready; read -r _; ");
    for (const char *at = job->kind->code; *at; at++) {
        n += (size_t)(*at == '@' ? snprintf(job->code + n, sizeof job->code - n, "%d", job->number)
                                 : snprintf(job->code + n, sizeof job->code - n, "%c", *at));
    }
    job->spec = worker_spec(job->backend, job->code, NULL);
    job->spec.quotas = q;
    job->spec.stdin_open = true;
}

/* None goes on before all are there. */
static void *run(void *arg)
{
    struct job *job = arg;
    const struct al_test_caller caller = {.meeting = job->meeting, .stdin_text = "\n"};
    al_test_run(job->backend, &job->spec, &caller, &job->run);
    return NULL;
}

static bool is_right(const struct job *job)
{
    const struct al_result *r = &job->run.result;
    return job->run.rc == 0 && r->status == job->kind->status && r->limit_hit == job->kind->limit &&
           job->kind->is_right(job);
}

static void test_64_at_once__each_has_its_own_limits(void **state)
{
    static struct job jobs[JOBS];
    struct al_test_meeting meeting = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .expected = JOBS};
    int wrong = 0;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.kind = &kinds[i % KINDS], .backend = *state, .meeting = &meeting};
        prepare(&jobs[i], i);
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, run, &jobs[i]), 0);
    }
    for (int i = 0; i < JOBS; i++) {
        const struct al_result *r = &jobs[i].run.result;
        pthread_join(jobs[i].thread, NULL);
        if (!is_right(&jobs[i])) {
            wrong++;
            print_error("job %d (%s %d): status %d, limit %d, exit %d, cpu %" PRId64
                        " us, duration %" PRId64 " us, memory %" PRIu64 ", pids %u: %s %.60s\n",
                        i, jobs[i].kind->name, jobs[i].number, r->status, r->limit_hit,
                        r->exit_value, r->cpu_us, r->duration_us, r->memory_peak_bytes,
                        r->pids_peak, r->error, (const char *)jobs[i].run.out[AL_STDOUT].data);
        }
        al_test_run_finish(&jobs[i].run);
    }
    assert_int_equal(wrong, 0);
}

/* --- beside the worst --- */

#define NORMAL_RUNS 8

static const char *const bombs[] = {
    ":(){ :|:& };: 2>/dev/null; sleep 60",
    "while :; do ./worker anon=200; done",
    "while :; do head -c 100M /dev/zero > a; head -c 100M /dev/zero > b; rm a b; done 2>/dev/null",
    "exec cat /dev/zero",
};
#define BOMBS (sizeof bombs / sizeof bombs[0])

struct bomb {
    pthread_t thread;
    struct al_backend *backend;
    const char *code;
    atomic_bool *stop;
};

/* Again and again: some of them end themselves. */
static void *drop_bombs(void *arg)
{
    struct bomb *bomb = arg;
    while (!atomic_load(bomb->stop)) {
        struct al_job_spec spec = worker_spec(bomb->backend, bomb->code, NULL);
        struct al_test_run r;
        spec.quotas.memory_mb = 64;
        spec.quotas.wall_ms = 1000;
        spec.quotas.output_bytes = 32 << 20;
        al_test_run(bomb->backend, &spec, NULL, &r);
        al_test_run_finish(&r);
    }
    return NULL;
}

/* Everything that a job has: a file, arguments, stdin, both outputs, an exit code. */
static bool normal_is_right(struct al_backend *backend)
{
    static const char *const args[] = {"a", "b c"};
    static const char code[] = "./worker anon=20 file=5 >/dev/null || exit 1\n"
                               "cat; echo \"$#:$2\" >&2; exit 7";
    struct al_job_spec spec = worker_spec(backend, code, NULL);
    struct al_test_run run;
    const struct al_result *r = &run.result;
    spec.args = args;
    spec.n_args = 2;
    spec.stdin_bytes = (struct al_bytes){(const uint8_t *)"input\n", 6};
    spec.quotas.wall_ms = 120000;
    al_test_run(backend, &spec, NULL, &run);
    bool right = run.rc == 0 && r->reason == AL_REASON_EXIT && r->exit_value == 7 &&
                 strcmp((const char *)run.out[AL_STDOUT].data, "input\n") == 0 &&
                 strcmp((const char *)run.out[AL_STDERR].data, "2:b c\n") == 0 &&
                 is_near((double)r->memory_peak_bytes, 25 << 20, 0, 2 << 20) && r->pids_peak == 2;
    if (!right) {
        print_error("reason %d, exit %d, memory %" PRIu64 ", pids %u: %s %s\n", r->reason,
                    r->exit_value, r->memory_peak_bytes, r->pids_peak, r->error, run.err.text);
    }
    al_test_run_finish(&run);
    return right;
}

static void test_beside_bombs__a_normal_job_is_right(void **state)
{
    struct bomb threads[BOMBS];
    atomic_bool stop = false;
    for (size_t i = 0; i < BOMBS; i++) {
        threads[i] = (struct bomb){.backend = *state, .code = bombs[i], .stop = &stop};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, drop_bombs, &threads[i]), 0);
    }
    int right = 0;
    for (int i = 0; i < NORMAL_RUNS; i++) {
        right += normal_is_right(*state);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < BOMBS; i++) {
        pthread_join(threads[i].thread, NULL);
    }
    assert_int_equal(right, NORMAL_RUNS);
}

int main(void)
{
    worker_init();
    al_test_start();
    struct al_backend *native = al_test_backend_of(AL_TEST_NATIVE);
    struct al_backend *local = al_test_backend_of(AL_TEST_LOCAL);
    const struct CMUnitTest tests[] = {
        {"native/64_at_once", test_64_at_once__each_has_its_own_limits, NULL, NULL, native},
        {"local/64_at_once", test_64_at_once__each_has_its_own_limits, NULL, NULL, local},
        {"native/beside_bombs", test_beside_bombs__a_normal_job_is_right, NULL, NULL, native},
        {"local/beside_bombs", test_beside_bombs__a_normal_job_is_right, NULL, NULL, local},
    };
    int failed = cmocka_run_group_tests_name("together", tests, NULL, NULL);
    al_test_stop();
    return failed;
}
