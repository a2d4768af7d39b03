/*
 * Programs run twice: in an interpreter that is started for them, and in one that was started
 * before they were known. Nothing that they print, and nothing of how they end, tells which. That
 * each run was of the kind it should be is the launcher's word, and that the word is true is shown
 * once by what is documented to differ.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/launcher/client.h"
#include "backends/launcher/may_prestart.h"
#include "backends/launcher/message.h"
#include "backends/native/native.h"
#include "tests/differential/cases.h"
#include "tests/support/runner.h"

#define THREADS   4
#define TRIES     200 /* until a started interpreter waits */
#define TRY_US    20000
#define DUMP_SIZE 300

/* --- two launchers: one that starts interpreters ahead, and one that never does --- */

struct side {
    char dir[40];
    struct al_launcher *launcher;
    struct al_backend *backend;
};

static struct side cold, ahead;

static void start_side(struct side *side, const char *config)
{
    char path[64];
    struct al_err err = {0};
    const char *launcher = getenv("AIRLOCK_LAUNCHER");
    launcher = launcher ? launcher : "backends/launcher/airlock-launcher"; /* in the runfiles */
    snprintf(side->dir, sizeof side->dir, "/tmp/airlock-diff-XXXXXX");
    if (!mkdtemp(side->dir)) {
        perror("mkdtemp");
        exit(EXIT_FAILURE);
    }
    snprintf(path, sizeof path, "%s/conf", side->dir);
    FILE *f = fopen(path, "we");
    bool written = f && fputs(config, f) >= 0;
    written = f && fclose(f) == 0 && written;
    if (!written || al_launcher_start(launcher, path, side->dir, &side->launcher, &err) < 0) {
        fprintf(stderr, "launcher: %s\n", written ? err.text : path);
        exit(EXIT_FAILURE);
    }
    side->backend = al_native_create(side->launcher);
    if (!side->backend || !side->backend->available) {
        fprintf(stderr, "native: %s\n",
                side->backend ? side->backend->unavailable_reason : "out of memory");
        exit(EXIT_FAILURE);
    }
}

static void stop_side(struct side *side)
{
    char path[64];
    al_backend_destroy(side->backend);
    al_launcher_destroy(side->launcher);
    snprintf(path, sizeof path, "%s/conf", side->dir);
    unlink(path);
    rmdir(side->dir);
}

/* --- running --- */

static struct test_case cases[CASES_MAX];
static char whys[CASES_MAX][4096]; /* what is wrong with a case; "" for nothing */
static size_t n_cases;
static _Atomic size_t next_case;

static void set_quotas(struct al_quotas *to, const struct al_quotas *from)
{
    to->cpu_ms = from->cpu_ms ? from->cpu_ms : to->cpu_ms;
    to->wall_ms = from->wall_ms ? from->wall_ms : to->wall_ms;
    to->memory_mb = from->memory_mb ? from->memory_mb : to->memory_mb;
    to->pids = from->pids ? from->pids : to->pids;
    to->file_size_mb = from->file_size_mb ? from->file_size_mb : to->file_size_mb;
    to->open_files = from->open_files ? from->open_files : to->open_files;
    to->disk_mb = from->disk_mb ? from->disk_mb : to->disk_mb;
    to->output_bytes = from->output_bytes ? from->output_bytes : to->output_bytes;
}

static struct al_job_spec spec_of(const struct test_case *c, const struct side *side)
{
    struct al_job_spec spec = al_test_spec(side->backend, c->language, "");
    spec.code = c->code;
    spec.args = c->args;
    spec.n_args = c->n_args;
    spec.env = c->env;
    spec.n_env = c->n_env;
    spec.files = c->files;
    spec.n_files = c->n_files;
    spec.stdin_bytes = c->stdin_bytes;
    spec.inputs_json = c->inputs_json;
    spec.quotas.wall_ms = 30000; /* no case is about a busy machine */
    set_quotas(&spec.quotas, &c->quotas);
    return spec;
}

