/*
 * What a result says of a program beside what the program has really done, as it measured itself
 * (worker.c): memory within 5 %, CPU and wall time within 3 % and one scheduler tick. And which
 * limit ended it, and how far beyond the limit it came.
 *
 * The machine may be busy: what is compared are two measurements of the same run, never a nominal
 * value, and a row has some attempts at it, since both clocks are read by processes that may
 * have to wait for a processor. An account that is wrong is wrong each time.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/limits/program.h"

#define MEMORY_PERCENT 5
#define TIME_PERCENT   3
#define TICK_US        4000 /* CONFIG_HZ=250, Debian's */
#define REPORT_US      2000 /* worker.c: how old its last words may be */
#define ATTEMPTS       12
#define REPEATS        5 /* for a median */

enum {
    MEMORY = 1 << 0,
    CPU = 1 << 1,
    WALL = 1 << 2,
    TIMES = CPU | WALL,
};

struct row {
    const char *name;
    unsigned backends;                   /* enum al_test_backend bits */
    const char *steps[WORKER_STEPS_MAX]; /* of the worker */
    const char *code;                    /* in its place, for bash */
    unsigned compare;                    /* MEMORY | CPU | WALL */
    uint32_t pids;                       /* that it had at a time; 0: not looked at */
    struct al_quotas quotas;             /* what is not 0 takes the default's place */
    enum al_limit limit;
};

#define PYTHON                                                                       \
    "import resource, time\n"                                                        \
    "b = bytearray(80 << 20)\n"                                                      \
    "while time.process_time() < 0.1: pass\n"                                        \
    "kib = [l.split()[1] for l in open('/proc/self/status') if 'RssAnon' in l][0]\n" \
    "del b\n"                                                                        \
    "print(kib, int(time.process_time() * 1e6), 0)\n"

