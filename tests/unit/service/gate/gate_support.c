#include "tests/unit/service/gate/gate_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/api/backend.h"

static const char *run_language;

const struct al_language *gate_language(const char *name)
{
    static const struct al_language languages[] = {
        {.name = "python", .version = "3", .code_file = "main.py"},
        {.name = "javascript", .version = "20", .code_file = "main.js"},
        {.name = "typescript", .version = "5", .code_file = "main.ts"},
        {.name = "bash", .version = "5", .code_file = "main.sh"},
        {.name = "other", .version = "1", .code_file = "main.other"},
        {.name = "python-next", .version = "4", .code_file = "main.py"},
    };
    for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++) {
        if (strcmp(languages[i].name, name) == 0) {
            return &languages[i];
        }
    }
    fail_msg("no language %s", name);
    return NULL;
}

struct al_job_spec gate_spec(const char *language, const char *code)
{
    return (struct al_job_spec){
        .language = gate_language(language),
        .code = {.data = (const uint8_t *)code, .len = strlen(code)},
        .network = AL_NETWORK_NONE,
    };
}

static void describe(const struct al_gate_report *report, char *to, size_t size)
{
    FILE *out = fmemopen(to, size, "w");
    assert_non_null(out);
    for (size_t i = 0; i < report->n; i++) {
        const struct al_gate_finding *f = &report->findings[i];
        fprintf(out, "%s%s %s", i > 0 ? ", " : "", f->rule, f->host);
        if (f->port) {
            fprintf(out, ":%u", f->port);
        }
        fprintf(out, " %u%s", f->line, f->blocks ? "!" : "");
        if (f->file) {
            fprintf(out, " of %s", f->file);
        }
    }
    fclose(out);
}

static void assert_block_is_first(const struct al_gate_report *report)
{
    const struct al_gate_finding *first = NULL;
    for (size_t i = report->n; i-- > 0;) {
        first = report->findings[i].blocks ? &report->findings[i] : first;
    }
    assert_ptr_equal(report->block, first);
}

void assert_found(const struct al_job_spec *spec, const char *found)
{
    al_auto_arena struct al_arena *arena = al_arena_create(1 << 20);
    char text[4096] = "";
    /* A copy of just the code's size: a read beyond it is seen. */
    uint8_t *copy = malloc(spec->code.len ? spec->code.len : 1);
    struct al_job_spec own = *spec;
    struct al_gate_report report;
    assert_non_null(copy);
    memcpy(copy, spec->code.data, spec->code.len);
    own.code.data = copy;
    int r = al_gate_scan(&own, arena, &report);
    free(copy);
    assert_int_equal(r, 0);
    assert_block_is_first(&report);
    describe(&report, text, sizeof text);
    assert_string_equal(text, found);
}

static void run_case(void **state)
{
    const struct gate_case *c = *state;
    struct al_job_spec spec = gate_spec(run_language, c->code);
    assert_found(&spec, c->found);
}

int gate_run_cases(const char *language, const struct gate_case *cases, size_t n)
{
    struct CMUnitTest *tests = calloc(n, sizeof *tests);
    run_language = language;
    for (size_t i = 0; i < n; i++) {
        tests[i] = (struct CMUnitTest){
            .name = cases[i].name, .test_func = run_case, .initial_state = (void *)&cases[i]};
    }
    int failed = _cmocka_run_group_tests(language, tests, n, NULL, NULL);
    free(tests);
    return failed;
}