static void run_once(const struct test_case *c, const struct side *side, struct al_test_run *ret)
{
    const struct al_test_caller caller = {.signal_on_output = c->signal_on_output};
    struct al_job_spec spec = spec_of(c, side);
    al_test_run(side->backend, &spec, &caller, ret);
}

/* Again until a started interpreter was there to be had. */
static void run_ahead(const struct test_case *c, struct al_test_run *ret)
{
    for (int i = 0;; i++) {
        run_once(c, &ahead, ret);
        if (ret->rc < 0 || ret->result.prestarted || c->cold || i == TRIES) {
            return;
        }
        al_test_run_finish(ret);
        usleep(TRY_US);
    }
}

/* --- judging --- */

static bool is_equal(const struct al_buf *a, const struct al_buf *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* Both texts from a little before their first difference. */
static void show_difference(const char *what, const struct al_buf *a, const struct al_buf *b,
                            char *why)
{
    size_t at = 0, shorter = a->len < b->len ? a->len : b->len;
    while (at < shorter && a->data[at] == b->data[at]) {
        at++;
    }
    size_t from = at < DUMP_SIZE / 2 ? 0 : at - DUMP_SIZE / 2;
    snprintf(why, sizeof whys[0],
             "%s differs at byte %zu (of %zu and %zu)\n--- for it:\n%.*s\n--- ahead:\n%.*s", what,
             at, a->len, b->len, DUMP_SIZE, (const char *)a->data + from, DUMP_SIZE,
             (const char *)b->data + from);
}

static bool ends_as_expected(const struct test_case *c, const struct al_test_run *run, char *why)
{
    const struct al_result *r = &run->result;
    if (run->rc == 0 && r->reason != AL_REASON_BACKEND && r->limit_hit == c->limit &&
        (c->exit_kind == AL_EXIT_NONE ||
         (r->exit_kind == c->exit_kind && r->exit_value == c->exit_value)))
    {
        return true;
    }
    snprintf(why, sizeof whys[0],
             "rc %d (%.100s) reason %d limit %d exit %d/%d prestarted %d (%.100s)\nstdout: "
             "%.600s\nstderr: %.1200s",
             run->rc, run->err.text, r->reason, r->limit_hit, r->exit_kind, r->exit_value,
             r->prestarted, r->error, (const char *)run->out[0].data,
             (const char *)run->out[1].data);
    return false;
}

static bool ends_alike(const struct al_result *a, const struct al_result *b, char *why)
{
    const struct {
        const char *what;
        int64_t a, b;
    } fields[] = {
        {"status", a->status, b->status},
        {"reason", a->reason, b->reason},
        {"limit_hit", a->limit_hit, b->limit_hit},
        {"exit_kind", a->exit_kind, b->exit_kind},
        {"exit_value", a->exit_value, b->exit_value},
        {"stdout_truncated", a->stdout_truncated, b->stdout_truncated},
        {"stderr_truncated", a->stderr_truncated, b->stderr_truncated},
        {"isolation", a->isolation, b->isolation},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].a != fields[i].b) {
            snprintf(why, sizeof whys[0], "%s: %lld for it, %lld ahead", fields[i].what,
                     (long long)fields[i].a, (long long)fields[i].b);
            return false;
        }
    }
    return true;
}

static void compare(const struct test_case *c, const struct al_test_run *for_it,
                    const struct al_test_run *was_ahead, char *why)
{
    if (!ends_as_expected(c, for_it, why) || !ends_as_expected(c, was_ahead, why) ||
        !ends_alike(&for_it->result, &was_ahead->result, why))
    {
        return;
    }
    if (!is_equal(&for_it->out[AL_STDERR], &was_ahead->out[AL_STDERR])) {
        show_difference("stderr", &for_it->out[AL_STDERR], &was_ahead->out[AL_STDERR], why);
        return;
    }
    bool same = is_equal(&for_it->out[AL_STDOUT], &was_ahead->out[AL_STDOUT]);
    if (!same && c->expectation == IS_SAME) {
        show_difference("stdout", &for_it->out[AL_STDOUT], &was_ahead->out[AL_STDOUT], why);
    } else if (same && c->expectation != IS_SAME) {
        snprintf(why, sizeof whys[0], "stdout is the same: %.300s",
                 (const char *)for_it->out[AL_STDOUT].data);
    }
}

