#include "service/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "backends/base/clock.h"
#include "cache/fingerprint.h"
#include "service/pipeline_gate.h"

int al_pipeline_init(struct al_pipeline *pipeline)
{
    pipeline->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
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

/* --- cache --- */

/* Gives the job its fingerprint where the cache is to be asked or filled. */
static void take_fingerprint(const struct al_pipeline *pipeline, struct al_job *job)
{
    struct al_job_notes *notes = al_job_notes(job);
    const struct al_backend *backend = al_job_backend(job);
    notes->has_fingerprint =
        pipeline->cache && al_job_policy(job)->cache != AL_CACHE_OFF &&
        al_fingerprint(al_job_spec(job), backend->name, backend->version, notes->fingerprint) == 0;
}

/* The entry's result becomes the job's. A Run's ring holds whatever fits its limits, as the entry
 * does. */
static void serve_entry(struct al_job *job, struct al_cache_entry *entry, struct al_result *result)
{
    for (int channel = AL_STDOUT; channel <= AL_STDERR; channel++) {
        const struct al_bytes *out = &entry->out[channel];
        (void)al_sink_append(al_job_sink(job), (enum al_channel)channel, out->data, out->len);
    }
    al_result_finish(result);
    *result = entry->result;
    al_result_init(&entry->result);
    al_job_notes(job)->cached_wall_ns = entry->stored_wall_ns;
}

/* True: there was a hit, and it is the result. */
static bool serve_from_cache(const struct al_pipeline *pipeline, struct al_job *job,
                             struct al_result *result)
{
    const struct al_run_policy *policy = al_job_policy(job);
    const struct al_quotas *quotas = &al_job_spec(job)->quotas;
    const struct al_cache_ask ask = {.max_age_ms = policy->cache_max_age_ms,
                                     .wall_ms = quotas->wall_ms,
                                     .output_bytes = quotas->output_bytes,
                                     .artifact_bytes = quotas->artifact_bytes};
    struct al_cache_entry entry;
    if (!al_job_notes(job)->has_fingerprint || policy->cache != AL_CACHE_USE ||
        !al_cache_get(pipeline->cache, al_job_notes(job)->fingerprint, &ask, &entry))
    {
        return false;
    }
    serve_entry(job, &entry, result);
    al_cache_entry_finish(&entry);
    return true;
}

static void store(const struct al_pipeline *pipeline, struct al_job *job,
                  const struct al_result *result)
{
    struct al_bytes out[2];
    if (al_job_notes(job)->has_fingerprint && al_cache_may_store(al_job_spec(job), result)) {
        al_job_peek_output(job, out);
        (void)al_cache_put(pipeline->cache, al_job_notes(job)->fingerprint, result, out);
    }
}

/* --- quota --- */

static bool acquire(const struct al_pipeline *pipeline, struct al_job *job, struct al_lease *lease,
                    struct al_result *result)
{
    struct al_quota_refusal refusal;
    int64_t cpu_ms = al_job_spec(job)->quotas.cpu_ms;
    if (!pipeline->quota || al_quota_acquire(pipeline->quota, al_job_tenant(job), cpu_ms,
                                             al_now_ms(), lease, &refusal) == 0)
    {
        return true;
    }
    result->status = AL_STATUS_QUOTA_EXCEEDED;
    result->reason = AL_REASON_QUOTA;
    al_quota_explain(&refusal, result->error, sizeof result->error);
    int64_t retry_ms = refusal.retry_after_ms;
    al_job_notes(job)->retry_after_ms = retry_ms < UINT32_MAX ? (uint32_t)retry_ms : UINT32_MAX;
    return false;
}

static void charge(void *arg, int64_t cpu_us)
{
    al_lease_charge(arg, cpu_us, al_now_ms());
}

/* --- the way --- */

static void record(const struct al_pipeline *pipeline, struct al_job *job)
{
    if (pipeline->record) {
        pipeline->record(pipeline->record_arg, job);
    }
}

/* A hit is counted by the cache and leaves no record: its id is known to its caller only. */
static void end(const struct al_pipeline *pipeline, struct al_job *job, struct al_result *result)
{
    bool from_cache = al_job_notes(job)->cached_wall_ns != 0;
    al_job_end(job, result);
    if (from_cache) {
        al_jobs_remove(pipeline->jobs, job);
    } else {
        record(pipeline, job);
        al_jobs_retire(pipeline->jobs, job);
    }
    al_result_finish(result);
}

static void run_backend(const struct al_pipeline *pipeline, struct al_job *job,
                        struct al_lease *lease, struct al_result *result)
{
    struct al_err err = {0};
    al_job_begin(job);
    record(pipeline, job);
    al_job_on_used(job, charge, lease);
    if (al_backend_run(al_job_backend(job), al_job_spec(job), al_job_ctl(job), al_job_sink(job),
                       result, &err) < 0)
    {
        set_backend_failed(result, &err);
    }
    store(pipeline, job, result);
}

void al_pipeline_run(const struct al_pipeline *pipeline, struct al_job *job)
{
    struct al_result result;
    struct al_lease lease = {0};
    al_result_init(&result);
    record_code(pipeline, job);
    take_fingerprint(pipeline, job);
    if (al_ctl_cancelled(al_job_ctl(job))) {
        set_cancelled(&result, "cancelled before it ran");
    } else if (!shorten_wall_limit(pipeline, job)) {
        set_too_late(&result);
    } else if (al_pipeline_pass_gate(job, &result) && !serve_from_cache(pipeline, job, &result) &&
               acquire(pipeline, job, &lease, &result))
    {
        run_backend(pipeline, job, &lease, &result);
    }
    al_lease_release(&lease, result.cpu_us, al_now_ms());
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
