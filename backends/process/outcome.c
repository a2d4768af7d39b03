#include "backends/process/outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void al_outcome_compiled(const struct al_msg_compiled *compiled, struct al_result *result)
{
    int status = compiled->wait_status;
    result->compile.present = true;
    result->compile.duration_us = compiled->duration_us;
    result->compile.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void set(struct al_result *r, enum al_status status, enum al_reason reason,
                enum al_limit limit)
{
    r->status = status;
    r->reason = reason;
    r->limit_hit = limit;
}

static void explain_limit(const struct al_job_spec *spec, struct al_result *r)
{
    const struct al_quotas *q = &spec->quotas;
    char *to = r->error;
    switch (r->limit_hit) {
    case AL_LIMIT_CPU:
        snprintf(to, sizeof r->error, "cpu_seconds limit of %g s reached",
                 (double)q->cpu_ms / 1000);
        break;
    case AL_LIMIT_WALL:
        snprintf(to, sizeof r->error, "wall_seconds limit of %g s reached",
                 (double)q->wall_ms / 1000);
        break;
    case AL_LIMIT_MEMORY:
        snprintf(to, sizeof r->error, "memory_mb limit of %u MiB reached", q->memory_mb);
        break;
    case AL_LIMIT_PIDS:
        snprintf(to, sizeof r->error, "pids limit of %u reached", q->pids);
        break;
    case AL_LIMIT_OUTPUT:
        snprintf(to, sizeof r->error, "output_bytes limit of %" PRIu64 " bytes reached",
                 q->output_bytes);
        break;
    case AL_LIMIT_NONE:
        break;
    }
}

/* Limits that the launcher did not end the job for, but that ended it all the same. */
static enum al_limit limit_met(const struct al_job_spec *spec, const struct al_msg_exit *e,
                               const struct al_result *r)
{
    int status = e->wait_status;
    if (e->limit != AL_LIMIT_NONE) {
        return e->limit;
    }
    if (e->oom_kills > 0) {
        return AL_LIMIT_MEMORY; /* also when a child was killed and its parent went on */
    }
    if (e->ran && WIFSIGNALED(status) && e->cpu_us >= spec->quotas.cpu_ms * 1000) {
        return AL_LIMIT_CPU; /* RLIMIT_CPU was quicker */
    }
    bool failed = e->ran ? status != 0 : r->compile.exit_code != 0;
    if (failed && e->pids_denied > 0) {
        return AL_LIMIT_PIDS;
    }
    return AL_LIMIT_NONE;
}

static void decide(const struct al_job_spec *spec, const struct al_msg_exit *e, bool cancelled,
                   bool over_output, struct al_result *r)
{
    enum al_limit limit = limit_met(spec, e, r);
    if (e->killed && cancelled) {
        set(r, AL_STATUS_KILLED, AL_REASON_CANCELLED, AL_LIMIT_NONE);
    } else if (over_output && e->limit == AL_LIMIT_NONE) {
        set(r, AL_STATUS_FAILED, AL_REASON_LIMIT, AL_LIMIT_OUTPUT);
    } else if (limit == AL_LIMIT_CPU || limit == AL_LIMIT_WALL) {
        set(r, AL_STATUS_TIMEOUT, AL_REASON_LIMIT, limit);
    } else if (limit != AL_LIMIT_NONE) {
        set(r, AL_STATUS_FAILED, AL_REASON_LIMIT, limit);
    } else if (e->error[0] != '\0') {
        set(r, AL_STATUS_FAILED, AL_REASON_BACKEND, AL_LIMIT_NONE);
        snprintf(r->error, sizeof r->error, "%s", e->error);
    } else if (r->compile.present && r->compile.exit_code != 0) {
        set(r, AL_STATUS_FAILED, AL_REASON_COMPILE, AL_LIMIT_NONE);
        snprintf(r->error, sizeof r->error, "the compile step failed with exit code %d",
                 r->compile.exit_code);
    } else if (r->exit_kind == AL_EXIT_NONE) {
        set(r, AL_STATUS_FAILED, AL_REASON_BACKEND, AL_LIMIT_NONE);
        snprintf(r->error, sizeof r->error, "the program did not run");
    } else if (r->exit_kind == AL_EXIT_SIGNAL) {
        set(r, AL_STATUS_FAILED, AL_REASON_SIGNAL, AL_LIMIT_NONE);
        snprintf(r->error, sizeof r->error, "killed by signal %d (%s)", r->exit_value,
                 strsignal(r->exit_value));
    } else {
        set(r, r->exit_value == 0 ? AL_STATUS_SUCCEEDED : AL_STATUS_FAILED, AL_REASON_EXIT,
            AL_LIMIT_NONE);
    }
}

void al_outcome_exit(const struct al_job_spec *spec, const struct al_msg_exit *e, bool cancelled,
                     bool over_output, struct al_result *r)
{
    r->duration_us = e->duration_us;
    r->cpu_us = e->cpu_us;
    r->memory_peak_bytes = e->memory_peak_bytes;
    r->pids_peak = e->pids_peak;
    r->isolation = e->layers;
    r->prestarted = e->prestarted;
    if (e->ran) {
        bool signalled = WIFSIGNALED(e->wait_status);
        r->exit_kind = signalled ? AL_EXIT_SIGNAL : AL_EXIT_CODE;
        r->exit_value = signalled ? WTERMSIG(e->wait_status) : WEXITSTATUS(e->wait_status);
    }
    decide(spec, e, cancelled, over_output, r);
    explain_limit(spec, r);
}
