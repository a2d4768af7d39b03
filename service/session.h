/*
 * What a Stream's job has apart from the calls that follow it: the hold on the job, the state of
 * its standard input, and its time to linger. Each of those calls holds a reference, and so do the
 * job's run and, if it lingers, the table of lingering jobs; with the last one the output is
 * dropped.
 *
 * The calls come and go on the completion queue's thread.
 */
#pragma once

#include <pthread.h>

#include "backends/base/err.h"
#include "proto/wire/arena.h"
#include "service/admit.h"
#include "service/linger.h"

struct al_stream;

struct al_session {
    struct al_linger_entry entry; /* first; holds the reference count */
    struct al_service *service;
    struct al_admitted admitted;
    int64_t linger_ms; /* 0: the job dies with its stream */
    bool terminal;

    struct al_stream *stream; /* CQ thread: the one that reads; NULL: none */

    pthread_mutex_t lock;         /* guards what follows */
    uint64_t stdin_received;      /* bytes of stdin handed to the job */
    bool stdin_ended;             /* by a message: more stdin is an error */
    struct al_stream *sender;     /* whose message has stdin that is not all handed over; or NULL */
    struct al_arena *stdin_arena; /* of that message */
    struct al_bytes stdin_rest;
};

/* With one reference. NULL when memory is out. */
struct al_session *al_session_create(struct al_service *service, int64_t linger_ms);
void al_session_unref(struct al_session *session);

/* Hands the admitted job to the executor; the stream is the one that reads. On failure nothing of
 * it will run. CQ thread. */
int al_session_submit(struct al_session *session, struct al_stream *stream, struct al_err *err);

/* al_admission.run of the session's job, whose owner it is. */
void al_session_run(struct al_task *task, bool removed);

/* The session of a job that lingers for the tenant, with a reference for the caller. NOT_FOUND says
 * why there is none. */
int al_session_find(struct al_service *service, const char *tenant, const char *job_id,
                    struct al_session **ret, struct al_err *err);

/* The stream reads from now on, after that sequence; *ret_before is the one that did so until now,
 * or NULL, and *ret_was_idle is about that (see al_job_attach). NOT_FOUND; -ERANGE, and no error is
 * set, when events are missing. CQ thread. */
int al_session_attach(struct al_session *session, struct al_stream *stream, uint64_t after_sequence,
                      struct al_stream **ret_before, bool *ret_was_idle, struct al_err *err);

/* The stream reads no more, if it did: the job is cancelled, or lingers. CQ thread. */
void al_session_left(struct al_session *session, const struct al_stream *stream);

/* Gives up the jobs whose time is over, and says when to come back: CLOCK_MONOTONIC, or INT64_MAX.
 * CQ thread. */
int64_t al_session_expire(struct al_service *service);

/* Gives up what has ended and is read by nobody, from now on at once. Any thread. */
void al_session_drain(struct al_service *service);

/* Bytes of stdin that the job has got. Any thread. */
uint64_t al_session_stdin_received(struct al_session *session);
