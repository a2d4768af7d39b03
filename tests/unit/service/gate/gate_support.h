/*
 * Scans one source and says in a line what was found: "url evil.com:80 2!, bare_name a.py 3" is
 * rule, host, port and line of each finding, `!` where it blocks.
 */
#pragma once

#include "service/gate/gate.h"

struct gate_case {
    const char *name;
    const char *code;
    const char *found;
};

/* By name: "python", "javascript", "typescript", "bash", "other". */
const struct al_language *gate_language(const char *name);

/* The code of a spec with policy none and no files. */
struct al_job_spec gate_spec(const char *language, const char *code);

/* Fails the test unless the scan finds just this. */
void assert_found(const struct al_job_spec *spec, const char *found);

/* Runs each case as a test of its own, in that language. */
int gate_run_cases(const char *language, const struct gate_case *cases, size_t n);

#define GATE_RUN_CASES(language, cases) \
    gate_run_cases(language, cases, sizeof(cases) / sizeof((cases)[0]))
