#include "client/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>

#include "client/call.h"
#include "proto/wire/wire.h"

/*
 * Theory of operation. The call's queue is plucked by tag: &write for the message under way, &read
 * for the one asked for, &call for the end of the call. So the reader and a sender wait side by
 * side without a thread between them, and each leaves its operation pending when its time is over.
 */
struct al_stream {
    struct al_call call;
    struct al_call_status status;

    /* The reader's. */
    struct {
        bool pending;
        grpc_byte_buffer *buffer;
    } read;
    bool ended;

    /* The senders'. */
    pthread_mutex_t send_lock;
    struct {
        bool pending;
        bool closed; /* half-close was said, or gRPC took no more */
    } write;
};

struct al_stream *al_stream_create(struct al_client *client, const struct al_call_options *options)
{
    struct al_stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        return NULL;
    }
    pthread_mutex_init(&stream->send_lock, NULL);
    al_call_init(&stream->call, client, AL_METHOD_STREAM, options);
    grpc_op ops[AL_CALL_OPS];
    al_call_fill_ops(&stream->call, ops);
    grpc_call_error error =
        grpc_call_start_batch(stream->call.call, ops, AL_CALL_OPS, &stream->call, NULL);
    if (error != GRPC_CALL_OK) {
        al_call_status_set(&stream->status, GRPC_STATUS_INTERNAL, "gRPC: %s",
                           grpc_call_error_to_string(error));
        stream->ended = true;
        stream->write.closed = true;
    }
    return stream;
}

void al_stream_destroy(struct al_stream *stream)
{
    if (!stream) {
        return;
    }
    if (!stream->ended) {
        al_stream_cancel(stream);
        al_call_pluck(&stream->call, &stream->call, -1, NULL);
    }
    if (stream->read.pending) {
        al_call_pluck(&stream->call, &stream->read, -1, NULL);
        grpc_byte_buffer_destroy(stream->read.buffer);
    }
    if (stream->write.pending) {
        al_call_pluck(&stream->call, &stream->write, -1, NULL);
    }
    al_call_finish(&stream->call);
    pthread_mutex_destroy(&stream->send_lock);
    free(stream);
}

static int wait_until_sent(struct al_stream *stream, int64_t timeout_ms)
{
    bool success;
    if (!stream->write.pending) {
        return 0;
    }
    if (!al_call_pluck(&stream->call, &stream->write, timeout_ms, &success)) {
        return -EAGAIN;
    }
    stream->write.pending = false;
    stream->write.closed |= !success;
    return 0;
}

static int start_write(struct al_stream *stream, grpc_op *op, int64_t timeout_ms)
{
    pthread_mutex_lock(&stream->send_lock);
    int rc = wait_until_sent(stream, timeout_ms);
    if (rc == 0 && stream->write.closed) {
        rc = -EPIPE;
    }
    if (rc == 0) {
        grpc_call_error error =
            grpc_call_start_batch(stream->call.call, op, 1, &stream->write, NULL);
        stream->write.pending = error == GRPC_CALL_OK;
        stream->write.closed = op->op == GRPC_OP_SEND_CLOSE_FROM_CLIENT || error != GRPC_CALL_OK;
        rc = error == GRPC_CALL_OK ? 0 : -EPIPE;
    }
    pthread_mutex_unlock(&stream->send_lock);
    return rc;
}

int al_stream_send(struct al_stream *stream, const Airlock__V1__StreamRequest *message,
                   int64_t timeout_ms)
{
    grpc_byte_buffer *buffer = al_wire_pack(&message->base);
    if (!buffer) {
        return -EMSGSIZE;
    }
    grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = buffer};
    int rc = start_write(stream, &op, timeout_ms);
    grpc_byte_buffer_destroy(buffer);
    return rc;
}

int al_stream_half_close(struct al_stream *stream, int64_t timeout_ms)
{
    grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    return start_write(stream, &op, timeout_ms);
}

int al_stream_send_start(struct al_stream *stream, const Airlock__V1__StreamStart *start,
                         int64_t timeout_ms)
{
    Airlock__V1__StreamRequest message = AIRLOCK__V1__STREAM_REQUEST__INIT;
    message.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_START;
    message.start = (Airlock__V1__StreamStart *)start;
    return al_stream_send(stream, &message, timeout_ms);
}

