#include "service/pipeline.h"

#include <errno.h>
#include <stdio.h>

#include <openssl/evp.h>

#include "backends/base/clock.h"

int al_pipeline_init(struct al_pipeline *pipeline, struct al_jobs *jobs, int64_t deadline_margin_ms)
{
    *pipeline = (struct al_pipeline){
        .jobs = jobs,
        .deadline_margin_ms = deadline_margin_ms,
        .sha256 = EVP_MD_fetch(NULL, "SHA256", NULL),
    };
    return pipeline->sha256 ? 0 : -ENOMEM;
}

void al_pipeline_finish(struct al_pipeline *pipeline)
{
    EVP_MD_free(pipeline->sha256);
    *pipeline = (struct al_pipeline){0};
}

static void record_code(const struct al_pipeline *pipeline, struct al_job *job)
{
    const struct al_bytes *code = &al_job_spec(job)->code;
    uint8_t digest[EVP_MAX_MD_SIZE];
    if (EVP_Digest(code->data, code->len, digest, NULL, pipeline->sha256, NULL) == 1) {
        al_job_set_code_sha256(job, digest);
    }
}

/* The wall limit ends before the call's deadline. False: there is no time left at all. */
static bool shorten_wall_limit(const struct al_pipeline *pipeline, struct al_job *job)
{
    int64_t deadline_ms = al_job_deadline_ms(job);
    if (deadline_ms == 0) {
        return true;
    }
    int64_t left_ms = deadline_ms - pipeline->deadline_margin_ms - al_now_ms();
    int64_t *wall_ms = &al_job_spec(job)->quotas.wall_ms;
    if (left_ms > 0 && left_ms < *wall_ms) {
        *wall_ms = left_ms;
    }
    return left_ms > 0;
}

static void set_cancelled(struct al_result *result, const char *why)
{
    result->status = AL_STATUS_KILLED;
    result->reason = AL_REASON_CANCELLED;
    (void)snprintf(result->error, sizeof result->error, "%s", why);
}

/* The shortened wall limit, met before the program could start. */
static void set_too_late(struct al_result *result)
{
    result->status = AL_STATUS_TIMEOUT;
    result->reason = AL_REASON_LIMIT;
    result->limit_hit = AL_LIMIT_WALL;
    (void)snprintf(result->error, sizeof result->error, "the call's deadline left no time to run");
}

static void set_backend_failed(struct al_result *result, const struct al_err *err)
{
    result->status = AL_STATUS_FAILED;
    result->reason = AL_REASON_BACKEND;
    const char *why = al_err_is_set(err) ? err->text : "the backend failed";
    (void)snprintf(result->error, sizeof result->error, "%.*s", AL_RESULT_ERROR_MAX - 1, why);
}

static void end(const struct al_pipeline *pipeline, struct al_job *job, struct al_result *result)
{
    al_job_end(job, result);
    al_jobs_retire(pipeline->jobs, job);
    al_result_finish(result);
}

void al_pipeline_run(const struct al_pipeline *pipeline, struct al_job *job)
{
    struct al_result result;
    struct al_err err = {0};
    al_result_init(&result);
    record_code(pipeline, job);
    if (al_ctl_cancelled(al_job_ctl(job))) {
        set_cancelled(&result, "cancelled before it ran");
    } else if (!shorten_wall_limit(pipeline, job)) {
        set_too_late(&result);
    } else {
        al_job_begin(job);
        if (al_backend_run(al_job_backend(job), al_job_spec(job), al_job_ctl(job), al_job_sink(job),
                           &result, &err) < 0)
        {
            set_backend_failed(&result, &err);
        }
    }
    end(pipeline, job, &result);
}

void al_pipeline_skip(const struct al_pipeline *pipeline, struct al_job *job)
{
    struct al_result result;
    al_result_init(&result);
    record_code(pipeline, job);
    set_cancelled(&result, "cancelled before it ran");
    end(pipeline, job, &result);
}
