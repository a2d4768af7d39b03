#include "service/rpc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "backends/base/clock.h"
#include "service/convert.h"
#include "service/job_encode.h"
#include "service/pack.h"
#include "service/stream.h"

static struct al_job *job_of(const struct al_stream *stream)
{
    return stream->session->admitted.job;
}

/* --- sending --- */

static grpc_byte_buffer *pack_event(struct al_stream *stream, struct al_event *event)
{
    Airlock__V1__StreamResponse response;
    Google__Protobuf__Timestamp timestamp;
    struct al_result_message result;
    struct al_artifact_messages artifacts;
    struct al_job *job = job_of(stream);
    airlock__v1__stream_response__init(&response);
    al_encode_timestamp(event->wall_ns, &timestamp);
    response.job_id = (char *)al_job_id(job);
    response.timestamp = &timestamp;
    response.sequence = event->sequence;
    response.stdin_received = al_session_stdin_received(stream->session);
    ProtobufCBinaryData bytes = {.data = event->bytes.data, .len = event->bytes.len};
    switch (event->kind) {
    case AL_EVENT_STDOUT:
        response.event_case = AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDOUT;
        response.stdout = bytes;
        break;
    case AL_EVENT_STDERR:
        response.event_case = AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDERR;
        response.stderr = bytes;
        break;
    case AL_EVENT_STATUS:
        response.event_case = AIRLOCK__V1__STREAM_RESPONSE__EVENT_STATUS;
        response.status = (Airlock__V1__JobStatus)event->status;
        break;
    case AL_EVENT_RESULT: {
        struct al_job_info info;
        al_job_info(job, &info);
        al_encode_result(&info, &result);
        al_encode_artifacts(al_job_artifacts(job), &artifacts, &result.result);
        response.event_case = AIRLOCK__V1__STREAM_RESPONSE__EVENT_RESULT;
        response.result = &result.result;
        break;
    }
    }
    return al_pack(&response.base, 0, &event, 1);
}

/* What tells a client that took a job over from where to send stdin. */
static grpc_byte_buffer *pack_greeting(struct al_stream *stream)
{
    Airlock__V1__StreamResponse response;
    Google__Protobuf__Timestamp timestamp;
    airlock__v1__stream_response__init(&response);
    al_encode_timestamp(al_wall_ns(), &timestamp);
    response.job_id = (char *)al_job_id(job_of(stream));
    response.timestamp = &timestamp;
    response.stdin_received = al_session_stdin_received(stream->session);
    return al_pack(&response.base, 0, NULL, 0);
}

/* The stream reads no more. True when it is the caller's turn, the reader's last. CQ thread. */
static bool leave(struct al_stream *stream)
{
    stream->over = true;
    bool was_idle = al_job_detach(job_of(stream), &stream->reader);
    al_session_left(stream->session, stream);
    return was_idle;
}

/* The reader's last turn is over. The call ends with the client's mistake, if there was one; else
 * it has ended already, or been cancelled. */
static void end_reader(struct al_stream *stream)
{
    if (al_err_is_set(&stream->failure)) {
        al_call_fail(&stream->base, &stream->failure);
    }
    al_call_unref(&stream->base);
}

static void send_event(struct al_stream *stream)
{
    grpc_byte_buffer *message = pack_event(stream, stream->event);
    bool is_last = stream->event->kind == AL_EVENT_RESULT;
    is_last ? al_call_reply(&stream->base, message) : al_call_write(&stream->base, message);
}

static void take_turn(struct al_deferred *turn)
{
    send_event((struct al_stream *)((char *)turn - offsetof(struct al_stream, turn)));
}

/* Sends the next event, if there is one. Whoever calls it has the reader's turn and loses it. With
 * `waits`, on the CQ thread, it goes behind what other calls have to say: a stream that always has
 * something to send, and a client that takes it, would keep the thread from everybody else. */
