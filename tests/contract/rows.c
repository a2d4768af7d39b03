#include "tests/contract/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"

#define NAP          "@NAP@"
#define ROW_NAME_MAX 96

/* What a daemon may take on a busy machine to make and remove a container, beyond what a row says.
 */
#define CONTAINER_MS 5000

/* What a native cell does a container must do too, but for these. */
static const struct {
    const char *row;
    const char *why;
} not_on_docker[] = {
    {"workdir_and_tmp_share_the_disk", "two places cannot be of one tmpfs: each has disk_mb"},
    {"init_shows_no_path_of_the_host", "its init is a file of the image"},
    {"init_is_out_of_reach", "of the same user: a signal is not refused, it does nothing"},
    {"socket_buffers_are_bounded", "runc does not set that limit of cgroup v1"},
    {"host_files_are_not_there", "/sys is read-only, and the rest is the image's"},
    {"namespaces_are_its_own",
     "a user namespace is the daemon's to have, for all of its containers"},
};

/* What it becomes. */
static const char *nap(void)
{
    static char text[32];
    snprintf(text, sizeof text, "7391.%d", (int)getpid());
    return text;
}

static char *with_nap(const char *code)
{
    char *copy = calloc(1, strlen(code) * 4 + 1);
    assert_non_null(copy);
    char *to = copy;
    for (const char *at; (at = strstr(code, NAP)) != NULL; code = at + strlen(NAP)) {
        to = mempcpy(to, code, (size_t)(at - code));
        to = stpcpy(to, nap());
    }
    stpcpy(to, code);
    return copy;
}

void al_rows_check_nothing_left(const struct al_test_run *run)
{
    (void)run;
    assert_int_equal(al_test_count_processes(nap()), 0);
}

static void check_outcome(const struct al_row *row, const struct al_test_run *run)
{
    const struct al_result *r = &run->result;
    if (run->rc != 0) {
        fail_msg("the backend failed: %s", run->err.text);
    }
    if (r->status != row->status || r->reason != row->reason || r->limit_hit != row->limit ||
        (row->exit_value != AL_ANY_EXIT &&
         (r->exit_kind != row->exit_kind || r->exit_value != row->exit_value)))
    {
        fail_msg("status %d/%d limit %d exit %d/%d (%s)\nstdout: %.400s\nstderr: %.400s", r->status,
                 r->reason, r->limit_hit, r->exit_kind, r->exit_value, r->error,
                 (const char *)run->out[0].data, (const char *)run->out[1].data);
    }
}

static void check_output(const struct al_row *row, const struct al_test_run *run)
{
    const char *out = (const char *)run->out[AL_STDOUT].data;
    const char *err = (const char *)run->out[AL_STDERR].data;
    if (row->out) {
        assert_string_equal(out, row->out);
    }
    if (row->err) {
        assert_string_equal(err, row->err);
    }
    if (row->out_has && !strstr(out, row->out_has)) {
        fail_msg("stdout has no '%s': %s", row->out_has, out);
    }
    if (row->err_has && !strstr(err, row->err_has)) {
        fail_msg("stderr has no '%s': %s", row->err_has, err);
    }
}

struct state {
    const struct al_row *row;
    enum al_test_backend bit;
    struct al_backend *backend;
    char name[ROW_NAME_MAX];
};

static void test_row(void **state)
{
    const struct state *s = *state;
    const struct al_row *row = s->row;
    if (AL_TEST_IS_SANITIZED && strcmp(s->name, "firejail/no_core_for_the_hosts_handler") == 0) {
        skip(); /* a sanitizer sets that limit in the warden itself */
    }
    al_auto_free char *code = with_nap(row->code);
    struct al_job_spec spec = al_test_spec(s->backend, row->language, code);
    struct al_test_run run;
    if (row->change) {
        row->change(&spec);
    }
    al_test_run(s->backend, &spec, &row->caller, &run);
    check_outcome(row, &run);
    check_output(row, &run);
    int within_ms = row->within_ms + (s->bit == AL_TEST_DOCKER ? CONTAINER_MS : 0);
    if (row->within_ms && run.took_ms > within_ms && !al_test_is_slow()) {
        fail_msg("took %lld ms, not %d", (long long)run.took_ms, within_ms);
    }
    if (row->check) {
        row->check(&run);
    }
    al_test_run_finish(&run);
}