static const struct row rows[] = {
    /* memory, of every kind and in every place */
    {"anonymous", AL_TEST_CELLS, {"anon=100"}, .compare = MEMORY | CPU, .pids = 1},
    {"shared", AL_TEST_CELLS, {"shared=100"}, .compare = MEMORY | CPU},
    {"files", AL_TEST_CELLS, {"file=60"}, .compare = MEMORY | CPU},
    {"all_kinds", AL_TEST_CELLS, {"anon=60", "shared=40", "file=60"}, .compare = MEMORY | CPU},
    {"in_a_child", AL_TEST_CELLS, {"children=1,anon=100"}, .compare = MEMORY | CPU, .pids = 2},
    {"in_children", AL_TEST_CELLS, {"children=8,anon=20"}, .compare = MEMORY | CPU, .pids = 9},
    {"in_parent_and_children",
     AL_TEST_SANDBOXES,
     {"anon=60", "children=4,anon=20", "file=20"},
     .compare = MEMORY | CPU,
     .pids = 5},
    {"given_back_is_in_the_peak",
     AL_TEST_SANDBOXES,
     {"anon=150", "drop", "anon=20"},
     .compare = MEMORY | CPU},
    {"almost_all_of_it",
     AL_TEST_SANDBOXES,
     {"anon=58"},
     .compare = MEMORY | CPU,
     .quotas.memory_mb = 64},
    /* A tool that starts programs takes more than that for itself. */
    {"least_memory",
     AL_TEST_LOCAL | AL_TEST_NATIVE,
     {"cpu=10"},
     .compare = CPU,
     .quotas.memory_mb = 1},

    /* time */
    {"nothing", AL_TEST_CELLS, {"cpu=0"}, .compare = CPU, .pids = 1},
    {"spins", AL_TEST_CELLS, {"cpu=600"}, .compare = TIMES},
    {"sleeps", AL_TEST_CELLS, {"sleep=600"}, .compare = TIMES},
    {"spins_and_sleeps", AL_TEST_CELLS, {"cpu=300", "sleep=300"}, .compare = TIMES},
    {"spins_in_threads", AL_TEST_CELLS, {"threads=4,cpu=200"}, .compare = TIMES, .pids = 5},
    {"spins_in_children", AL_TEST_CELLS, {"children=4,cpu=200"}, .compare = TIMES, .pids = 5},
    {"many_short_children", AL_TEST_CELLS, {"spawns=300"}, .compare = TIMES, .pids = 2},
    {"mixture",
     AL_TEST_CELLS,
     {"anon=50", "children=3,anon=20", "cpu=200", "file=40", "threads=8,cpu=20", "sleep=100"},
     .compare = MEMORY | TIMES,
     .pids = 9},
    /* The interpreter's own start is the program's. */
    {"python", AL_TEST_CELLS, .code = "exec python3 -c \"" PYTHON "\"", .compare = MEMORY | CPU},

    /* limits, each before all others */
    {"cpu_before_wall",
     AL_TEST_CELLS,
     {"report"},
     .compare = CPU,
     .quotas = {.cpu_ms = 500, .wall_ms = 9000},
     .limit = AL_LIMIT_CPU},
    {"cpu_of_threads_before_wall",
     AL_TEST_CELLS,
     {"threads=4,report"},
     .quotas = {.cpu_ms = 500, .wall_ms = 9000},
     .limit = AL_LIMIT_CPU},
    {"least_cpu",
     AL_TEST_CELLS,
     {"report"},
     .compare = CPU,
     .quotas = {.cpu_ms = 100},
     .limit = AL_LIMIT_CPU},
    {"wall_before_cpu",
     AL_TEST_CELLS,
     {"report"},
     .compare = CPU,
     .quotas = {.cpu_ms = 5000, .wall_ms = 500},
     .limit = AL_LIMIT_WALL},
    {"sleeps_into_wall",
     AL_TEST_CELLS,
     {"sleep=30000"},
     .quotas = {.cpu_ms = 100, .wall_ms = 500},
     .limit = AL_LIMIT_WALL},
    {"memory", AL_TEST_CELLS, {"anon=100"}, .quotas.memory_mb = 64, .limit = AL_LIMIT_MEMORY},
    {"memory_of_files_and_more",
     AL_TEST_CELLS,
     {"file=40", "anon=40"},
     .quotas.memory_mb = 64,
     .limit = AL_LIMIT_MEMORY},
    {"memory_of_a_child_and_its_parent_goes_on", AL_TEST_CELLS,
     .code = "./worker anon=100; ./worker cpu=100", .quotas.memory_mb = 64,
     .limit = AL_LIMIT_MEMORY},
    {"memory_of_children_together", AL_TEST_CELLS,
     .code = "for i in 1 2 3; do ./worker anon=30 sleep=500 & done; wait", .quotas.memory_mb = 64,
     .limit = AL_LIMIT_MEMORY},
    {"pids",
     AL_TEST_CELLS,
     {"children=20,cpu=1"},
     .pids = 8,
     .quotas.pids = 8,
     .limit = AL_LIMIT_PIDS},
    {"fork_bomb_into_wall", AL_TEST_CELLS, .code = ":(){ :|:& };: 2>/dev/null; sleep 30",
     .pids = 32, .quotas = {.pids = 32, .wall_ms = 500}, .limit = AL_LIMIT_WALL},
    {"output", AL_TEST_CELLS, .code = "exec yes", .quotas.output_bytes = 1000,
     .limit = AL_LIMIT_OUTPUT},
};
#define ROWS (sizeof rows / sizeof rows[0])

/* What a native cell keeps and measures a container must too, but for the peak of processes (among
 * which runc's own would be) and less memory than any container may have. */
static unsigned backends_of(const struct row *row)
{
    bool docker = (row->backends & AL_TEST_NATIVE) && row->quotas.memory_mb != 1;
    return row->backends | (docker ? AL_TEST_DOCKER : 0);
}

static bool is_docker(const struct al_backend *backend)
{
    return strcmp(backend->name, "docker") == 0;
}

/* --- one run --- */

