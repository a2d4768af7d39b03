/*
 * A job: one run of one program, from the request's admission until its record is forgotten.
 *
 * Reference-counted. It owns the request's arena until the run has ended, and its live part (ctl,
 * ring of events) until al_job_drop_output; what is left then is a compact record. The task with
 * which the executor runs it is part of it.
 *
 * Who calls what: one thread runs the job (al_job_begin, the sink, al_job_end); one reader at a
 * time takes events; anybody may cancel or look. Thread-safe within that. The lock inside is never
 * held across a callback.
 *
 * A job that lingers outlives its readers: without one its events are kept, and a full ring stops
 * its program, until another reader takes over or al_job_discard says that none will.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/backend.h"
#include "service/event.h"
#include "service/executor.h"
#include "service/policy.h"
#include "service/ring.h"

struct al_arena;

#define AL_SHA256_LEN 32

#define AL_JOB_ARTIFACT_COPIES 2 /* the job's, and that in a packed reply */

struct al_job_params {
    struct al_arena *arena;   /* of the request; the job's from now on */
    struct al_job_spec *spec; /* in the arena; the job puts its id into it */
    struct al_backend *backend;
    const struct al_env *metadata; /* copied */
    size_t n_metadata;
    struct al_executor *executor;
    enum al_lane lane;
    void (*run)(struct al_task *task, bool removed);
    void *owner;            /* for `run`; the job only keeps it */
    size_t ring_bytes;      /* ordered in AL_LANE_STREAMS, by channel in AL_LANE_RUNS */
    size_t keep_bytes;      /* of events that were sent, for the next reader; 0: does not linger */
    size_t artifact_memory; /* reserved for artifacts besides the ring; 0: none are asked for */
    int64_t deadline_ms;    /* when the wall limit ends at the latest, CLOCK_MONOTONIC; 0: none */
    struct al_run_policy policy;
};

/* One thing that the egress gate saw and let pass. */
struct al_job_finding {
    const char *host;
    const char *rule;
    uint32_t line;
};

/* What the pipeline, rather than the backend, has to say of a job. */
struct al_job_notes {
    bool has_fingerprint;
    uint8_t fingerprint[AL_SHA256_LEN];
    int64_t cached_wall_ns;  /* when the result was stored; 0: it is not from the cache */
    uint32_t retry_after_ms; /* 0: nothing to say */
    const struct al_job_finding *findings;
    size_t n_findings;
};

struct al_job;

/* PENDING, with one reference. On failure (memory, fds, randomness: AL_ERR_INTERNAL) the arena is
 * still the caller's. */
int al_job_create(const struct al_job_params *params, struct al_job **ret, struct al_err *err);

struct al_job *al_job_ref(struct al_job *job);
void al_job_unref(struct al_job *job);

/* --- fixed for life; any thread --- */

const char *al_job_id(const struct al_job *job);
uint64_t al_job_key(const struct al_job *job); /* the id as a number */
const char *al_job_tenant(const struct al_job *job);
struct al_backend *al_job_backend(const struct al_job *job);
void *al_job_owner(const struct al_job *job);
bool al_job_lingers(const struct al_job *job);
struct al_task *al_job_task(struct al_job *job);
struct al_job *al_job_of_task(struct al_task *task);

/* Links for the table that the job is in, under that table's lock. */
struct al_job_links {
    struct al_job *next_in_bucket;
    struct al_job *next_ended;
};
struct al_job_links *al_job_links(struct al_job *job);

/* --- the thread that runs it --- */

/* Borrowed; until al_job_end. */
struct al_job_spec *al_job_spec(struct al_job *job);
struct al_ctl *al_job_ctl(struct al_job *job);
struct al_sink *al_job_sink(struct al_job *job);
int64_t al_job_deadline_ms(const struct al_job *job);
const struct al_run_policy *al_job_policy(const struct al_job *job);

/* Written by the thread that runs the job, before al_job_end; read by anybody after it. What it
 * points to is freed with the job: one malloc'ed block, given to al_job_own_findings. */
struct al_job_notes *al_job_notes(struct al_job *job);
void al_job_own_findings(struct al_job *job, struct al_job_finding *findings, size_t n);

/* Called with the CPU time used so far, now and then while the backend runs. */
void al_job_on_used(struct al_job *job, void (*fn)(void *arg, int64_t cpu_us), void *arg);

/* What a Run's program has printed; borrowed until al_job_end. By al_channel. */
void al_job_peek_output(struct al_job *job, struct al_bytes ret[2]);

/* PENDING → RUNNING; the limits of the spec are now those in force. */
void al_job_begin(struct al_job *job);