/* Were two jobs to share a hash seed or an address, a started interpreter would be a clone. */
static void compare_two_jobs(const struct al_test_run *a, const struct al_test_run *b, char *why)
{
    if (!a->result.prestarted || !b->result.prestarted ||
        is_equal(&a->out[AL_STDOUT], &b->out[AL_STDOUT]))
    {
        snprintf(why, sizeof whys[0], "the same in two started interpreters: %.300s",
                 (const char *)a->out[AL_STDOUT].data);
    }
}

static bool may_be_prestarted(const struct al_job_spec *spec)
{
    static const struct {
        const char *language;
        enum al_prestart kind;
    } kinds[] = {
        {"python", AL_PRESTART_PYTHON},
        {"javascript", AL_PRESTART_NODE},
        {"bash", AL_PRESTART_BASH},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(spec->language->name, kinds[i].language) == 0) {
            return al_job_may_prestart(spec) & 1u << kinds[i].kind;
        }
    }
    return false;
}

static bool is_of_its_kind(const struct test_case *c, const struct al_test_run *for_it,
                           const struct al_test_run *was_ahead, char *why)
{
    struct al_job_spec spec = spec_of(c, &ahead);
    bool may = may_be_prestarted(&spec);
    if (may != c->cold && !for_it->result.prestarted && was_ahead->result.prestarted == may) {
        return true;
    }
    snprintf(why, sizeof whys[0], "may be started ahead: %d; was: %d, %d (%s)", may,
             for_it->result.prestarted, was_ahead->result.prestarted, was_ahead->result.error);
    return false;
}

static void run_case(const struct test_case *c, char *why)
{
    struct al_test_run for_it, was_ahead, another;
    run_once(c, &cold, &for_it);
    run_ahead(c, &was_ahead);
    if (is_of_its_kind(c, &for_it, &was_ahead, why)) {
        compare(c, &for_it, &was_ahead, why);
    }
    if (c->expectation == VARIES && why[0] == '\0') {
        run_ahead(c, &another);
        compare_two_jobs(&was_ahead, &another, why);
        al_test_run_finish(&another);
    }
    al_test_run_finish(&for_it);
    al_test_run_finish(&was_ahead);
}

static void *work(void *unused)
{
    for (size_t i; (i = next_case++) < n_cases;) {
        run_case(&cases[i], whys[i]);
    }
    return unused;
}

static int run_all(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}

static void test_case_is_alike(void **state)
{
    const char *why = *state;
    if (why[0] != '\0') {
        fail_msg("%s", why);
    }
}

/* differential_test FILE...; of the cases in them all, or those whose name contains the text that
 * the environment has as AIRLOCK_CASES. */
int main(int argc, char **argv)
{
    static struct CMUnitTest tests[CASES_MAX];
    const char *only = getenv("AIRLOCK_CASES");
    size_t kept = 0;
    for (int i = 1; i < argc; i++) {
        n_cases = cases_read(argv[i], cases, n_cases);
    }
    for (size_t i = 0; i < n_cases; i++) {
        if (!only || strstr(cases[i].name, only)) {
            cases[kept] = cases[i];
            tests[kept] = (struct CMUnitTest){.name = cases[kept].name,
                                              .test_func = test_case_is_alike,
                                              .initial_state = whys[kept]};
            kept++;
        }
    }
    n_cases = kept;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL); /* as airlockd does */
    start_side(&cold, "[cells]\nprestarted = 0\n");
    start_side(&ahead, "[cells]\nprestarted = 8\n");
    int failed = _cmocka_run_group_tests("differential", tests, n_cases, run_all, NULL);
    stop_side(&cold);
    stop_side(&ahead);
    return failed || n_cases == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
