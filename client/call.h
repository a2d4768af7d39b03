/* What the unary calls and streams of client.h share. Private to the library. */
#pragma once

#include <pthread.h>

#include <grpc/grpc.h>

#include "client/client.h"

enum al_method {
    AL_METHOD_RUN,
    AL_METHOD_STREAM,
    AL_METHOD_KILL,
    AL_METHOD_LIST_BACKENDS,
    AL_METHOD_GET_JOB,
    AL_METHOD_LIST_JOBS,
    AL_METHOD_GET_QUOTA,
    AL_METHOD_GET_CACHE_STATS,
    AL_METHOD_CLEAR_CACHE,
    AL_METHOD_COUNT,
};

struct al_client {
    grpc_channel *channel;
    void *methods[AL_METHOD_COUNT]; /* gRPC's handles of registered calls; the channel owns them */
    grpc_metadata metadata[1];
    size_t n_metadata;
    pthread_mutex_t lock; /* of what follows */
    struct al_call *calls;
    bool cancelled;
};

/* One call with its own queue and what gRPC writes about its end. */
struct al_call {
    struct al_client *client;
    struct al_call *next, **link; /* in client->calls */
    grpc_call *call;
    grpc_completion_queue *queue; /* for pluck */
    grpc_metadata_array initial, trailing;
    grpc_status_code code;
    grpc_slice details;
};

/* Starts nothing yet. The call is linked into its client, or cancelled if that is. */
void al_call_init(struct al_call *call, struct al_client *client, enum al_method method,
                  const struct al_call_options *options);

/* All operations must have been plucked. */
void al_call_finish(struct al_call *call);

/* The operations of every call: send and receive initial metadata, receive the status. */
#define AL_CALL_OPS 3
void al_call_fill_ops(struct al_call *call, grpc_op ops[AL_CALL_OPS]);

/* Waits for `tag`; -1: for ever. False: time is over. `ret_success` may be NULL. */
bool al_call_pluck(struct al_call *call, void *tag, int64_t timeout_ms, bool *ret_success);

/* After the status was received. */
void al_call_read_status(const struct al_call *call, struct al_call_status *ret);

void al_call_status_set(struct al_call_status *status, grpc_status_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