int al_stream_send_attach(struct al_stream *stream, const Airlock__V1__Attach *attach,
                          int64_t timeout_ms)
{
    Airlock__V1__StreamRequest message = AIRLOCK__V1__STREAM_REQUEST__INIT;
    message.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_ATTACH;
    message.attach = (Airlock__V1__Attach *)attach;
    return al_stream_send(stream, &message, timeout_ms);
}

int al_stream_send_stdin(struct al_stream *stream, const void *data, size_t len, int64_t timeout_ms)
{
    Airlock__V1__StreamRequest message = AIRLOCK__V1__STREAM_REQUEST__INIT;
    message.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_STDIN;
    message.stdin.data = (uint8_t *)data;
    message.stdin.len = len;
    return al_stream_send(stream, &message, timeout_ms);
}

int al_stream_send_stdin_eof(struct al_stream *stream, int64_t timeout_ms)
{
    Airlock__V1__StreamRequest message = AIRLOCK__V1__STREAM_REQUEST__INIT;
    message.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_STDIN_EOF;
    message.stdin_eof = true;
    return al_stream_send(stream, &message, timeout_ms);
}

int al_stream_send_signal(struct al_stream *stream, int signo, int64_t timeout_ms)
{
    Airlock__V1__StreamRequest message = AIRLOCK__V1__STREAM_REQUEST__INIT;
    message.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_SIGNAL;
    message.signal = signo;
    return al_stream_send(stream, &message, timeout_ms);
}

int al_stream_send_resize(struct al_stream *stream, uint32_t rows, uint32_t cols,
                          int64_t timeout_ms)
{
    Airlock__V1__StreamRequest message = AIRLOCK__V1__STREAM_REQUEST__INIT;
    Airlock__V1__TerminalSize size = AIRLOCK__V1__TERMINAL_SIZE__INIT;
    size.rows = rows;
    size.cols = cols;
    message.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_RESIZE;
    message.resize = &size;
    return al_stream_send(stream, &message, timeout_ms);
}

static bool start_read(struct al_stream *stream)
{
    if (!stream->read.pending) {
        grpc_op op = {.op = GRPC_OP_RECV_MESSAGE,
                      .data.recv_message.recv_message = &stream->read.buffer};
        stream->read.buffer = NULL;
        stream->read.pending =
            grpc_call_start_batch(stream->call.call, &op, 1, &stream->read, NULL) == GRPC_CALL_OK;
    }
    return stream->read.pending;
}

/* After the last message the status follows at once, unless the server holds it back. */
static enum al_stream_event end_stream(struct al_stream *stream)
{
    al_call_pluck(&stream->call, &stream->call, -1, NULL);
    al_call_read_status(&stream->call, &stream->status);
    stream->ended = true;
    return AL_STREAM_END;
}

enum al_stream_event al_stream_next(struct al_stream *stream, int64_t timeout_ms,
                                    struct al_arena **ret_arena, Airlock__V1__StreamResponse **ret)
{
    bool success = false;
    if (stream->ended) {
        return AL_STREAM_END;
    }
    if (!start_read(stream)) {
        al_stream_cancel(stream);
        return end_stream(stream);
    }
    if (!al_call_pluck(&stream->call, &stream->read, timeout_ms, &success)) {
        return AL_STREAM_TIMEOUT;
    }
    stream->read.pending = false;
    if (!success || !stream->read.buffer) {
        return end_stream(stream);
    }
    char why[256];
    ProtobufCMessage *message;
    int rc = al_wire_unpack(&airlock__v1__stream_response__descriptor, stream->read.buffer,
                            &al_wire_response_limits, ret_arena, &message, why, sizeof why);
    grpc_byte_buffer_destroy(stream->read.buffer);
    stream->read.buffer = NULL;
    if (rc < 0) {
        al_stream_cancel(stream);
        end_stream(stream);
        al_call_status_set(&stream->status, GRPC_STATUS_INTERNAL, "bad response: %s", why);
        return AL_STREAM_END;
    }
    *ret = (Airlock__V1__StreamResponse *)message;
    return AL_STREAM_MESSAGE;
}

const struct al_call_status *al_stream_status(const struct al_stream *stream)
{
    return &stream->status;
}

void al_stream_cancel(struct al_stream *stream)
{
    grpc_call_cancel(stream->call.call, NULL);
}
