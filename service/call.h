/*
 * One call that a client makes, from gRPC's notice of it to its last event.
 *
 * Theory of operation. Everything that gRPC is asked to do has a tag; a tag is a struct al_op
 * inside the call that says who is told when it is done. All are told on the completion queue's
 * thread. Each operation under way, and each task that the call has given away, holds a reference;
 * when the last one goes the call is freed.
 *
 * Sending is possible from any thread, but by one at a time: whoever starts a send may do so only
 * when no other is under way. A Run sends once. In a Stream the job's reader protocol (job.h) says
 * whose turn it is.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <grpc/grpc.h>

#include "service/service.h"

/* A tag. */
struct al_op {
    void (*done)(struct al_op *op, bool ok); /* CQ thread */
    atomic_bool pending;
};

/* Before the operation is started and when it is done: hands over what the starting thread wrote.
 */
void al_op_start(struct al_op *op, void (*done)(struct al_op *op, bool ok));
void al_op_finish(struct al_op *op);

struct al_call;

/* A method. Constant. */
struct al_rpc {
    const char *path; /* "/package.Service/Method"; NULL: every other */
    size_t call_size; /* of the struct that begins with struct al_call */
    /* How many calls gRPC may announce before we look; each is armed anew at once, the rest waits
     * in gRPC. Few: Debian's gRPC searches all outstanding tags of the queue at every event. */
    unsigned armed;
    bool in_drain; /* served while draining */
    /* The call is there, and so are metadata, deadline and first message. CQ thread. */
    void (*arrived)(struct al_call *call);
    /* May be NULL. The client cancelled or left, or the deadline has passed. CQ thread. */
    void (*gone)(struct al_call *call);
    /* May be NULL. The last reference is gone: release what the larger struct holds. Any thread. */
    void (*finish)(struct al_call *call);
};

struct al_server;

struct al_call {
    const struct al_rpc *rpc;
    struct al_service *service;
    struct al_server *server;
    atomic_uint refs;

    /* Filled by gRPC when the call arrives. */
    grpc_call *grpc;
    grpc_metadata_array metadata;
    gpr_timespec deadline;
    grpc_byte_buffer *payload; /* the first message; NULL: none */
    grpc_call_details details; /* only for an rpc without path */
    struct al_op arrive;

    struct al_op close;
    int cancelled;
    bool counted; /* in service->calls */

    /* Of whoever's turn it is to send. */
    struct al_op send;
    grpc_byte_buffer *sending;
    bool began; /* initial metadata is on its way */
    /* Set before the first al_call_write; told of each of them. CQ thread. */
    void (*sent)(struct al_call *call, bool ok);
};

struct al_call *al_call_ref(struct al_call *call);
void al_call_unref(struct al_call *call);

/* Starts a batch with a reference held; `op` is its tag. */
void al_call_start(struct al_call *call, const grpc_op *ops, size_t n_ops, struct al_op *op,
                   void (*done)(struct al_op *op, bool ok));

/* Sends a message. Takes the buffer. */
void al_call_write(struct al_call *call, grpc_byte_buffer *message);

/* Sends a message and status OK, the end of the call. Takes the buffer; NULL (a message too large
 * to be sent) ends it with INTERNAL instead. */
void al_call_reply(struct al_call *call, grpc_byte_buffer *message);

/* Ends the call with the status that fits the error, and the pushback that goes with it. */
void al_call_fail(struct al_call *call, const struct al_err *err);

/* Ends the call with a status that no al_err_code stands for. */
void al_call_fail_status(struct al_call *call, grpc_status_code status, const char *text);

/* The value of `airlock-tenant` into `value`, or NULL in *ret when there is none. A value that is
 * too long for any tenant is cut, and still too long. INVALID_ARGUMENT when there are several. */
#define AL_TENANT_METADATA_MAX 160
int al_call_tenant(const struct al_call *call, char value[AL_TENANT_METADATA_MAX], const char **ret,
                   struct al_err *err);

/* CLOCK_MONOTONIC; 0: none. */
int64_t al_call_deadline_ms(const struct al_call *call);

/* Unpacks the first message, or `buffer`, and frees it. INVALID_ARGUMENT says what is wrong. */
int al_call_unpack(const ProtobufCMessageDescriptor *desc, grpc_byte_buffer **buffer,
                   const struct al_wire_limits *limits, struct al_arena **ret_arena,
                   ProtobufCMessage **ret_message, struct al_err *err);
