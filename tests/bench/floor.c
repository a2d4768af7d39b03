#include "tests/bench/floor.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>

#include "tests/bench/die.h"

struct al_floor {
    grpc_channel *channel;
    grpc_completion_queue *queues[AL_CONTEST_THREADS_MAX];
};

/* One call and all that gRPC writes about it. */
struct call {
    grpc_call *call;
    grpc_completion_queue *queue;
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *request;
    grpc_byte_buffer *response;
    grpc_status_code status;
    grpc_slice details;
};

struct al_floor *al_floor_create(const char *address, int window_bytes)
{
    struct al_floor *floor = calloc(1, sizeof *floor);
    if (!floor) {
        al_bench_die("out of memory");
    }
    grpc_init();
    grpc_arg list[] = {
        {.type = GRPC_ARG_INTEGER, .key = GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, .value.integer = 1},
        {.type = GRPC_ARG_INTEGER,
         .key = GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
         .value.integer = 1},
        {.type = GRPC_ARG_INTEGER, .key = GRPC_ARG_HTTP2_BDP_PROBE, .value.integer = 0},
        {.type = GRPC_ARG_INTEGER,
         .key = GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
         .value.integer = window_bytes}};
    grpc_channel_args args = {.num_args = window_bytes > 0 ? 4 : 2, .args = list};
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    floor->channel = grpc_channel_create(address, credentials, &args);
    grpc_channel_credentials_release(credentials);
    for (size_t i = 0; i < AL_CONTEST_THREADS_MAX; i++) {
        floor->queues[i] = grpc_completion_queue_create_for_pluck(NULL);
    }
    return floor;
}

static void pluck(grpc_completion_queue *queue, void *tag)
{
    grpc_event event =
        grpc_completion_queue_pluck(queue, tag, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    if (tag && event.type != GRPC_OP_COMPLETE) {
        al_bench_die("floor: gRPC says event %d", (int)event.type);
    }
}

void al_floor_destroy(struct al_floor *floor)
{
    if (!floor) {
        return;
    }
    grpc_channel_destroy(floor->channel);
    for (size_t i = 0; i < AL_CONTEST_THREADS_MAX; i++) {
        grpc_completion_queue_shutdown(floor->queues[i]);
        pluck(floor->queues[i], NULL);
        grpc_completion_queue_destroy(floor->queues[i]);
    }
    free(floor);
    grpc_shutdown();
}

static void start_batch(struct call *call, const grpc_op *ops, size_t n, void *tag)
{
    grpc_call_error error = grpc_call_start_batch(call->call, ops, n, tag, NULL);
    if (error != GRPC_CALL_OK) {
        al_bench_die("floor: %s", grpc_call_error_to_string(error));
    }
}

#define CALL_OPS 5

/* The operations that both kinds of call begin with. */
static void fill_ops(struct call *call, grpc_op ops[CALL_OPS])
{
    memset(ops, 0, CALL_OPS * sizeof *ops);
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = call->request;
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[3].data.recv_initial_metadata.recv_initial_metadata = &call->initial;
    ops[4].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    ops[4].data.recv_status_on_client.trailing_metadata = &call->trailing;
    ops[4].data.recv_status_on_client.status = &call->status;
    ops[4].data.recv_status_on_client.status_details = &call->details;
}

static void call_init(struct call *call, struct al_floor *floor, unsigned worker,
                      const char *method, const void *data, size_t len)
{
    grpc_slice slice = grpc_slice_from_copied_buffer(data, len);
    *call = (struct call){.queue = floor->queues[worker], .details = grpc_empty_slice()};
    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    call->request = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    call->call = grpc_channel_create_call(floor->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
                                          call->queue, grpc_slice_from_static_string(method), NULL,
                                          gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
}

static void call_finish(struct call *call)
{
    if (call->status != GRPC_STATUS_OK) {
        al_bench_die("floor: the call ended with status %d", (int)call->status);
    }
    grpc_call_unref(call->call);
    grpc_byte_buffer_destroy(call->request);
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_slice_unref(call->details);
}

void al_floor_echo(void *arg, unsigned worker)
{
    static const uint8_t data[AL_FLOOR_ECHO_BYTES];
    struct al_floor *floor = arg;
    struct call call;
    grpc_op ops[CALL_OPS + 1];
    call_init(&call, floor, worker, AL_FLOOR_ECHO, data, sizeof data);
    fill_ops(&call, ops);
    ops[CALL_OPS] =
        (grpc_op){.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &call.response};
    start_batch(&call, ops, CALL_OPS + 1, &call);
    pluck(call.queue, &call);
    if (!call.response || grpc_byte_buffer_length(call.response) != sizeof data) {
        al_bench_die("floor: a wrong echo, status %d", (int)call.status);
    }
    grpc_byte_buffer_destroy(call.response);
    call_finish(&call);
}

size_t al_floor_receive(struct al_floor *floor, const char *method, const void *request, size_t len)
{
    struct call call;
    grpc_op ops[CALL_OPS];
    call_init(&call, floor, 0, method, request, len);
    fill_ops(&call, ops);
    start_batch(&call, ops, CALL_OPS, &call);
    size_t got = 0;
    for (;;) {
        const grpc_op read = {.op = GRPC_OP_RECV_MESSAGE,
                              .data.recv_message.recv_message = &call.response};
        start_batch(&call, &read, 1, &call.response);
        pluck(call.queue, &call.response);
        if (!call.response) {
            break;
        }
        got += grpc_byte_buffer_length(call.response);
        grpc_byte_buffer_destroy(call.response);
    }
    pluck(call.queue, &call);
    call_finish(&call);
    return got;
}

void al_floor_stream(struct al_floor *floor, size_t bytes)
{
    uint64_t wanted = bytes;
    size_t got = al_floor_receive(floor, AL_FLOOR_STREAM, &wanted, sizeof wanted);
    if (got != bytes) {
        al_bench_die("floor: %zu bytes of %zu came", got, bytes);
    }
}
