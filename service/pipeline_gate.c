#include "service/pipeline_gate.h"

#include <stdlib.h>
#include <string.h>

#include "proto/wire/arena.h"
#include "service/gate/gate.h"

/* What the findings of the largest report take. */
#define REPORT_BYTES_MAX (4u << 20)

/* A malloc'ed copy, strings and all, of the findings that did not stop the job; they outlive the
 * arena. */
static struct al_job_finding *copy_findings(const struct al_gate_report *report, bool warn,
                                            size_t *ret_n)
{
    size_t size = report->n * sizeof(struct al_job_finding);
    for (size_t i = 0; i < report->n; i++) {
        size += strlen(report->findings[i].host) + 1;
    }
    struct al_job_finding *copy = malloc(size ? size : 1);
    char *strings = copy ? (char *)(copy + report->n) : NULL;
    *ret_n = 0;
    for (size_t i = 0; copy && i < report->n; i++) {
        const struct al_gate_finding *from = &report->findings[i];
        if (!from->blocks || warn) {
            size_t len = strlen(from->host) + 1;
            copy[(*ret_n)++] = (struct al_job_finding){
                .host = memcpy(strings, from->host, len), .rule = from->rule, .line = from->line};
            strings += len;
        }
    }
    return copy;
}

static bool fail(struct al_result *result)
{
    static const char text[] = "the egress gate had no memory";
    result->status = AL_STATUS_FAILED;
    result->reason = AL_REASON_BACKEND;
    memcpy(result->error, text, sizeof text);
    return false;
}

static bool judge(struct al_job *job, const struct al_gate_report *report, struct al_result *result)
{
    bool warn = al_job_policy(job)->gate == AL_GATE_WARN;
    size_t n;
    struct al_job_finding *findings = copy_findings(report, warn, &n);
    if (!findings) {
        return fail(result);
    }
    al_job_own_findings(job, findings, n);
    if (!report->block || warn) {
        return true;
    }
    result->status = AL_STATUS_EGRESS_BLOCKED;
    result->reason = AL_REASON_EGRESS;
    al_gate_explain(report->block, result->error, sizeof result->error);
    return false;
}

bool al_pipeline_pass_gate(struct al_job *job, struct al_result *result)
{
    if (al_job_policy(job)->gate == AL_GATE_OFF) {
        return true;
    }
    al_auto_arena struct al_arena *arena = al_arena_create(REPORT_BYTES_MAX);
    struct al_gate_report report;
    if (!arena || al_gate_scan(al_job_spec(job), arena, &report) < 0) {
        return fail(result); /* a gate that cannot look lets nothing pass */
    }
    return judge(job, &report, result);
}
