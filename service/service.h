/*
 * What all calls share: configuration, backends, jobs, the executor and the server's counters.
 * Made before the server starts, fixed afterwards but for the counters. Thread-safe.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/api/backend.h"
#include "cache/cache.h"
#include "proto/wire/check.h"
#include "service/config.h"
#include "service/executor.h"
#include "service/jobs.h"
#include "service/linger.h"
#include "service/pipeline.h"
#include "service/quota/quota.h"
#include "service/records/records.h"

/* When a client is asked to come back. */
#define AL_PUSHBACK_BUSY_MS     500
#define AL_PUSHBACK_DRAINING_MS 1000

/* What the completion queue's thread does once it has heard what else there is. */
struct al_deferred {
    void (*run)(struct al_deferred *deferred);
    struct al_deferred *next;
};

struct al_service {
    const struct al_config *config;
    const struct al_registry *registry;
    struct al_wire_limits run_limits;   /* of messages that may carry a RunRequest */
    struct al_wire_limits small_limits; /* of all others */
    struct al_executor *executor;
    struct al_jobs *jobs;
    struct al_linger *linger;
    struct al_pipeline pipeline;
    struct al_quota *quota;
    struct al_cache *cache;     /* NULL: none is configured */
    struct al_records *records; /* NULL: without a data-dir, in tests */

    atomic_bool draining;        /* nothing new is admitted */
    atomic_uint calls;           /* in flight */
    uint32_t calls_max;          /* more are refused */
    atomic_size_t request_bytes; /* of requests whose calls are in flight */
    size_t request_bytes_max;    /* more are refused */
    atomic_uint admitted;        /* jobs whose call has not ended */
    int idle_fd;                 /* eventfd: readable once `admitted` fell to 0 while draining */

    struct al_deferred *deferred; /* the oldest; CQ thread */
    struct al_deferred **deferred_end;
};

/* Config and registry are borrowed. On failure nothing is left. */
int al_service_init(struct al_service *service, const struct al_config *config,
                    const struct al_registry *registry, struct al_err *err);

/* No job is left that runs. */
void al_service_finish(struct al_service *service);

/* Counts bytes that requests occupy until al_service_release. AL_ERR_RESOURCE_EXHAUSTED, and
 * nothing is counted, when all of them together would pass their bound. */
int al_service_hold(struct al_service *service, size_t bytes, struct al_err *err);
void al_service_release(struct al_service *service, size_t bytes);

/* CQ thread. */
void al_service_defer(struct al_service *service, struct al_deferred *deferred);

/* Runs the oldest of what was deferred, if there is any. CQ thread. */
void al_service_run_deferred(struct al_service *service);

/* Logs what does not work at the moment. Called once a minute. */
void al_service_report(struct al_service *service);

/* Refuses new jobs from now on. */
void al_service_drain(struct al_service *service);
