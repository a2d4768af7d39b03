#include "client/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#define RETRY_PUSHBACK "grpc-retry-pushback-ms"

static gpr_timespec deadline_after(int64_t ms)
{
    if (ms < 0) {
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    }
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(ms, GPR_TIMESPAN));
}

static void link_call(struct al_call *call)
{
    struct al_client *client = call->client;
    pthread_mutex_lock(&client->lock);
    call->next = client->calls;
    call->link = &client->calls;
    if (call->next) {
        call->next->link = &call->next;
    }
    client->calls = call;
    bool cancelled = client->cancelled;
    pthread_mutex_unlock(&client->lock);
    if (cancelled) {
        grpc_call_cancel(call->call, NULL);
    }
}

static void unlink_call(struct al_call *call)
{
    pthread_mutex_lock(&call->client->lock);
    *call->link = call->next;
    if (call->next) {
        call->next->link = call->link;
    }
    pthread_mutex_unlock(&call->client->lock);
}

void al_call_init(struct al_call *call, struct al_client *client, enum al_method method,
                  const struct al_call_options *options)
{
    bool bounded = options && options->deadline_ms > 0;
    memset(call, 0, sizeof *call);
    call->client = client;
    call->queue = grpc_completion_queue_create_for_pluck(NULL);
    call->details = grpc_empty_slice();
    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    call->call = grpc_channel_create_registered_call(
        client->channel, NULL, GRPC_PROPAGATE_DEFAULTS, call->queue, client->methods[method],
        deadline_after(bounded ? options->deadline_ms : -1), NULL);
    link_call(call);
}

void al_call_finish(struct al_call *call)
{
    unlink_call(call);
    grpc_call_unref(call->call);
    grpc_completion_queue_shutdown(call->queue);
    grpc_completion_queue_pluck(call->queue, NULL, deadline_after(-1), NULL);
    grpc_completion_queue_destroy(call->queue);
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_slice_unref(call->details);
}

void al_call_fill_ops(struct al_call *call, grpc_op ops[AL_CALL_OPS])
{
    memset(ops, 0, AL_CALL_OPS * sizeof *ops);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[0].data.send_initial_metadata.count = call->client->n_metadata;
    ops[0].data.send_initial_metadata.metadata = call->client->metadata;
    ops[1].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[1].data.recv_initial_metadata.recv_initial_metadata = &call->initial;
    ops[2].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[2].data.recv_status_on_client.trailing_metadata = &call->trailing;
    ops[2].data.recv_status_on_client.status = &call->code;
    ops[2].data.recv_status_on_client.status_details = &call->details;
}

bool al_call_pluck(struct al_call *call, void *tag, int64_t timeout_ms, bool *ret_success)
{
    grpc_event event =
        grpc_completion_queue_pluck(call->queue, tag, deadline_after(timeout_ms), NULL);
    if (event.type != GRPC_OP_COMPLETE) {
        return false;
    }
    if (ret_success) {
        *ret_success = event.success != 0;
    }
    return true;
}

static int64_t read_pushback(const grpc_metadata_array *trailing)
{
    for (size_t i = 0; i < trailing->count; i++) {
        if (grpc_slice_str_cmp(trailing->metadata[i].key, RETRY_PUSHBACK) == 0) {
            char *value = grpc_slice_to_c_string(trailing->metadata[i].value);
            char *end;
            long long ms = strtoll(value, &end, 10);
            bool valid = end != value && *end == '\0' && ms >= 0;
            gpr_free(value);
            return valid ? ms : -1;
        }
    }
    return -1;
}

static bool is_connected(const struct al_client *client)
{
    grpc_connectivity_state state = grpc_channel_check_connectivity_state(client->channel, 0);
    return state != GRPC_CHANNEL_TRANSIENT_FAILURE && state != GRPC_CHANNEL_CONNECTING;
}

void al_call_read_status(const struct al_call *call, struct al_call_status *ret)
{
    al_call_status_set(ret, call->code, "%.*s", (int)GRPC_SLICE_LENGTH(call->details),
                       (const char *)GRPC_SLICE_START_PTR(call->details));
    ret->retry_pushback_ms = read_pushback(&call->trailing);
    ret->unreachable = call->code == GRPC_STATUS_UNAVAILABLE && !is_connected(call->client);
}

void al_call_status_set(struct al_call_status *status, grpc_status_code code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    status->code = code;
    status->unreachable = false;
    status->retry_pushback_ms = -1;
    vsnprintf(status->text, sizeof status->text, fmt, args);
    va_end(args);
}

const char *al_call_status_name(grpc_status_code code)
{
    static const char *const names[] = {
        [GRPC_STATUS_OK] = "OK",
        [GRPC_STATUS_CANCELLED] = "CANCELLED",
        [GRPC_STATUS_UNKNOWN] = "UNKNOWN",
        [GRPC_STATUS_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
        [GRPC_STATUS_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
        [GRPC_STATUS_NOT_FOUND] = "NOT_FOUND",
        [GRPC_STATUS_ALREADY_EXISTS] = "ALREADY_EXISTS",
        [GRPC_STATUS_PERMISSION_DENIED] = "PERMISSION_DENIED",
        [GRPC_STATUS_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
        [GRPC_STATUS_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
        [GRPC_STATUS_ABORTED] = "ABORTED",
        [GRPC_STATUS_OUT_OF_RANGE] = "OUT_OF_RANGE",
        [GRPC_STATUS_UNIMPLEMENTED] = "UNIMPLEMENTED",
        [GRPC_STATUS_INTERNAL] = "INTERNAL",
        [GRPC_STATUS_UNAVAILABLE] = "UNAVAILABLE",
        [GRPC_STATUS_DATA_LOSS] = "DATA_LOSS",
        [GRPC_STATUS_UNAUTHENTICATED] = "UNAUTHENTICATED",
    };
    bool known = code >= 0 && (size_t)code < sizeof names / sizeof *names;
    return known ? names[code] : "UNKNOWN";
}
