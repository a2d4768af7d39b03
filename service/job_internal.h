/*
 * A job from inside: for job.c (its life and its record) and job_output.c (its live part: the sink
 * and the reader).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "service/job.h"

#define AL_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* What a job needs only while it runs and is read. */
struct al_job_live {
    struct al_job *job;
    struct al_sink sink;
    struct al_arena *arena;   /* NULL once the run has ended */
    struct al_job_spec *spec; /* in the arena */
    struct al_ctl *ctl;
    void (*on_used)(void *arg, int64_t cpu_us);
    void *on_used_arg;

    /* Under the job's lock. */
    struct al_ring ring;
    struct al_reader *reader; /* NULL: a Run, or nobody reads at the moment */
    bool reader_is_idle;
    bool discards; /* nobody will ever read: what comes is dropped */
    bool out_of_memory;
    struct al_artifacts artifacts; /* not in the record; does not change once the run has ended */
};

struct al_job {
    atomic_uint refs;
    struct al_task task;
    struct al_executor *executor;
    void *owner;
    bool lingers;
    int64_t deadline_ms;
    struct al_run_policy policy;
    struct al_job_notes notes;       /* see al_job_notes */
    struct al_job_finding *findings; /* owned */
    struct al_job_links links;       /* under the table's lock */

    char id[AL_JOB_ID_LEN + 1];
    uint64_t key;
    struct al_backend *backend;
    const struct al_language *language;
    const char *tenant;
    const char *user;
    struct al_env *metadata;
    size_t n_metadata;
    int64_t created_wall_ns;
    int64_t created_ns;

    pthread_mutex_t lock;     /* guards everything below */
    struct al_job_live *live; /* NULL after al_job_drop_output */
    enum al_status status;
    struct al_quotas quotas;
    bool has_digest;
    uint8_t digest[AL_SHA256_LEN];
    int64_t started_wall_ns;
    int64_t finished_wall_ns;
    int64_t queue_us;
    struct al_result result; /* does not change once the status is terminal */
    struct al_job_waiter *waiters;

    _Alignas(struct al_env) char strings[]; /* what the pointers above point to */
};

/* The live part, or NULL when memory or fds are out. */
struct al_job_live *al_job_live_create(struct al_job *job, const struct al_job_params *params);
void al_job_live_destroy(struct al_job_live *live);
