/*
 * What the two halves of a Stream share: rpc_stream.c starts the job and sends its events,
 * stream_input.c takes what the client says afterwards.
 */
#pragma once

#include <pthread.h>

#include "backends/base/err.h"
#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/arena.h"
#include "service/admit.h"
#include "service/call.h"

struct al_stream {
    struct al_call base;
    struct al_admitted admitted;

    /* Sending; of whoever's turn it is (job.h). */
    struct al_reader reader;
    struct al_event *event; /* on its way */
    struct al_err failure;  /* set before the reader is detached: how the call ends */

    bool over; /* CQ thread: nothing more is said to the client, or only `failure` */

    /* Receiving; of the one who may start a read. */
    struct al_op read;
    grpc_byte_buffer *received;
    bool stdin_ended; /* by a message: more stdin is an error */
    bool terminal;

    pthread_mutex_t lock;         /* guards what follows */
    uint64_t stdin_received;      /* bytes of stdin handed to the job */
    struct al_arena *stdin_arena; /* of a message whose stdin is not all handed over; or NULL */
    struct al_bytes stdin_rest;
};

/* Begins to read the client's further messages; the job exists. CQ thread. */
void al_stream_input_start(struct al_stream *stream);

/* Frees what was read. */
void al_stream_input_finish(struct al_stream *stream);

/* Bytes of stdin that the job has got: no output of its program that answers them is sent with
 * less. Any thread. */
uint64_t al_stream_stdin_received(struct al_stream *stream);

/* A mistake of the client's: the job dies, the call ends with that status. */
void al_stream_fail(struct al_stream *stream, const struct al_err *err);
