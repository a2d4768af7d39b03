#include "service/stream.h"

#include <signal.h>

#include "service/convert.h"

static void read_next(struct al_stream *stream);

static struct al_ctl *ctl_of(struct al_stream *stream)
{
    return al_job_ctl(stream->session->admitted.job);
}

static void drop_arena(struct al_session *session, struct al_arena *arena)
{
    if (arena) {
        al_service_release(session->service, al_arena_used_bytes(arena));
        al_arena_destroy(arena);
    }
}

/* With the lock held: nothing waits any more. */
static struct al_arena *take_arena(struct al_session *session)
{
    struct al_arena *arena = session->stdin_arena;
    session->stdin_arena = NULL;
    session->sender = NULL;
    return arena;
}

void al_stream_stdin_drop(struct al_session *session)
{
    pthread_mutex_lock(&session->lock);
    struct al_arena *arena = take_arena(session);
    pthread_mutex_unlock(&session->lock);
    drop_arena(session, arena);
}

/* Hands over what fits of the stdin that waits. When all of it has gone just now: the stream that
 * may read on, with a reference for the caller. Any thread. */
static struct al_stream *push_stdin(struct al_session *session)
{
    struct al_stream *sender = NULL;
    struct al_arena *arena = NULL;
    pthread_mutex_lock(&session->lock);
    struct al_bytes *rest = &session->stdin_rest;
    if (session->sender) {
        size_t taken = al_ctl_stdin_push(al_job_ctl(session->admitted.job), rest->data, rest->len);
        session->stdin_received += taken;
        rest->data += taken;
        rest->len -= taken;
    }
    if (session->sender && rest->len == 0) {
        sender = session->sender;
        al_call_ref(&sender->base);
        arena = take_arena(session);
    }
    pthread_mutex_unlock(&session->lock);
    drop_arena(session, arena);
    return sender;
}

static void push_and_read_on(struct al_session *session)
{
    struct al_stream *sender = push_stdin(session);
    if (sender) {
        read_next(sender);
        al_call_unref(&sender->base);
    }
}

/* The program has read some of its stdin. The job's thread. */
static void stdin_has_room(void *arg)
{
    push_and_read_on(arg);
}

static bool stdin_has_ended(struct al_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool ended = session->stdin_ended;
    pthread_mutex_unlock(&session->lock);
    return ended;
}

/* Takes over the arena. The next message is read once all of it is handed over. */
static void take_stdin(struct al_stream *stream, ProtobufCBinaryData bytes, struct al_arena **arena,
                       struct al_err *err)
{
    struct al_session *session = stream->session;
    size_t max = session->service->config->limits.stdin_bytes;
    if (stdin_has_ended(session)) {
        (void)al_err_set(err, AL_ERR_INVALID_ARGUMENT, "stdin: comes after stdin_eof");
        return;
    }
    if (bytes.len > max) {
        (void)al_err_set(err, AL_ERR_INVALID_ARGUMENT, "stdin: %zu bytes, at most %zu a message",
                         bytes.len, max);
        return;
    }
    if (al_service_hold(session->service, al_arena_used_bytes(*arena), err) < 0) {
        return;
    }
    pthread_mutex_lock(&session->lock);
    session->sender = stream;
    session->stdin_arena = *arena;
    session->stdin_rest = (struct al_bytes){.data = bytes.data, .len = bytes.len};
    pthread_mutex_unlock(&session->lock);
    *arena = NULL;
    push_and_read_on(session);
}

static bool take_eof(struct al_stream *stream, bool value, struct al_err *err)
{
    if (!value) {
        (void)al_err_set(err, AL_ERR_INVALID_ARGUMENT, "stdin_eof: must be true");
        return false;
    }
    pthread_mutex_lock(&stream->session->lock);
    stream->session->stdin_ended = true;
    pthread_mutex_unlock(&stream->session->lock);
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
    const struct al_backend *backend = al_job_backend(stream->session->admitted.job);
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
    if (!stream->session->terminal) {
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
        take_stdin(stream, message->stdin, arena, err);
        return false;
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
    if (!ok || !stream->received || stream->over) {
        /* A broken connection is not the end of stdin: another may follow. */
        if (!stream->over && !grpc_call_failed_before_recv_message(call->grpc)) {
            al_ctl_stdin_eof(ctl_of(stream));
        }
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
    al_ctl_on_stdin_room(ctl_of(stream), stdin_has_room, stream->session);
    read_next(stream);
}

void al_stream_input_finish(struct al_stream *stream)
{
    grpc_byte_buffer_destroy(stream->received);
}
