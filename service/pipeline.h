/*
 * The way of a job, from top to bottom: egress gate, cache (a hit ends it here), quota lease,
 * record, backend, cache again, record; ended with exactly one result. Stream takes the same way
 * without the cache.
 */
#pragma once

#include <stdbool.h>

#include "cache/cache.h"
#include "service/job.h"
#include "service/jobs.h"
#include "service/quota/quota.h"

struct evp_md_st;

/* Immutable. What is NULL is left out. All but the digest is borrowed. */
struct al_pipeline {
    struct al_jobs *jobs;
    struct al_quota *quota;
    struct al_cache *cache;
    /* The job has begun, or has ended and has been recorded as such. Must not block. */
    void (*record)(void *arg, struct al_job *job);
    void *record_arg;
    int64_t deadline_margin_ms; /* the wall limit ends this long before the call's deadline */
    struct evp_md_st *sha256;   /* fetched once: looking it up costs more than hashing a snippet */
};

/* Fetches the digest. -ENOMEM; nothing is left then. */
int al_pipeline_init(struct al_pipeline *pipeline);
void al_pipeline_finish(struct al_pipeline *pipeline);

/* Runs the job and returns when it has ended. Blocks: on a thread of the executor's. */
void al_pipeline_run(const struct al_pipeline *pipeline, struct al_job *job);

/* Ends a job that was cancelled while it waited. Does not block. */
void al_pipeline_skip(const struct al_pipeline *pipeline, struct al_job *job);