/* Why docker need not pass the row, or NULL. */
static const char *excuse_of_docker(const struct al_row *row)
{
    for (size_t i = 0; i < sizeof not_on_docker / sizeof not_on_docker[0]; i++) {
        if (strcmp(row->name, not_on_docker[i].row) == 0) {
            return not_on_docker[i].why;
        }
    }
    return NULL;
}

static bool holds_for(const struct al_row *row, enum al_test_backend bit,
                      const struct al_backend *backend)
{
    uint32_t capabilities = (uint32_t)(row->runs_on >> 32);
    if (capabilities) {
        return bit != AL_TEST_ECHO && (backend->capabilities & capabilities) == capabilities;
    }
    if (bit == AL_TEST_DOCKER) {
        return (row->runs_on & AL_TEST_NATIVE) && !excuse_of_docker(row);
    }
    return row->runs_on & bit;
}

/* With AIRLOCK_TEST_LANGUAGES ("bash,python") only rows of those: for a machine that lacks some. */
static bool is_asked_for(const struct al_row *row, const char *name, char **texts)
{
    const char *languages = getenv("AIRLOCK_TEST_LANGUAGES");
    bool found = !*texts;
    for (; *texts && !found; texts++) {
        found = strstr(name, *texts) != NULL;
    }
    return found && (!languages || strstr(languages, row->language));
}

static size_t choose(const struct al_row *rows, size_t n_rows, char **texts, struct state *ret)
{
    size_t n = 0;
    for (unsigned b = 0; b < AL_TEST_BACKENDS; b++) {
        enum al_test_backend bit = 1u << b;
        struct al_backend *backend = al_test_backend_of(bit);
        for (size_t i = 0; backend && i < n_rows; i++) {
            struct state *state = &ret[n];
            *state = (struct state){.row = &rows[i], .bit = bit, .backend = backend};
            snprintf(state->name, sizeof state->name, "%s/%s", backend->name, rows[i].name);
            n += holds_for(&rows[i], bit, backend) && is_asked_for(&rows[i], state->name, texts);
        }
    }
    return n;
}

static void print_claims(const char *what, const struct al_backend *backend, uint32_t bits,
                         const char *(*name)(unsigned))
{
    printf("claim %s %s:", what, backend->name);
    for (unsigned i = 0; name(i); i++) {
        printf("%s%s", bits & 1u << i ? " " : "", bits & 1u << i ? name(i) : "");
    }
    printf("\n");
}

void al_rows_print_claims(const char *suite)
{
    printf("suite %s\n", suite);
    for (unsigned b = 0; b < AL_TEST_BACKENDS; b++) {
        const struct al_backend *backend = al_test_backend_of((enum al_test_backend)(1u << b));
        if (backend) {
            print_claims("capability", backend, backend->capabilities, al_capability_name);
            print_claims("layer", backend, backend->isolation, al_layer_name);
        }
    }
    fflush(stdout);
}

static void print_excuses(const struct al_row *rows, size_t n)
{
    const struct al_backend *docker = al_test_backend_of(AL_TEST_DOCKER);
    for (size_t i = 0; docker && i < n; i++) {
        const char *why = excuse_of_docker(&rows[i]);
        if (why) {
            printf("excused %s/%s: %s\n", docker->name, rows[i].name, why);
        }
    }
    fflush(stdout);
}

int al_rows_main(const char *group, const struct al_row *rows, size_t n, int argc, char **argv)
{
    al_auto_free struct CMUnitTest *tests = calloc(n * AL_TEST_BACKENDS, sizeof *tests);
    al_auto_free struct state *states = calloc(n * AL_TEST_BACKENDS + 1, sizeof *states);
    if (!tests || !states) {
        fprintf(stderr, "out of memory\n");
        return EXIT_FAILURE;
    }
    al_test_start();
    al_rows_print_claims(group);
    print_excuses(rows, n);
    size_t n_tests = choose(rows, n, argv + (argc > 0), states);
    for (size_t i = 0; i < n_tests; i++) {
        tests[i] = (struct CMUnitTest){
            .name = states[i].name, .test_func = test_row, .initial_state = &states[i]};
    }
    int failed = _cmocka_run_group_tests(group, tests, n_tests, NULL, NULL);
    al_test_stop();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