static void send_next(struct al_stream *stream, bool waits)
{
    enum al_reader_state state;
    struct al_event *event = al_job_next(job_of(stream), &stream->reader, &state);
    if (event) {
        stream->event = event; /* without one another thread may have the turn already */
    }
    if (event && waits) {
        stream->turn.run = take_turn;
        al_service_defer(stream->base.service, &stream->turn);
    } else if (event) {
        send_event(stream);
    } else if (state == AL_READER_FINISHED) { /* it was attached after the last event; CQ thread */
        al_call_fail_status(&stream->base, GRPC_STATUS_OK, "");
        (void)leave(stream);
        end_reader(stream);
    } else if (state == AL_READER_DETACHED) {
        end_reader(stream);
    }
}

static void event_sent(struct al_call *call, bool ok)
{
    struct al_stream *stream = (struct al_stream *)call;
    struct al_event *event = stream->event;
    bool was_greeting = stream->is_greeting;
    if (!event && !was_greeting) { /* it was a status without a message */
        return;
    }
    bool was_last = event && event->kind == AL_EVENT_RESULT;
    stream->event = NULL;
    stream->is_greeting = false;
    if (event) {
        al_job_event_done(job_of(stream), &stream->reader, event);
    }
    if (!ok || was_last) {
        (void)leave(stream);
        al_call_unref(call); /* the reader's */
    } else {
        send_next(stream, true);
    }
}

static void wake(struct al_reader *reader)
{
    send_next((struct al_stream *)((char *)reader - offsetof(struct al_stream, reader)), false);
}

void al_stream_fail(struct al_stream *stream, const struct al_err *err)
{
    if (stream->over) {
        return;
    }
    stream->failure = *err;
    if (leave(stream)) {
        end_reader(stream);
    }
}

/* --- a new job --- */

static int check_start(const Airlock__V1__StreamRequest *message, struct al_err *err)
{
    if (message->event_case != AIRLOCK__V1__STREAM_REQUEST__EVENT_START) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "event: the first message must be start or attach");
    }
    if (!message->start->request) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "start.request: missing");
    }
    return 0;
}

static int create_session(struct al_stream *stream, const Airlock__V1__StreamStart *start,
                          struct al_err *err)
{
    struct al_service *service = stream->base.service;
    int64_t linger_ms = 0;
    int r =
        al_convert_linger(start->linger_seconds, service->config->linger_max_ms, &linger_ms, err);
    if (r < 0) {
        return r;
    }
    stream->session = al_session_create(service, linger_ms);
    if (!stream->session) {
        return al_err_errno(err, ENOMEM, "cannot make a stream");
    }
    stream->session->terminal = start->terminal;
    return 0;
}

static int admit(struct al_stream *stream, const Airlock__V1__StreamRequest *message,
                 struct al_arena **arena, struct al_err *err)
{
    struct al_call *call = &stream->base;
    char tenant[AL_TENANT_METADATA_MAX];
    struct al_admission admission = {.lane = AL_LANE_STREAMS, .run = al_session_run};
    int r = check_start(message, err);
    if (r == 0) {
        r = al_call_tenant(call, tenant, &admission.tenant_metadata, err);
    }
    if (r == 0) {
        r = create_session(stream, message->start, err);
    }
    if (r == 0) {
        struct al_session *session = stream->session;
        admission.owner = session;
        admission.linger_ms = session->linger_ms;
        admission.deadline_ms = session->linger_ms > 0 ? 0 : al_call_deadline_ms(call);
        admission.message = message->start->request;
        if (stream->session->terminal) {
            r = al_convert_terminal("start.terminal", message->start->terminal, &admission.terminal,
                                    err);
        }
    }
    if (r == 0) {
        r = al_admit(call->service, &admission, arena, &stream->session->admitted, err);
    }
    return r;
}

/* Before the reader is known to the job. */
static void prepare_reader(struct al_stream *stream)
{
    stream->base.sent = event_sent;
    stream->reader.wake = wake;
    al_call_ref(&stream->base); /* the reader's */
}

static void start_job(struct al_stream *stream)
{
    struct al_err err = {0};
    struct al_call *call = &stream->base;
    prepare_reader(stream);
    al_job_set_reader(job_of(stream), &stream->reader);
    al_stream_input_start(stream);
    if (al_session_submit(stream->session, stream, &err) < 0) {
        stream->over = true;
        al_call_fail(call, &err);
        al_call_unref(call); /* the reader's */
        return;
    }
    send_next(stream, false);
}

