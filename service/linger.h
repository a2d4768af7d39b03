/*
 * The jobs that linger: found by id when a reader comes back, and given up when none came in time.
 * A job is here from its start until then. What has ended and is read by nobody is bounded in
 * number and in memory: beyond that the oldest is given up, of the same tenant if there is one.
 *
 * The table holds a reference to each entry. What it gives up it returns as a chain (by `next`),
 * with those references; the caller cancels, discards and unrefs. Thread-safe; no callbacks.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/job.h"

/* Embedded in what lingers, whose reference count is in it. */
struct al_linger_entry {
    atomic_uint refs;
    struct al_job *job; /* set by the owner */

    /* The table's, under its lock. */
    struct al_linger_entry *prev;
    struct al_linger_entry *next;
    int64_t until_ms; /* CLOCK_MONOTONIC; INT64_MAX: somebody reads */
    size_t bytes;     /* once it has ended */
    bool listed;
    bool ended;
};

struct al_linger;

/* The bounds of what has ended and is read by nobody. NULL when memory is out. */
struct al_linger *al_linger_create(size_t ended_max, size_t ended_bytes_max);

/* Must be empty. NULL is ignored. */
void al_linger_destroy(struct al_linger *linger);

/* Somebody reads it. The table gets a reference of its own. */
void al_linger_add(struct al_linger *linger, struct al_linger_entry *entry);

/* Takes it out. False: it was not there (any more). The table's reference is the caller's then. */
bool al_linger_remove(struct al_linger *linger, struct al_linger_entry *entry);

/* A reference for the caller, or NULL: no such job of the tenant lingers. */
struct al_linger_entry *al_linger_find(struct al_linger *linger, const char *tenant,
                                       const char *job_id);

/* Somebody reads it from now on. -1: it has been given up; else when it would have been, INT64_MAX
 * when it was read already. */
int64_t al_linger_read(struct al_linger *linger, struct al_linger_entry *entry);

/* Its reader has left: it is given up at that time. */
struct al_linger_entry *al_linger_unread(struct al_linger *linger, struct al_linger_entry *entry,
                                         int64_t until_ms);

/* It has ended and takes so many bytes. */
struct al_linger_entry *al_linger_ended(struct al_linger *linger, struct al_linger_entry *entry,
                                        size_t bytes);

/* Gives up all whose time is over. */
struct al_linger_entry *al_linger_expire(struct al_linger *linger, int64_t now_ms);

/* When al_linger_expire has something to do, at the earliest; INT64_MAX: nothing is to be done. */
int64_t al_linger_next_ms(const struct al_linger *linger);

/* Gives up what has ended and is read by nobody, now and from now on at once. */
struct al_linger_entry *al_linger_drain(struct al_linger *linger);
