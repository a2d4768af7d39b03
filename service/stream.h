/*
 * What the parts of a Stream share: rpc_stream.c starts or joins the job and sends its events,
 * stream_input.c takes what the client says afterwards; session.h has what outlives the call.
 */
#pragma once

#include "backends/base/err.h"
#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/arena.h"
#include "service/call.h"
#include "service/session.h"

struct al_stream {
    struct al_call base;
    struct al_session *session; /* a reference */

    /* Sending; of whoever's turn it is (job.h). The call has a reference for the reader, which goes
     * with its last turn. */
    struct al_reader reader;
    struct al_event *event; /* on its way */
    struct al_deferred turn;
    bool is_greeting;      /* or the first answer to attach */
    struct al_err failure; /* set before the reader is detached: how the call ends */

    bool over; /* CQ thread: nothing more is said to the client, or only `failure` */

    /* Receiving; of the one who may start a read. */
    struct al_op read;
    grpc_byte_buffer *received;
};

/* Begins to read the client's further messages; the job exists. CQ thread. */
void al_stream_input_start(struct al_stream *stream);

/* Frees what was read. */
void al_stream_input_finish(struct al_stream *stream);

/* Forgets the stdin that waits in the session; its sender sends it again to another call. */
void al_stream_stdin_drop(struct al_session *session);

/* A mistake of the client's: the call ends with that status, and the job dies unless it lingers. */
void al_stream_fail(struct al_stream *stream, const struct al_err *err);
