/*
 * The way of a job, from top to bottom: recorded as running, run by its backend, ended with exactly
 * one result.
 */
#pragma once

#include <stdbool.h>

#include "service/job.h"
#include "service/jobs.h"

struct evp_md_st;

/* Immutable. */
struct al_pipeline {
    struct al_jobs *jobs;       /* borrowed */
    int64_t deadline_margin_ms; /* the wall limit ends this long before the call's deadline */
    struct evp_md_st *sha256;   /* fetched once: looking it up costs more than hashing a snippet */
};

/* -ENOMEM; nothing is left then. */
int al_pipeline_init(struct al_pipeline *pipeline, struct al_jobs *jobs,
                     int64_t deadline_margin_ms);
void al_pipeline_finish(struct al_pipeline *pipeline);

/* Runs the job and returns when it has ended. Blocks: on a thread of the executor's. */
void al_pipeline_run(const struct al_pipeline *pipeline, struct al_job *job);

/* Ends a job that was cancelled while it waited. Does not block. */
void al_pipeline_skip(const struct al_pipeline *pipeline, struct al_job *job);
