/*
 * The jobs of this server by id: those that wait or run, and the last ones that have ended. The
 * table holds a reference to each. Thread-safe; the lock inside is never held across a callback.
 */
#pragma once

#include <stdint.h>

#include "service/job.h"

struct al_jobs;

/* Keeps `history` ended jobs; the oldest is dropped first. NULL when memory is out. */
struct al_jobs *al_jobs_create(uint32_t history);

/* Forgets all jobs. NULL is ignored. */
void al_jobs_destroy(struct al_jobs *jobs);

void al_jobs_insert(struct al_jobs *jobs, struct al_job *job);

/* Forgets a job that was never submitted. */
void al_jobs_remove(struct al_jobs *jobs, struct al_job *job);

/* The job has ended: it counts as history from now on. Once a job. */
void al_jobs_retire(struct al_jobs *jobs, struct al_job *job);

/* A reference for the caller, or NULL: unknown, forgotten, or another tenant's. */
struct al_job *al_jobs_find(struct al_jobs *jobs, const char *tenant, const char *id);

/* Cancels every job that has not ended. Callbacks may run: hold no lock. */
void al_jobs_cancel_all(struct al_jobs *jobs);
