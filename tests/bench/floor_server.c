/*
 * The least that a gRPC core server can do, on one completion-queue thread as in airlockd: it
 * echoes a message, or sends as many bytes as it is asked for. Prints its port and runs until it is
 * killed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>

#include "tests/bench/floor.h"

#define ARMED 16 /* calls of each method that may arrive at a time */

enum method {
    ECHO,
    STREAM,
    METHODS,
};

struct server {
    grpc_server *grpc;
    grpc_completion_queue *queue;
    grpc_slice chunk;
    void *methods[METHODS];
};

/* The tag of its one pending batch; `next` is what to do when that has ended. */
struct call {
    enum method method;
    void (*next)(struct server *server, struct call *call, bool ok);
    grpc_call *grpc;
    grpc_metadata_array metadata;
    gpr_timespec deadline;
    grpc_byte_buffer *payload;
    int cancelled;
    uint64_t left; /* bytes still to be sent */
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "floor_server: %s\n", what);
    exit(EXIT_FAILURE);
}

static void start(struct call *call, const grpc_op *ops, size_t n,
                  void (*next)(struct server *, struct call *, bool))
{
    call->next = next;
    if (grpc_call_start_batch(call->grpc, ops, n, call, NULL) != GRPC_CALL_OK) {
        die("gRPC refused a batch");
    }
}

static void ended(struct server *server, struct call *call, bool ok)
{
    (void)server;
    (void)ok;
    grpc_call_unref(call->grpc);
    grpc_byte_buffer_destroy(call->payload);
    grpc_metadata_array_destroy(&call->metadata);
    free(call);
}

static grpc_op status_op(void)
{
    return (grpc_op){.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
                     .data.send_status_from_server.status = GRPC_STATUS_OK};
}

static grpc_op close_op(struct call *call)
{
    return (grpc_op){.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                     .data.recv_close_on_server.cancelled = &call->cancelled};
}

static void echo(struct call *call)
{
    const grpc_op ops[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = call->payload},
        status_op(),
        close_op(call),
    };
    start(call, ops, sizeof ops / sizeof ops[0], ended);
}

/* One message at a time, as gRPC wants it. */
static void send_chunk(struct server *server, struct call *call, bool ok)
{
    if (!ok || call->left == 0) {
        const grpc_op ops[] = {status_op(), close_op(call)};
        start(call, ops, 2, ended);
        return;
    }
    size_t n = call->left < AL_FLOOR_CHUNK_BYTES ? (size_t)call->left : AL_FLOOR_CHUNK_BYTES;
    call->left -= n;
    grpc_slice slice = grpc_slice_sub(server->chunk, 0, n);
    grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);
    const grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message};
    start(call, &op, 1, send_chunk);
    grpc_byte_buffer_destroy(message);
    grpc_slice_unref(slice);
}

static void stream(struct call *call)
{
    grpc_byte_buffer_reader reader;
    if (!grpc_byte_buffer_reader_init(&reader, call->payload)) {
        die("an unreadable request");
    }
    grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
    if (GRPC_SLICE_LENGTH(slice) == sizeof call->left) {
        memcpy(&call->left, GRPC_SLICE_START_PTR(slice), sizeof call->left);
    }
    grpc_slice_unref(slice);
    grpc_byte_buffer_reader_destroy(&reader);
    const grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    start(call, &op, 1, send_chunk);
}

static void arm(struct server *server, enum method method);

static void arrived(struct server *server, struct call *call, bool ok)
{
    if (!ok || !call->payload) {
        die("a call without a message");
    }
    arm(server, call->method);
    call->method == ECHO ? echo(call) : stream(call);
}

static void arm(struct server *server, enum method method)
{
    struct call *call = calloc(1, sizeof *call);
    if (!call) {
        die("out of memory");
    }
    call->method = method;
    call->next = arrived;
    grpc_metadata_array_init(&call->metadata);
    grpc_server_request_registered_call(server->grpc, server->methods[method], &call->grpc,
                                        &call->deadline, &call->metadata, &call->payload,
                                        server->queue, server->queue, call);
}

static void set_up(struct server *server)
{
    static const char *const paths[METHODS] = {AL_FLOOR_ECHO, AL_FLOOR_STREAM};
    grpc_arg list[] = {
        {.type = GRPC_ARG_INTEGER, .key = GRPC_ARG_ALLOW_REUSEPORT, .value.integer = 0},
        {.type = GRPC_ARG_INTEGER,
         .key = GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
         .value.integer = 1}};
    const grpc_channel_args args = {.num_args = 2, .args = list};
    server->queue = grpc_completion_queue_create_for_next(NULL);
    server->grpc = grpc_server_create(&args, NULL);
    grpc_server_register_completion_queue(server->grpc, server->queue, NULL);
    for (size_t i = 0; i < METHODS; i++) {
        server->methods[i] = grpc_server_register_method(
            server->grpc, paths[i], NULL, GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    }
    server->chunk = grpc_slice_malloc(AL_FLOOR_CHUNK_BYTES);
    memset(GRPC_SLICE_START_PTR(server->chunk), 0, AL_FLOOR_CHUNK_BYTES);
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    int port = grpc_server_add_http2_port(server->grpc, "127.0.0.1:0", credentials);
    grpc_server_credentials_release(credentials);
    if (port == 0) {
        die("cannot listen on 127.0.0.1");
    }
    printf("%d\n", port);
    fflush(stdout);
}

int main(void)
{
    static struct server server;
    grpc_init();
    set_up(&server);
    grpc_server_start(server.grpc);
    for (unsigned i = 0; i < ARMED; i++) {
        arm(&server, ECHO);
        arm(&server, STREAM);
    }
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(server.queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.type == GRPC_OP_COMPLETE) {
            struct call *call = event.tag;
            call->next(&server, call, event.success != 0);
        }
    }
}
