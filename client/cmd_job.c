#include <time.h>
#include <unistd.h>

#include "client/cli.h"
#include "client/exit_code.h"
#include "client/output.h"
#include "client/summary.h"

static void add_row(struct al_text *text, const char *label, const char *words)
{
    if (*words) {
        al_text_add(text, "%-12s", label);
        al_text_add_escaped(text, words);
        al_text_add(text, "\n");
    }
}

static void format_time(const Google__Protobuf__Timestamp *timestamp, char *ret, size_t size)
{
    struct tm tm;
    time_t seconds = timestamp ? (time_t)timestamp->seconds : 0;
    if (!timestamp || !gmtime_r(&seconds, &tm) || strftime(ret, size, "%F %T UTC", &tm) == 0) {
        *ret = '\0';
    }
}

static void add_time(struct al_text *text, const char *label,
                     const Google__Protobuf__Timestamp *timestamp)
{
    char when[40];
    format_time(timestamp, when, sizeof when);
    add_row(text, label, when);
}

static void add_job(struct al_text *text, const Airlock__V1__Job *job)
{
    add_row(text, "job", job->job_id);
    add_row(text, "status", al_status_word(job->status));
    if (job->result) {
        al_text_add(text, "%-12s", "result");
        al_summary_add(text, job->result, al_output_has_colours(STDOUT_FILENO));
        al_text_add(text, "\n");
    }
    add_row(text, "tenant", job->tenant_id);
    add_row(text, "user", job->user_id);
    add_row(text, "backend", job->backend);
    add_row(text, "language", job->language);
    add_time(text, "created", job->created_at);
    add_time(text, "started", job->started_at);
    add_time(text, "finished", job->finished_at);
    add_row(text, "code sha256", job->code_sha256);
    for (size_t i = 0; i < job->n_metadata; i++) {
        al_text_add(text, "%-12s", i == 0 ? "metadata" : "");
        al_text_add_escaped(text, job->metadata[i]->key);
        al_text_add(text, "=");
        al_text_add_escaped(text, job->metadata[i]->value);
        al_text_add(text, "\n");
    }
}

static int print_job(const struct al_options *options, const Airlock__V1__Job *job)
{
    struct al_text text = {0};
    if (options->json) {
        return al_output_json(&job->base, true);
    }
    add_job(&text, job);
    return al_text_flush(&text, STDOUT_FILENO);
}

int al_cmd_job(const struct al_options *options)
{
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__GetJobRequest request = AIRLOCK__V1__GET_JOB_REQUEST__INIT;
    Airlock__V1__GetJobResponse *response;
    struct al_call_status status;
    struct al_cli cli;
    int code;
    if (!al_cli_connect(&cli, options)) {
        return AL_EXIT_AIRLOCK;
    }
    request.job_id = (char *)options->job_id;
    if (al_client_get_job(cli.client, &request, &cli.call, &arena, &response, &status) < 0) {
        code = al_cli_call_failed(&cli, &status);
    } else if (!response->job) {
        al_output_error("the server sent no record");
        code = AL_EXIT_AIRLOCK;
    } else {
        code = al_cli_output_done(print_job(options, response->job));
    }
    al_cli_disconnect(&cli);
    return code;
}

/* On standard error, so that a list which is piped on holds jobs only. */
static void tell_what_follows(const Airlock__V1__ListJobsResponse *response)
{
    if (*response->next_page_token) {
        al_output_error("there are more: add --page %s", response->next_page_token);
    } else if (response->n_jobs == 0) {
        al_output_error("no jobs");
    }
}

static int print_jobs(const struct al_options *options,
                      const Airlock__V1__ListJobsResponse *response)
{
    struct al_text text = {0};
    if (options->json) {
        return al_output_json(&response->base, true);
    }
    for (size_t i = 0; i < response->n_jobs; i++) {
        const Airlock__V1__Job *job = response->jobs[i];
        char when[40];
        format_time(job->created_at, when, sizeof when);
        al_text_add(&text, "%-16s  %-14s  %-23s  ", job->job_id, al_status_word(job->status), when);
        al_text_add_escaped(&text, job->backend);
        al_text_add(&text, " ");
        al_text_add_escaped(&text, job->language);
        al_text_add(&text, "\n");
    }
    int rc = al_text_flush(&text, STDOUT_FILENO);
    tell_what_follows(response);
    return rc;
}

int al_cmd_jobs(const struct al_options *options)
{
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__ListJobsRequest request = AIRLOCK__V1__LIST_JOBS_REQUEST__INIT;
    Airlock__V1__ListJobsResponse *response;
    struct al_call_status status;
    struct al_cli cli;
    if (!al_cli_connect(&cli, options)) {
        return AL_EXIT_AIRLOCK;
    }
    request.page_token = options->jobs.page ? (char *)options->jobs.page : request.page_token;
    request.page_size = options->jobs.limit;
    request.status = (Airlock__V1__JobStatus)options->jobs.status;
    int rc = al_client_list_jobs(cli.client, &request, &cli.call, &arena, &response, &status);
    int code = rc < 0 ? al_cli_call_failed(&cli, &status)
                      : al_cli_output_done(print_jobs(options, response));
    al_cli_disconnect(&cli);
    return code;
}
