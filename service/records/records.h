/*
 * The persistent records of jobs: what GetJob and ListJobs answer from, across restarts.
 *
 * Theory of operation
 *
 * A put copies the record into a bounded queue and returns. One writer thread commits what waits as
 * one transaction, some 50 ms after the first of it came; the queue is also an overlay over the
 * store, so that a read sees what was put before it, written or not. Readers take a snapshot of
 * both and never wait for a transaction of the writer's.
 *
 * What was committed survives a kill -9. Against a loss of power it is as good as the disk's word:
 * data is flushed with each commit, the page that makes it valid with the next one
 * (MDB_NOMETASYNC). So the file is always consistent and the last second of a busy server may be
 * missing; the price is one flush a commit, at most some twenty a second, which nobody waits for.
 *
 * Trouble with the disk never fails a put, a job or the server: records wait for the next attempt
 * (once a second) as long as the queue has room, and are dropped and counted then.
 *
 * Thread-safe: everything but close. The lock inside is held for a few loads and stores, by
 * al_records_list for a walk over the queue, and never across a callback or input and output.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/buf.h"
#include "backends/base/err.h"

#define AL_RECORDS_TENANT_MAX 128          /* bytes */
#define AL_RECORDS_JOB_MAX    (256u << 10) /* a packed job; longer ones are dropped */
#define AL_RECORDS_QUEUE_MAX  (8u << 20)   /* all that waits, with its overhead */
#define AL_RECORDS_PAGE_MAX   1000         /* jobs */
#define AL_RECORDS_PAGE_BYTES (1u << 20)   /* of packed jobs; beyond it a page ends early */
#define AL_RECORDS_TOKEN_MAX  65           /* terminator included */

struct al_records;

/* The oldest, by created_at, go first. Each is met within seconds, not at once. */
struct al_records_limits {
    int64_t max_age_ms; /* since created_at */
    uint64_t max_count;
    uint64_t
        max_bytes; /* of the file's pages in use; the file is at most a fourth and 32 MiB larger */
};

/*
 * Opens the records in the folder `dir`, which is made if it is missing; its instance's lock is
 * held by the caller. All jobs found PENDING or RUNNING become FAILED/INTERRUPTED, finished now. A
 * file that is corrupt, truncated or of another format is set aside under a name with a time stamp
 * and a new one begun.
 *
 * A store that cannot be opened is not an error: see al_records_stats, and it is tried again. What
 * waits can be got meanwhile; anything else is -EIO rather than a wrong "no such job".
 * -ENOMEM, -EAGAIN: no memory, no thread.
 */
int al_records_open(const char *dir, const struct al_records_limits *limits,
                    struct al_records **ret, struct al_err *err);

/* Writes what waits, if it can be written. Nobody else calls anything any more. NULL is ignored. */
void al_records_close(struct al_records *records);

/* All are borrowed. */
struct al_record_key {
    const char *tenant; /* 1 to AL_RECORDS_TENANT_MAX bytes */
    const char *id;     /* AL_JOB_ID_LEN lower-case hex digits */
    int64_t created_wall_ns;
    int status; /* enum al_status */
};

/*
 * Replaces the job's record. `job` is its packed airlock.v1.Job without output bytes; it is copied.
 * Never blocks for longer than a short critical section, never fails: what does not fit is dropped
 * and counted. A job that has not ended gets three fourths of the queue only, so that when the disk
 * has trouble its end is kept rather than its beginning.
 */
void al_records_put(struct al_records *records, const struct al_record_key *key, const uint8_t *job,
                    size_t len);

/*
 * Appends the record as it was last put. -ENOENT: none, dropped, corrupt, or another tenant's.
 * -ENOBUFS, -ENOMEM: of the buffer. -EAGAIN: too many readers at once. -EIO: the store has trouble.
 */
int al_records_get(struct al_records *records, const char *tenant, const char *id,
                   struct al_buf *ret_job);

/*
 * Calls `each` with the packed jobs of one page, the newest first, once all of them are copied. A
 * result other than 0 ends the page and is returned. Jobs created at the same moment are ordered by
 * id. Jobs that begin or end while somebody turns the pages appear at most once.
 *
 * `status`: an enum al_status, 0 for all. `page_size`: 1 to AL_RECORDS_PAGE_MAX; fewer jobs are no
 * sign of the end. `token`: "" begins, else what the page before gave, for the same tenant and
 * status; it stays valid across restarts. `ret_token` is "" at the end, untouched on failure.
 *
 * -EINVAL: not such a token. -ENOMEM. -EAGAIN: too many readers at once. -EIO: the store has
 * trouble.
 */
int al_records_list(struct al_records *records, const char *tenant, int status, uint32_t page_size,
                    const char *token, int (*each)(void *arg, const uint8_t *job, size_t len),
                    void *arg, char ret_token[AL_RECORDS_TOKEN_MAX]);

struct al_records_stats {
    uint64_t count;   /* stored, as of the last commit */
    uint64_t bytes;   /* of the file's pages in use, as of the last commit */
    uint64_t waiting; /* not yet written */
    uint64_t
        written; /* puts that were committed; a put that replaced a waiting one is not counted */
    uint64_t dropped;    /* puts that were lost */
    uint64_t expired;    /* deleted by the limits */
    uint64_t corrupt;    /* how often a record was met that is not what was written */
    bool working;        /* the store is open and the last commit succeeded */
    char trouble[256];   /* why not; "" when it works */
    char set_aside[256]; /* the last file set aside, and why; "" for none */
};
void al_records_stats(struct al_records *records, struct al_records_stats *ret);