static struct al_job_spec spec_of(const struct al_backend *backend, const struct row *row)
{
    struct al_job_spec spec = worker_spec(backend, row->code, row->steps);
    const struct al_quotas *q = &row->quotas;
    spec.quotas.cpu_ms = q->cpu_ms ? q->cpu_ms : spec.quotas.cpu_ms;
    spec.quotas.wall_ms = q->wall_ms ? q->wall_ms : spec.quotas.wall_ms;
    spec.quotas.memory_mb = q->memory_mb ? q->memory_mb : spec.quotas.memory_mb;
    spec.quotas.pids = q->pids ? q->pids : spec.quotas.pids;
    spec.quotas.output_bytes = q->output_bytes ? q->output_bytes : spec.quotas.output_bytes;
    return spec;
}

static bool is_near(int64_t said, int64_t real, int percent, int64_t slack)
{
    return llabs(said - real) <= real * percent / 100 + slack;
}

static bool is_right(const struct row *row, const struct al_test_run *run,
                     const struct worker_said *own)
{
    const struct al_result *r = &run->result;
    int64_t slack_us = TICK_US + (row->limit != AL_LIMIT_NONE ? REPORT_US : 0);
    bool right = true;
    if (row->compare & MEMORY) {
        int64_t said_kib = (int64_t)(r->memory_peak_bytes / 1024);
        right &= is_near(said_kib, own->memory_kib, MEMORY_PERCENT, 0);
    }
    if (row->compare & CPU) {
        right &= is_near(r->cpu_us, own->cpu_us, TIME_PERCENT, slack_us);
    }
    if (row->compare & WALL) {
        right &= is_near(r->duration_us, own->wall_us, TIME_PERCENT, slack_us);
    }
    return right;
}

/* A limit is a promise to the others too: how far beyond it may a program come? */
static bool is_within_limit(const struct al_job_spec *spec, const struct al_result *r)
{
    int64_t cpu_us = spec->quotas.cpu_ms * 1000, wall_us = spec->quotas.wall_ms * 1000;
    uint64_t bytes = (uint64_t)spec->quotas.memory_mb << 20;
    switch (r->limit_hit) {
    case AL_LIMIT_CPU:
        return r->cpu_us >= cpu_us && is_near(r->cpu_us, cpu_us, TIME_PERCENT, TICK_US);
    case AL_LIMIT_WALL:
        return r->duration_us >= wall_us && is_near(r->duration_us, wall_us, TIME_PERCENT, TICK_US);
    case AL_LIMIT_MEMORY:
        return is_near((int64_t)r->memory_peak_bytes, (int64_t)bytes, MEMORY_PERCENT, 0);
    default:
        return true;
    }
}

static void show(const struct row *row, const struct al_test_run *run,
                 const struct worker_said *own)
{
    const struct al_result *r = &run->result;
    print_message("%s: memory %.2f of %.2f MiB, cpu %.2f of %.2f ms, wall %.2f of %.2f ms, "
                  "pids %u\n",
                  row->name, (double)r->memory_peak_bytes / (1 << 20),
                  (double)own->memory_kib / 1024, (double)r->cpu_us / 1000,
                  (double)own->cpu_us / 1000, (double)r->duration_us / 1000,
                  (double)own->wall_us / 1000, r->pids_peak);
}

/* True when the figures are right; fails the test for what no noise can excuse. */
static bool attempt(const struct row *row, struct al_backend *backend)
{
    struct al_job_spec spec = spec_of(backend, row);
    struct al_test_run run;
    struct worker_said own = {0};
    al_test_run(backend, &spec, NULL, &run);
    const struct al_result *r = &run.result;
    assert_int_equal(run.rc, 0);
    if (r->limit_hit != row->limit ||
        (r->status == AL_STATUS_SUCCEEDED) != (row->limit == AL_LIMIT_NONE))
    {
        fail_msg("status %d, limit %d, exit %d: %s %s", r->status, r->limit_hit, r->exit_value,
                 r->error, (const char *)run.out[AL_STDERR].data);
    }
    if (!worker_read(&run, &own) && row->compare) {
        fail_msg("the program did not say what it has done");
    }
    if (row->pids && (r->pids_peak > 0 || !is_docker(backend))) {
        assert_int_equal(r->pids_peak, row->pids);
    }
    show(row, &run, &own);
    bool right = is_right(row, &run, &own) && is_within_limit(&spec, r);
    al_test_run_finish(&run);
    return right;
}

