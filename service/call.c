#include "service/call.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>

#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "proto/wire/wire.h"
#include "service/server_internal.h"

#define TENANT_KEY   "airlock-tenant"
#define PUSHBACK_KEY "grpc-retry-pushback-ms"

#define CALL_OF_SEND(op) ((struct al_call *)((char *)(op)-offsetof(struct al_call, send)))

void al_op_start(struct al_op *op, void (*done)(struct al_op *op, bool ok))
{
    op->done = done;
    bool was_pending = atomic_exchange(&op->pending, true);
    assert(!was_pending);
    (void)was_pending;
}

void al_op_finish(struct al_op *op)
{
    bool was_pending = atomic_exchange(&op->pending, false);
    assert(was_pending);
    (void)was_pending;
}

struct al_call *al_call_ref(struct al_call *call)
{
    atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
    return call;
}

void al_call_unref(struct al_call *call)
{
    if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) == 1) {
        al_server_free_call(call);
    }
}

void al_call_start(struct al_call *call, const grpc_op *ops, size_t n_ops, struct al_op *op,
                   void (*done)(struct al_op *op, bool ok))
{
    al_call_ref(call);
    al_op_start(op, done);
    grpc_call_error error = grpc_call_start_batch(call->grpc, ops, n_ops, op, NULL);
    if (error != GRPC_CALL_OK) { /* our own mistake; the call ends when its client gives up */
        al_log_error("gRPC refused an operation: %s", grpc_call_error_to_string(error));
        op->pending = false;
        grpc_call_cancel(call->grpc, NULL);
        al_call_unref(call);
    }
}

static void send_done(struct al_op *op, bool ok)
{
    struct al_call *call = CALL_OF_SEND(op);
    grpc_byte_buffer_destroy(call->sending);
    call->sending = NULL;
    if (call->sent) {
        call->sent(call, ok);
    }
    al_call_unref(call);
}

static size_t add_start(struct al_call *call, grpc_op *op)
{
    if (call->began) {
        return 0;
    }
    call->began = true;
    *op = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
    return 1;
}

static size_t add_message(struct al_call *call, grpc_op *op, grpc_byte_buffer *message)
{
    call->sending = message;
    *op = (grpc_op){
        .op = GRPC_OP_SEND_MESSAGE,
        .flags = GRPC_WRITE_NO_COMPRESS,
        .data.send_message.send_message = message,
    };
    return 1;
}

void al_call_write(struct al_call *call, grpc_byte_buffer *message)
{
    grpc_op ops[2];
    size_t n = add_start(call, ops);
    n += add_message(call, ops + n, message);
    al_call_start(call, ops, n, &call->send, send_done);
}

void al_call_reply(struct al_call *call, grpc_byte_buffer *message)
{
    if (!message) {
        al_call_fail_status(call, GRPC_STATUS_INTERNAL, "the answer is too large to be sent");
        return;
    }
    grpc_op ops[3];
    size_t n = add_start(call, ops);
    n += add_message(call, ops + n, message);
    ops[n++] = (grpc_op){
        .op = GRPC_OP_SEND_STATUS_FROM_SERVER,
        .data.send_status_from_server.status = GRPC_STATUS_OK,
    };
    al_call_start(call, ops, n, &call->send, send_done);
}

static void end_call(struct al_call *call, grpc_status_code status, const char *text,
                     int pushback_ms)
{
    char value[16];
    (void)snprintf(value, sizeof value, "%d", pushback_ms);
    grpc_metadata pushback = {
        .key = grpc_slice_from_static_string(PUSHBACK_KEY),
        .value = grpc_slice_from_copied_string(value),
    };
    grpc_slice details = grpc_slice_from_copied_string(text);
    grpc_op ops[2];
    size_t n = add_start(call, ops);
    ops[n++] = (grpc_op){
        .op = GRPC_OP_SEND_STATUS_FROM_SERVER,
        .data.send_status_from_server =
            {
                .trailing_metadata_count = pushback_ms > 0 ? 1 : 0,
                .trailing_metadata = &pushback,
                .status = status,
                .status_details = &details,
            },
    };
    al_call_start(call, ops, n, &call->send, send_done);
    grpc_slice_unref(details);
    grpc_slice_unref(pushback.value);
}

void al_call_fail(struct al_call *call, const struct al_err *err)
{
    static const struct {
        grpc_status_code status;
        int pushback_ms;
    } table[] = {
        [AL_ERR_NONE] = {GRPC_STATUS_INTERNAL, 0},
        [AL_ERR_INVALID_ARGUMENT] = {GRPC_STATUS_INVALID_ARGUMENT, 0},
        [AL_ERR_NOT_FOUND] = {GRPC_STATUS_NOT_FOUND, 0},
        [AL_ERR_FAILED_PRECONDITION] = {GRPC_STATUS_FAILED_PRECONDITION, 0},
        [AL_ERR_RESOURCE_EXHAUSTED] = {GRPC_STATUS_RESOURCE_EXHAUSTED, AL_PUSHBACK_BUSY_MS},
        [AL_ERR_UNAVAILABLE] = {GRPC_STATUS_UNAVAILABLE, AL_PUSHBACK_DRAINING_MS},
        [AL_ERR_PERMISSION_DENIED] = {GRPC_STATUS_PERMISSION_DENIED, 0},
        [AL_ERR_INTERNAL] = {GRPC_STATUS_INTERNAL, 0},
    };
    end_call(call, table[err->code].status, err->text, table[err->code].pushback_ms);
}

void al_call_fail_status(struct al_call *call, grpc_status_code status, const char *text)
{
    end_call(call, status, text, 0);
}

int al_call_tenant(const struct al_call *call, char value[AL_TENANT_METADATA_MAX], const char **ret,
                   struct al_err *err)
{
    *ret = NULL;
    for (size_t i = 0; i < call->metadata.count; i++) {
        const grpc_metadata *entry = &call->metadata.metadata[i];
        if (grpc_slice_str_cmp(entry->key, TENANT_KEY) != 0) {
            continue;
        }
        if (*ret) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                              "metadata " TENANT_KEY ": given more than once");
        }
        size_t len = GRPC_SLICE_LENGTH(entry->value);
        len = len < AL_TENANT_METADATA_MAX ? len : AL_TENANT_METADATA_MAX - 1;
        memcpy(value, GRPC_SLICE_START_PTR(entry->value), len);
        value[len] = '\0';
        *ret = value;
    }
    return 0;
}

int64_t al_call_deadline_ms(const struct al_call *call)
{
    gpr_timespec deadline = call->deadline;
    if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) {
        return 0;
    }
    gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    return al_now_ms() + gpr_time_to_millis(left);
}

int al_call_unpack(const ProtobufCMessageDescriptor *desc, grpc_byte_buffer **buffer,
                   const struct al_wire_limits *limits, struct al_arena **ret_arena,
                   ProtobufCMessage **ret_message, struct al_err *err)
{
    char why[AL_ERR_TEXT_MAX] = "";
    int r = al_wire_unpack(desc, *buffer, limits, ret_arena, ret_message, why, sizeof why);
    grpc_byte_buffer_destroy(*buffer);
    *buffer = NULL;
    if (r == -ENOMEM) {
        return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED, "%.400s", why);
    }
    return r < 0 ? al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%.400s", why) : 0;
}
