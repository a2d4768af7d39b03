/*
 * A blocking gRPC client for tests: calls with raw or protobuf-c messages, one completion queue a
 * call. Whatever takes longer than 20 s fails the test. One thread a call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <grpc/grpc.h>
#include <protobuf-c/protobuf-c.h>

#include "proto/wire/arena.h"

#define AL_TEST_SERVICE "/airlock.v1.ExecutionService/"

struct al_test_call {
    grpc_completion_queue *cq;
    grpc_call *call;
    grpc_metadata_array initial;
    grpc_metadata_array trailing;
    grpc_slice details;
    grpc_byte_buffer *received;
    grpc_status_code status;
    /* After al_test_finish. */
    int pushback_ms; /* grpc-retry-pushback-ms; 0: none */
    char text[512];  /* of the status */
};

/* Begins a call. `tenant` becomes airlock-tenant metadata, unless NULL; deadline_ms 0: none. */
void al_test_begin(struct al_test_call *call, grpc_channel *channel, const char *method,
                   const char *tenant, int deadline_ms);
void al_test_send(struct al_test_call *call, const ProtobufCMessage *message);
void al_test_send_bytes(struct al_test_call *call, const void *data, size_t len);
void al_test_half_close(struct al_test_call *call);

/* The next message, in an arena that the caller destroys; NULL: there is none any more. */
ProtobufCMessage *al_test_receive(struct al_test_call *call, const ProtobufCMessageDescriptor *desc,
                                  struct al_arena **ret_arena);

/* Waits for the status and returns it. */
grpc_status_code al_test_finish(struct al_test_call *call);
void al_test_call_free(struct al_test_call *call);

/* A whole unary call. The answer (in *ret_arena) or NULL; *call is finished but not freed. */
ProtobufCMessage *al_test_unary(struct al_test_call *call, grpc_channel *channel,
                                const char *method, const char *tenant,
                                const ProtobufCMessage *request,
                                const ProtobufCMessageDescriptor *desc,
                                struct al_arena **ret_arena);
