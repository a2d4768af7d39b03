/*
 * Cells that are made ahead. Each is used once. There is a pool of bare ones for any native job,
 * one for the jobs of each tool, and one for each runtime whose interpreter can be started ahead.
 * How many shall wait follows the demand: more after a job that found none, fewer while some are
 * never needed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/launcher/config.h"
#include "backends/launcher/loop.h"
#include "backends/launcher/message.h"

struct al_job;
struct al_jobs;

#define AL_POOLS_MAX (3 + AL_RUNTIMES_MAX)

struct al_pool {
    enum al_cell_kind kind;
    struct al_quotas usual; /* of the latest job of the kind: what the next ones may ask for */
    int32_t runtime;        /* whose interpreter waits in the cells; AL_RUNTIME_NONE: bare ones */
    uint32_t base;          /* the fewest that shall wait */
    uint32_t max;
    uint32_t want; /* how many shall wait now */
    bool broken;   /* none is made before the next job has come */
    uint32_t idle; /* the fewest that have waited since the last review */
    uint32_t n;
    struct al_job *waiting[AL_POOL_MAX]; /* the oldest first */
};

struct al_pools {
    struct al_source timer;
    int64_t review_ns; /* when it is due; 0: nothing is to be reviewed */
    uint32_t n;
    struct al_pool pool[AL_POOLS_MAX];
};

/* Begins to make cells ahead. 0 or -errno. */
int al_pools_init(struct al_jobs *jobs);

/* A waiting cell that the SPAWN can have, NULL: none. */
struct al_job *al_pools_take(struct al_jobs *jobs, const struct al_msg_spawn *spawn,
                             int32_t runtime);

/* The last job that ran has ended. */
void al_pools_at_rest(struct al_jobs *jobs);

/* A waiting cell has ended by itself. */
void al_pools_lost(struct al_jobs *jobs, const struct al_job *job);
