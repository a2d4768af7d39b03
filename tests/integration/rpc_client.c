#include "tests/integration/rpc_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#include "proto/wire/wire.h"

#define TIMEOUT_S 20

enum tag { TAG_SEND = 1, TAG_RECEIVE, TAG_STATUS, TAG_INITIAL };

static void *to_tag(enum tag tag)
{
    return (void *)(uintptr_t)tag;
}

static gpr_timespec after_ms(int ms)
{
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(ms, GPR_TIMESPAN));
}

static void start(struct al_test_call *call, const grpc_op *ops, size_t n, enum tag tag)
{
    assert_int_equal(grpc_call_start_batch(call->call, ops, n, to_tag(tag), NULL), GRPC_CALL_OK);
}

static bool wait_for(struct al_test_call *call, enum tag tag)
{
    grpc_event event =
        grpc_completion_queue_pluck(call->cq, to_tag(tag), after_ms(TIMEOUT_S * 1000), NULL);
    assert_int_equal(event.type, GRPC_OP_COMPLETE);
    return event.success;
}

void al_test_begin(struct al_test_call *call, grpc_channel *channel, const char *method,
                   const char *tenant, int deadline_ms)
{
    char path[128];
    *call = (struct al_test_call){.details = grpc_empty_slice()};
    (void)snprintf(path, sizeof path, AL_TEST_SERVICE "%s", method);
    grpc_slice path_slice = grpc_slice_from_copied_string(path);
    call->cq = grpc_completion_queue_create_for_pluck(NULL);
    call->call = grpc_channel_create_call(
        channel, NULL, GRPC_PROPAGATE_DEFAULTS, call->cq, path_slice, NULL,
        deadline_ms ? after_ms(deadline_ms) : gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_slice_unref(path_slice);
    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    grpc_metadata metadata = {
        .key = grpc_slice_from_static_string("airlock-tenant"),
        .value = grpc_slice_from_copied_string(tenant ? tenant : ""),
    };
    const grpc_op send = {
        .op = GRPC_OP_SEND_INITIAL_METADATA,
        .data.send_initial_metadata = {.count = tenant ? 1 : 0, .metadata = &metadata},
    };
    const grpc_op receive = {
        .op = GRPC_OP_RECV_INITIAL_METADATA,
        .data.recv_initial_metadata.recv_initial_metadata = &call->initial,
    };
    const grpc_op status = {
        .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
        .data.recv_status_on_client =
            {
                .trailing_metadata = &call->trailing,
                .status = &call->status,
                .status_details = &call->details,
            },
    };
    start(call, &send, 1, TAG_SEND);
    start(call, &receive, 1, TAG_INITIAL);
    start(call, &status, 1, TAG_STATUS);
    (void)wait_for(call, TAG_SEND);
    grpc_slice_unref(metadata.value);
}

static void send_buffer(struct al_test_call *call, grpc_byte_buffer *buffer)
{
    const grpc_op op = {
        .op = GRPC_OP_SEND_MESSAGE,
        .data.send_message.send_message = buffer,
    };
    start(call, &op, 1, TAG_SEND);
    (void)wait_for(call, TAG_SEND);
    grpc_byte_buffer_destroy(buffer);
}

void al_test_send(struct al_test_call *call, const ProtobufCMessage *message)
{
    send_buffer(call, al_wire_pack(message));
}

void al_test_send_bytes(struct al_test_call *call, const void *data, size_t len)
{
    grpc_slice slice = grpc_slice_from_copied_buffer(data, len);
    send_buffer(call, grpc_raw_byte_buffer_create(&slice, 1));
    grpc_slice_unref(slice);
}

void al_test_half_close(struct al_test_call *call)
{
    const grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    start(call, &op, 1, TAG_SEND);
    (void)wait_for(call, TAG_SEND);
}

ProtobufCMessage *al_test_receive(struct al_test_call *call, const ProtobufCMessageDescriptor *desc,
                                  struct al_arena **ret_arena)
{
    ProtobufCMessage *message = NULL;
    char why[256] = "";
    *ret_arena = NULL;
    const grpc_op op = {
        .op = GRPC_OP_RECV_MESSAGE,
        .data.recv_message.recv_message = &call->received,
    };
    start(call, &op, 1, TAG_RECEIVE);
    if (!wait_for(call, TAG_RECEIVE) || !call->received) {
        return NULL;
    }
    if (al_wire_unpack(desc, call->received, &al_wire_response_limits, ret_arena, &message, why,
                       sizeof why) < 0)
    {
        fail_msg("cannot unpack: %s", why);
    }
    grpc_byte_buffer_destroy(call->received);
    call->received = NULL;
    return message;
}

grpc_status_code al_test_finish(struct al_test_call *call)
{
    (void)wait_for(call, TAG_STATUS);
    (void)wait_for(call, TAG_INITIAL);
    size_t len = GRPC_SLICE_LENGTH(call->details);
    len = len < sizeof call->text ? len : sizeof call->text - 1;
    memcpy(call->text, GRPC_SLICE_START_PTR(call->details), len);
    for (size_t i = 0; i < call->trailing.count; i++) {
        const grpc_metadata *entry = &call->trailing.metadata[i];
        if (grpc_slice_str_cmp(entry->key, "grpc-retry-pushback-ms") == 0) {
            char *value = grpc_slice_to_c_string(entry->value);
            call->pushback_ms = (int)strtol(value, NULL, 10);
            gpr_free(value);
        }
    }
    return call->status;
}

void al_test_call_free(struct al_test_call *call)
{
    grpc_byte_buffer_destroy(call->received);
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_slice_unref(call->details);
    grpc_call_unref(call->call);
    grpc_completion_queue_shutdown(call->cq);
    grpc_completion_queue_destroy(call->cq);
}

ProtobufCMessage *al_test_unary(struct al_test_call *call, grpc_channel *channel,
                                const char *method, const char *tenant,
                                const ProtobufCMessage *request,
                                const ProtobufCMessageDescriptor *desc, struct al_arena **ret_arena)
{
    al_test_begin(call, channel, method, tenant, 0);
    al_test_send(call, request);
    al_test_half_close(call);
    ProtobufCMessage *answer = al_test_receive(call, desc, ret_arena);
    (void)al_test_finish(call);
    return answer;
}
