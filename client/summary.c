#include "client/summary.h"

#include <string.h>
#include <unistd.h>

#include "client/exit_code.h"

const char *al_status_word(Airlock__V1__JobStatus status)
{
    switch (status) {
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_PENDING:
        return "pending";
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_RUNNING:
        return "running";
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_SUCCEEDED:
        return "succeeded";
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_FAILED:
        return "failed";
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_TIMEOUT:
        return "timed out";
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED:
        return "killed";
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_QUOTA_EXCEEDED:
        return "over quota";
    case AIRLOCK__V1__JOB_STATUS__JOB_STATUS_EGRESS_BLOCKED:
        return "egress blocked";
    default:
        return "unknown";
    }
}

const char *al_limit_word(Airlock__V1__Limit limit)
{
    switch (limit) {
    case AIRLOCK__V1__LIMIT__LIMIT_CPU:
        return "cpu";
    case AIRLOCK__V1__LIMIT__LIMIT_WALL:
        return "wall";
    case AIRLOCK__V1__LIMIT__LIMIT_MEMORY:
        return "memory";
    case AIRLOCK__V1__LIMIT__LIMIT_PIDS:
        return "pids";
    case AIRLOCK__V1__LIMIT__LIMIT_OUTPUT:
        return "output";
    default:
        return NULL;
    }
}

static void add_limit(struct al_text *text, const Airlock__V1__ExecutionResult *result)
{
    const Airlock__V1__Quotas *quotas = result->effective_quotas;
    const char *word = al_limit_word(result->limit_hit);
    if (!word) {
        return;
    }
    al_text_add(text, ", %s limit", word);
    if (!quotas) {
        return;
    }
    switch (result->limit_hit) {
    case AIRLOCK__V1__LIMIT__LIMIT_CPU:
        al_text_add(text, " (%.3g s)", quotas->cpu_seconds);
        break;
    case AIRLOCK__V1__LIMIT__LIMIT_WALL:
        al_text_add(text, " (%.3g s)", quotas->wall_seconds);
        break;
    case AIRLOCK__V1__LIMIT__LIMIT_MEMORY:
        al_text_add(text, " (%u MiB)", quotas->memory_mb);
        break;
    case AIRLOCK__V1__LIMIT__LIMIT_PIDS:
        al_text_add(text, " (%u)", quotas->pids);
        break;
    case AIRLOCK__V1__LIMIT__LIMIT_OUTPUT:
        al_text_add(text, " (%llu bytes)", (unsigned long long)quotas->output_bytes);
        break;
    default:
        break;
    }
}

static void add_end(struct al_text *text, const Airlock__V1__ExecutionResult *result)
{
    if (result->exit_case == AIRLOCK__V1__EXECUTION_RESULT__EXIT_EXIT_CODE) {
        al_text_add(text, ", exit %d", result->exit_code);
    } else if (result->exit_case == AIRLOCK__V1__EXECUTION_RESULT__EXIT_TERM_SIGNAL) {
        const char *name = sigabbrev_np(result->term_signal);
        al_text_add(text, ", signal %d%s%s%s", result->term_signal, name ? " (SIG" : "",
                    name ? name : "", name ? ")" : "");
    }
}

static void add_figures(struct al_text *text, const Airlock__V1__ExecutionResult *result)
{
    if (result->cached) {
        al_text_add(text, ", cached");
    }
    if (result->duration_ms <= 0 &&
        result->exit_case == AIRLOCK__V1__EXECUTION_RESULT__EXIT__NOT_SET) {
        return; /* nothing ran */
    }
    if (result->duration_ms >= 10000) {
        al_text_add(text, ", %.1f s", result->duration_ms / 1000);
    } else {
        al_text_add(text, ", %.0f ms", result->duration_ms);
    }
    al_text_add(text, ", cpu %.2f s", result->cpu_seconds);
    if (result->memory_peak_mb > 0) {
        al_text_add(text, ", memory %.1f MiB", result->memory_peak_mb);
    }
}

static void add_losses(struct al_text *text, const Airlock__V1__ExecutionResult *result)
{
    if (result->stdout_truncated || result->stderr_truncated) {
        al_text_add(text, ", %s cut",
                    !result->stderr_truncated   ? "stdout"
                    : !result->stdout_truncated ? "stderr"
                                                : "stdout and stderr");
    }
    if (result->artifacts_omitted > 0) {
        al_text_add(text, ", %u artifacts omitted", result->artifacts_omitted);
    }
}

void al_summary_add(struct al_text *text, const Airlock__V1__ExecutionResult *result, bool colours)
{
    bool succeeded = result->status == AIRLOCK__V1__JOB_STATUS__JOB_STATUS_SUCCEEDED;
    const char *colour = succeeded ? AL_COLOUR_GREEN : AL_COLOUR_RED;
    al_text_add(text, "%s%s%s", colours ? colour : "", al_status_word(result->status),
                colours ? AL_COLOUR_NONE : "");
    add_limit(text, result);
    add_end(text, result);
    add_figures(text, result);
    add_losses(text, result);
    if (*result->job_id) {
        al_text_add(text, ", job ");
        al_text_add_escaped(text, result->job_id);
    }
    if (!succeeded && *result->error) {
        al_text_add(text, ": ");
        al_text_add_escaped(text, result->error);
    }
}

static void print_compiler_output(const Airlock__V1__ExecutionResult *result)
{
    if (result->reason == AIRLOCK__V1__REASON__REASON_COMPILE && result->compile) {
        const ProtobufCBinaryData *output = &result->compile->output;
        (void)al_output_write(STDERR_FILENO, output->data, output->len);
    }
}

void al_summary_print(const Airlock__V1__ExecutionResult *result, bool wanted, bool mid_line)
{
    bool by_program = result->reason == AIRLOCK__V1__REASON__REASON_EXIT;
    bool by_airlock = !by_program && al_exit_code_of_result(result) == AL_EXIT_AIRLOCK;
    struct al_text text = {0};
    print_compiler_output(result);
    if (!wanted && !by_airlock) {
        return;
    }
    al_text_add(&text, "%sairlock: ", mid_line ? "\n" : "");
    al_summary_add(&text, result, al_output_has_colours(STDERR_FILENO));
    al_text_add(&text, "\n");
    (void)al_text_flush(&text, STDERR_FILENO);
}
