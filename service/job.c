#include "service/job_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backends/base/clock.h"

static size_t record_bytes(const struct al_job_params *params)
{
    size_t size = params->n_metadata * sizeof(struct al_env);
    size += strlen(params->spec->tenant_id) + 1 + strlen(params->spec->user_id) + 1;
    for (size_t i = 0; i < params->n_metadata; i++) {
        size += strlen(params->metadata[i].name) + 1 + strlen(params->metadata[i].value) + 1;
    }
    return size;
}

static char *copy_string(char **at, const char *from)
{
    size_t size = strlen(from) + 1;
    char *to = memcpy(*at, from, size);
    *at += size;
    return to;
}

static void fill_record(struct al_job *job, const struct al_job_params *params)
{
    char *at = job->strings + params->n_metadata * sizeof(struct al_env);
    job->metadata = (struct al_env *)(void *)job->strings;
    job->n_metadata = params->n_metadata;
    for (size_t i = 0; i < params->n_metadata; i++) {
        job->metadata[i].name = copy_string(&at, params->metadata[i].name);
        job->metadata[i].value = copy_string(&at, params->metadata[i].value);
    }
    job->tenant = copy_string(&at, params->spec->tenant_id);
    job->user = copy_string(&at, params->spec->user_id);
    job->backend = params->backend;
    job->language = params->spec->language;
    job->quotas = params->spec->quotas;
    job->created_wall_ns = al_wall_ns();
    job->created_ns = al_now_ns();
    job->status = AL_STATUS_PENDING;
    al_result_init(&job->result);
}

static int make_id(struct al_job *job, struct al_err *err)
{
    if (getrandom(&job->key, sizeof job->key, 0) != sizeof job->key) {
        return al_err_errno(err, errno, "cannot get random bytes");
    }
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < AL_JOB_ID_LEN; i++) {
        job->id[i] = digits[job->key >> (60 - 4 * i) & 15];
    }
    return 0;
}

int al_job_create(const struct al_job_params *params, struct al_job **ret, struct al_err *err)
{
    struct al_job *job = calloc(1, sizeof *job + record_bytes(params));
    if (!job) {
        return al_err_errno(err, ENOMEM, "cannot make a job");
    }
    fill_record(job, params);
    int r = make_id(job, err);
    if (r == 0 && !(job->live = al_job_live_create(job, params))) {
        r = al_err_set(err, AL_ERR_INTERNAL, "cannot make a job: no memory or no file descriptor");
    }
    if (r < 0) {
        free(job);
        return r;
    }
    atomic_init(&job->refs, 1);
    pthread_mutex_init(&job->lock, NULL);
    job->executor = params->executor;
    job->owner = params->owner;
    job->lingers = params->keep_bytes > 0;
    job->deadline_ms = params->deadline_ms;
    job->policy = params->policy;
    job->task = (struct al_task){
        .run = params->run,
        .lane = params->lane,
        .tenant = job->tenant,
        .memory_bytes = params->ring_bytes + params->keep_bytes + params->artifact_memory,
    };
    *ret = job;
    return 0;
}

struct al_job *al_job_ref(struct al_job *job)
{
    atomic_fetch_add_explicit(&job->refs, 1, memory_order_relaxed);
    return job;
}

void al_job_unref(struct al_job *job)
{
    if (job && atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) == 1) {
        al_job_live_destroy(job->live);
        al_result_finish(&job->result);
        free(job->findings);
        pthread_mutex_destroy(&job->lock);
        free(job);
    }
}

const char *al_job_id(const struct al_job *job)
{
    return job->id;
}

uint64_t al_job_key(const struct al_job *job)
{
    return job->key;
}

const char *al_job_tenant(const struct al_job *job)
{
    return job->tenant;
}

struct al_backend *al_job_backend(const struct al_job *job)
{
    return job->backend;
}

void *al_job_owner(const struct al_job *job)
{
    return job->owner;
}

bool al_job_lingers(const struct al_job *job)
{
    return job->lingers;
}

struct al_task *al_job_task(struct al_job *job)
{
    return &job->task;
}

struct al_job *al_job_of_task(struct al_task *task)
{
    return AL_CONTAINER_OF(task, struct al_job, task);
}

struct al_job_links *al_job_links(struct al_job *job)
{
    return &job->links;
}

int64_t al_job_deadline_ms(const struct al_job *job)
{
    return job->deadline_ms;
}

const struct al_run_policy *al_job_policy(const struct al_job *job)
{
    return &job->policy;
}

struct al_job_notes *al_job_notes(struct al_job *job)
{
    return &job->notes;
}

void al_job_own_findings(struct al_job *job, struct al_job_finding *findings, size_t n)
{
    free(job->findings);
    job->findings = findings;
    job->notes.findings = findings;
    job->notes.n_findings = n;
}

bool al_job_cancel(struct al_job *job)
{
    pthread_mutex_lock(&job->lock);
    bool alive = job->live && !al_status_is_terminal(job->status);
    if (alive) {
        al_ctl_cancel(job->live->ctl);
    }
    pthread_mutex_unlock(&job->lock);
    if (alive) {
        (void)al_executor_remove(job->executor, &job->task);
    }
    return alive;
}

bool al_job_wait(struct al_job *job, struct al_job_waiter *waiter, enum al_status *ret_status)
{
    pthread_mutex_lock(&job->lock);
    bool ended = al_status_is_terminal(job->status);
    if (ended) {
        *ret_status = job->status;
    } else {
        waiter->next = job->waiters;
        job->waiters = waiter;
    }
    pthread_mutex_unlock(&job->lock);
    return !ended;
}

void al_job_info(struct al_job *job, struct al_job_info *ret)
{
    pthread_mutex_lock(&job->lock);
    *ret = (struct al_job_info){
        .id = job->id,
        .tenant_id = job->tenant,
        .user_id = job->user,
        .backend = job->backend,
        .language = job->language,
        .metadata = job->metadata,
        .n_metadata = job->n_metadata,
        .status = job->status,
        .quotas = job->quotas,
        .result = al_status_is_terminal(job->status) ? &job->result : NULL,
        .code_sha256 = job->has_digest ? job->digest : NULL,
        .notes = al_status_is_terminal(job->status) ? &job->notes : NULL,
        .created_wall_ns = job->created_wall_ns,
        .started_wall_ns = job->started_wall_ns,
        .finished_wall_ns = job->finished_wall_ns,
        .queue_us = job->queue_us,
    };
    pthread_mutex_unlock(&job->lock);
}

void al_job_set_code_sha256(struct al_job *job, const uint8_t digest[AL_SHA256_LEN])
{
    pthread_mutex_lock(&job->lock);
    memcpy(job->digest, digest, AL_SHA256_LEN);
    job->has_digest = true;
    pthread_mutex_unlock(&job->lock);
}