/* The one terminal status. Takes over the result's buffers, and the artifacts apart from them.
 * Bytes for which there was no memory make it failed/BACKEND. Frees the arena, tells reader and
 * waiters. */
void al_job_end(struct al_job *job, struct al_result *result);

/* --- the reader --- */

/*
 * A reader has its turn or is idle. Whoever has its turn calls al_job_next, and loses the turn when
 * that returns NULL: to the job (AL_READER_IDLE), whose thread gives it back by `wake`, or for
 * good. A reader that was detached or replaced learns that in its next turn; if it was idle the one
 * who did it has its last turn, so that exactly one thread sees the end of each reader. It must
 * stay valid until then. A Run has no reader; NULL stands for it.
 */
struct al_reader {
    /* Called without locks, on the thread that runs the job, when something came while the reader
     * was idle. It is the reader's turn then. */
    void (*wake)(struct al_reader *reader);
};

enum al_reader_state {
    AL_READER_IDLE,     /* nothing is there yet */
    AL_READER_DETACHED, /* it is not the job's reader any more */
    AL_READER_FINISHED, /* the job has ended, and there will be nothing any more */
};

/* Before the job is submitted. It is the reader's turn. */
void al_job_set_reader(struct al_job *job, struct al_reader *reader);

/* The next event, which the reader hands back with al_job_event_done, or NULL and why. */
struct al_event *al_job_next(struct al_job *job, const struct al_reader *reader,
                             enum al_reader_state *ret_state);

/* The event has been sent: drops the reader's reference and makes room for the program, unless
 * somebody else reads by now. */
void al_job_event_done(struct al_job *job, const struct al_reader *reader, struct al_event *event);

/* The reader leaves. If the job lingers it goes on without; else what waits and what comes is
 * dropped. No effect when it is not the job's reader. True when it was idle: see above. */
bool al_job_detach(struct al_job *job, const struct al_reader *reader);

/* Makes `reader`, whose turn it is, the one that reads, from the event after that sequence (0: from
 * the oldest that is kept). *ret_was_idle is for the reader before it, if there was one: see above.
 * -ENOENT when the job does not linger or its output is discarded, -ERANGE when an event after that
 * sequence is no longer kept or that sequence has not been reached; nothing has changed then. */
int al_job_attach(struct al_job *job, struct al_reader *reader, uint64_t after_sequence,
                  bool *ret_was_idle);

/* Nobody will read any more: what waits and what comes is dropped. No reader is there. */
void al_job_discard(struct al_job *job);

/* What the ended job has left for its caller, until al_job_drop_output. */
const struct al_artifacts *al_job_artifacts(const struct al_job *job);

/* The memory that the output of an ended job takes. */
size_t al_job_memory(struct al_job *job);

/* Drops ring, artifacts and ctl. The run has ended (or was never submitted) and no reader has an
 * event. Only the record is left. */
void al_job_drop_output(struct al_job *job);

/* --- any thread --- */

/* Fires the job's ctl; takes it out of the queue if it waits there, which ends it here and now.
 * False when it had ended before. Callbacks may run: hold no lock. */
bool al_job_cancel(struct al_job *job);

struct al_job_waiter {
    /* Called once, without locks, on the thread that ended the job. */
    void (*ended)(struct al_job_waiter *waiter, enum al_status status);
    struct al_job_waiter *next; /* the job's */
};

/* Calls the waiter when the job ends. False when it has ended already: it will not be called, and
 * *ret_status is the job's. */
bool al_job_wait(struct al_job *job, struct al_job_waiter *waiter, enum al_status *ret_status);

/* What is known of a job at one moment. Pointers are good as long as the caller's reference. */
struct al_job_info {
    const char *id;
    const char *tenant_id;
    const char *user_id;
    const struct al_backend *backend;
    const struct al_language *language;
    const struct al_env *metadata;
    size_t n_metadata;
    enum al_status status;
    struct al_quotas quotas;          /* in force; the asked ones before it runs */
    const struct al_result *result;   /* NULL before the end */
    const uint8_t *code_sha256;       /* NULL before the run */
    const struct al_job_notes *notes; /* NULL before the end */
    int64_t created_wall_ns;
    int64_t started_wall_ns;  /* 0: not started */
    int64_t finished_wall_ns; /* 0: not ended */
    int64_t queue_us;         /* from creation to start, or to the end when it never started */
};

void al_job_info(struct al_job *job, struct al_job_info *ret);

/* Set once by the thread that runs it. */
void al_job_set_code_sha256(struct al_job *job, const uint8_t digest[AL_SHA256_LEN]);
