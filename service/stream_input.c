#include "service/stream.h"

#include <signal.h>

#include "service/convert.h"

static void read_next(struct al_stream *stream);

static struct al_ctl *ctl_of(struct al_stream *stream)
{
    return al_job_ctl(stream->admitted.job);
}

static void drop_stdin(struct al_stream *stream, struct al_arena *arena)
{
    if (arena) {
        al_service_release(stream->base.service, al_arena_used_bytes(arena));
        al_arena_destroy(arena);
    }
}

/* Hands over what fits of the stdin that waits. True when all of it has gone just now: the caller
 * may read on. Any thread. */
static bool push_stdin(struct al_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    struct al_arena *arena = stream->stdin_arena;
    struct al_bytes *rest = &stream->stdin_rest;
    if (arena) {
        size_t taken = al_ctl_stdin_push(ctl_of(stream), rest->data, rest->len);
        stream->stdin_received += taken;
        rest->data += taken;
        rest->len -= taken;
    }
    bool all = arena && rest->len == 0;
    if (all) {
        stream->stdin_arena = NULL;
    }
    pthread_mutex_unlock(&stream->lock);
    if (all) {
        drop_stdin(stream, arena);
    }
    return all;
}

uint64_t al_stream_stdin_received(struct al_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    uint64_t received = stream->stdin_received;
    pthread_mutex_unlock(&stream->lock);
    return received;
}

/* The program has read some of its stdin. The job's thread. */
static void stdin_has_room(void *arg)
{
    struct al_stream *stream = arg;
    if (push_stdin(stream)) {
        read_next(stream);
    }
}

/* Takes over the arena. True: read on; false: when there is room, or never. */
static bool take_stdin(struct al_stream *stream, ProtobufCBinaryData bytes, struct al_arena **arena,
                       struct al_err *err)
{
    size_t max = stream->base.service->config->limits.stdin_bytes;
    if (stream->stdin_ended) {
        (void)al_err_set(err, AL_ERR_INVALID_ARGUMENT, "stdin: comes after stdin_eof");
        return false;
    }
    if (bytes.len > max) {
        (void)al_err_set(err, AL_ERR_INVALID_ARGUMENT, "stdin: %zu bytes, at most %zu a message",
                         bytes.len, max);
        return false;
    }
    if (al_service_hold(stream->base.service, al_arena_used_bytes(*arena), err) < 0) {
        return false;
    }
    pthread_mutex_lock(&stream->lock);
    stream->stdin_arena = *arena;
    stream->stdin_rest = (struct al_bytes){.data = bytes.data, .len = bytes.len};
    pthread_mutex_unlock(&stream->lock);
    *arena = NULL;
    return push_stdin(stream);
}

static bool take_eof(struct al_stream *stream, bool value, struct al_err *err)
{
    if (!value) {
        (void)al_err_set(err, AL_ERR_INVALID_ARGUMENT, "stdin_eof: must be true");
        return false;
    }
    stream->stdin_ended = true;
    al_ctl_stdin_eof(ctl_of(stream));
    return true;
}

static bool is_allowed_signal(int signo)
{
    static const int allowed[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGKILL, SIGTERM,
                                  SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH};
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        if (allowed[i] == signo) {
            return true;
        }
    }
    return false;
}

static bool take_signal(struct al_stream *stream, int signo, struct al_err *err)
{
    const struct al_backend *backend = al_job_backend(stream->admitted.job);
    if (!is_allowed_signal(signo)) {
        (void)al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                         "signal: %d is not one of HUP, INT, QUIT, KILL, TERM, USR1, USR2, CONT, "
                         "TSTP and WINCH",
                         signo);
        return false;
    }
    if (!(backend->capabilities & AL_CAP_SIGNALS)) {
        (void)al_err_set(err, AL_ERR_FAILED_PRECONDITION, "signal: the backend %s cannot send any",
                         backend->name);
        return false;
    }
    if (!al_ctl_signal(ctl_of(stream), signo)) {
        (void)al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED, "signal: %u wait for the program already",
                         AL_CTL_SIGNALS_MAX);
        return false;
    }
    return true;
}

static bool take_resize(struct al_stream *stream, const Airlock__V1__TerminalSize *message,
                        struct al_err *err)
{
    struct al_terminal_size size;
    if (!stream->terminal) {
        (void)al_err_set(err, AL_ERR_FAILED_PRECONDITION, "resize: the job has no terminal");
        return false;
    }
    if (al_convert_terminal("resize", message, &size, err) < 0) {
        return false;
    }
    al_ctl_resize(ctl_of(stream), size);
    return true;
}

/* True: read the next message now. The arena is taken over where it is needed longer. */
static bool take_message(struct al_stream *stream, const Airlock__V1__StreamRequest *message,
                         struct al_arena **arena, struct al_err *err)
{
    switch (message->event_case) {
    case AIRLOCK__V1__STREAM_REQUEST__EVENT_STDIN:
        return take_stdin(stream, message->stdin, arena, err);
    case AIRLOCK__V1__STREAM_REQUEST__EVENT_STDIN_EOF:
        return take_eof(stream, message->stdin_eof, err);
    case AIRLOCK__V1__STREAM_REQUEST__EVENT_SIGNAL:
        return take_signal(stream, message->signal, err);
    case AIRLOCK__V1__STREAM_REQUEST__EVENT_RESIZE:
        return take_resize(stream, message->resize, err);
    case AIRLOCK__V1__STREAM_REQUEST__EVENT_START:
    case AIRLOCK__V1__STREAM_REQUEST__EVENT_ATTACH:
        (void)al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                         "event: start and attach may only be the first message");
        return false;
    default:
        (void)al_err_set(err, AL_ERR_INVALID_ARGUMENT, "event: not set");
        return false;
    }
}

static void read_done(struct al_op *op, bool ok)
{
    struct al_stream *stream = (struct al_stream *)((char *)op - offsetof(struct al_stream, read));
    struct al_call *call = &stream->base;
    if (!ok || !stream->received) { /* half-closed; if it is more, `gone` tells */
        al_ctl_stdin_eof(ctl_of(stream));
        al_call_unref(call);
        return;
    }
    struct al_err err = {0};
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message = NULL;
    bool more = false;
    if (al_call_unpack(&airlock__v1__stream_request__descriptor, &stream->received,
                       &call->service->run_limits, &arena, &message, &err) == 0)
    {
        more = take_message(stream, (Airlock__V1__StreamRequest *)message, &arena, &err);
    }
    if (al_err_is_set(&err)) {
        al_stream_fail(stream, &err);
    } else if (more) {
        read_next(stream);
    }
    al_call_unref(call);
}

static void read_next(struct al_stream *stream)
{
    const grpc_op op = {
        .op = GRPC_OP_RECV_MESSAGE,
        .data.recv_message.recv_message = &stream->received,
    };
    al_call_start(&stream->base, &op, 1, &stream->read, read_done);
}

void al_stream_input_start(struct al_stream *stream)
{
    al_ctl_on_stdin_room(ctl_of(stream), stdin_has_room, stream);
    read_next(stream);
}

void al_stream_input_finish(struct al_stream *stream)
{
    grpc_byte_buffer_destroy(stream->received);
    drop_stdin(stream, stream->stdin_arena);
    pthread_mutex_destroy(&stream->lock);
}