/* --- a job that lingers --- */

static int find_session(struct al_stream *stream, const Airlock__V1__Attach *attach,
                        struct al_err *err)
{
    struct al_call *call = &stream->base;
    char buffer[AL_TENANT_METADATA_MAX];
    const char *metadata = NULL;
    const char *tenant = NULL;
    int r = al_call_tenant(call, buffer, &metadata, err);
    if (r == 0) {
        r = al_convert_tenant(metadata, attach->tenant_id, &tenant, err);
    }
    if (r == 0) {
        r = al_convert_job_id("attach.job_id", attach->job_id, err);
    }
    return r < 0 ? r
                 : al_session_find(call->service, tenant, attach->job_id, &stream->session, err);
}

/* Its own last turn ends it, if it was not idle. */
static void replace(struct al_stream *before, bool was_idle)
{
    before->over = true;
    grpc_call_cancel_with_status(before->base.grpc, GRPC_STATUS_ABORTED, "another attach took over",
                                 NULL);
    if (was_idle) {
        end_reader(before);
    }
}

static void attach_failed(struct al_stream *stream, uint64_t after_sequence,
                          const struct al_err *err)
{
    if (al_err_is_set(err)) {
        al_call_fail(&stream->base, err);
        return;
    }
    char text[128];
    (void)snprintf(text, sizeof text,
                   "attach.after_sequence: the events after %" PRIu64
                   " are not all kept, or %" PRIu64 " is yet to come",
                   after_sequence, after_sequence);
    al_call_fail_status(&stream->base, GRPC_STATUS_OUT_OF_RANGE, text);
}

static void attach_job(struct al_stream *stream, const Airlock__V1__Attach *attach)
{
    struct al_err err = {0};
    struct al_stream *before = NULL;
    bool was_idle = false;
    if (find_session(stream, attach, &err) < 0) {
        al_call_fail(&stream->base, &err);
        return;
    }
    prepare_reader(stream);
    if (al_session_attach(stream->session, stream, attach->after_sequence, &before, &was_idle,
                          &err) < 0)
    {
        stream->over = true;
        stream->base.sent = NULL;
        attach_failed(stream, attach->after_sequence, &err);
        al_call_unref(&stream->base); /* the reader's */
        return;
    }
    if (before) {
        replace(before, was_idle);
    }
    al_stream_input_start(stream);
    stream->is_greeting = true;
    al_call_write(&stream->base, pack_greeting(stream));
}

/* --- the call --- */

static void stream_arrived(struct al_call *call)
{
    struct al_stream *stream = (struct al_stream *)call;
    struct al_err err = {0};
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *unpacked = NULL;
    if (al_call_unpack(&airlock__v1__stream_request__descriptor, &call->payload,
                       &call->service->run_limits, &arena, &unpacked, &err) < 0)
    {
        al_call_fail(call, &err);
        return;
    }
    const Airlock__V1__StreamRequest *message = (const Airlock__V1__StreamRequest *)unpacked;
    if (message->event_case == AIRLOCK__V1__STREAM_REQUEST__EVENT_ATTACH) {
        attach_job(stream, message->attach);
    } else if (admit(stream, message, &arena, &err) < 0) {
        stream->over = true;
        al_call_fail(call, &err);
    } else {
        start_job(stream);
    }
}

static void stream_gone(struct al_call *call)
{
    struct al_stream *stream = (struct al_stream *)call;
    if (!stream->over && stream->session && leave(stream)) {
        al_call_unref(call); /* the reader's */
    }
}

static void stream_finish(struct al_call *call)
{
    struct al_stream *stream = (struct al_stream *)call;
    al_stream_input_finish(stream);
    al_session_unref(stream->session);
}

const struct al_rpc al_rpc_stream = {
    .path = "/airlock.v1.ExecutionService/Stream",
    .call_size = sizeof(struct al_stream),
    .armed = 2,
    .arrived = stream_arrived,
    .gone = stream_gone,
    .finish = stream_finish,
};