struct state {
    const struct row *row;
    struct al_backend *backend;
};

static void test_row(void **state)
{
    const struct state *s = *state;
    for (int i = 0; i < ATTEMPTS; i++) {
        if (attempt(s->row, s->backend)) {
            return;
        }
    }
    fail_msg("the figures are wrong, %d times", ATTEMPTS);
}

/* --- what is not the program's --- */

#define BULKY_FILES 200

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* CPU time of a program that does nothing: the median of a few. */
static int64_t idle_cpu_us(struct al_backend *backend, const struct al_file *files, size_t n)
{
    int64_t us[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        struct al_job_spec spec = al_test_spec(backend, "bash", ":");
        struct al_test_run run;
        spec.files = files;
        spec.n_files = n;
        al_test_run(backend, &spec, NULL, &run);
        assert_int_equal(run.rc, 0);
        assert_int_equal(run.result.status, AL_STATUS_SUCCEEDED);
        us[i] = run.result.cpu_us;
        al_test_run_finish(&run);
    }
    qsort(us, REPEATS, sizeof us[0], compare_int64);
    return us[REPEATS / 2];
}

/* 16 MiB in many folders take longer to unpack than the program to run. */
static void test_bulky_request__unpacking_is_not_charged(void **state)
{
    static uint8_t content[(16 << 20) / BULKY_FILES];
    static char names[BULKY_FILES][32];
    static struct al_file files[BULKY_FILES];
    for (int i = 0; i < BULKY_FILES; i++) {
        snprintf(names[i], sizeof names[i], "folder%d/file%d", i, i);
        files[i] = (struct al_file){names[i], {content, sizeof content}, 0644};
    }
    int64_t empty_us = idle_cpu_us(*state, NULL, 0);
    int64_t bulky_us = idle_cpu_us(*state, files, BULKY_FILES);
    print_message("idle: cpu %.2f ms, with 16 MiB of files %.2f ms\n", (double)empty_us / 1000,
                  (double)bulky_us / 1000);
    assert_true(empty_us > 0);
    assert_true(is_near(bulky_us, empty_us, 0, TICK_US));
}

/* limits_test [BACKEND/ROW]: all, or those whose name contains the text. */
int main(int argc, char **argv)
{
    static struct CMUnitTest tests[ROWS * AL_TEST_BACKENDS + 1];
    static struct state states[ROWS * AL_TEST_BACKENDS];
    static char names[ROWS * AL_TEST_BACKENDS][96];
    size_t n = 0;
    worker_init();
    al_test_start();
    for (unsigned b = 0; b < AL_TEST_BACKENDS; b++) {
        struct al_backend *backend = al_test_backend_of((enum al_test_backend)(1u << b));
        for (size_t i = 0; backend && i < ROWS; i++) {
            snprintf(names[n], sizeof names[n], "%s/%s", backend->name, rows[i].name);
            if (!(backends_of(&rows[i]) & (1u << b)) || (argc > 1 && !strstr(names[n], argv[1]))) {
                continue;
            }
            states[n] = (struct state){&rows[i], backend};
            tests[n] = (struct CMUnitTest){
                .name = names[n], .test_func = test_row, .initial_state = &states[n]};
            n++;
        }
    }
    if (argc == 1) {
        tests[n++] = (struct CMUnitTest){.name = "native/bulky_request",
                                         .test_func = test_bulky_request__unpacking_is_not_charged,
                                         .initial_state = al_test_backend_of(AL_TEST_NATIVE)};
    }
    int failed = _cmocka_run_group_tests("limits", tests, n, NULL, NULL);
    al_test_stop();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
