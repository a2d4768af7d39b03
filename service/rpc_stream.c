#include "service/rpc.h"

#include "service/convert.h"
#include "service/job_encode.h"
#include "service/pack.h"
#include "service/stream.h"

/* --- sending --- */

static grpc_byte_buffer *pack_event(struct al_stream *stream, struct al_event *event)
{
    Airlock__V1__StreamResponse response;
    Google__Protobuf__Timestamp timestamp;
    struct al_result_message result;
    struct al_artifact_messages artifacts;
    struct al_job *job = stream->admitted.job;
    airlock__v1__stream_response__init(&response);
    al_encode_timestamp(event->wall_ns, &timestamp);
    response.job_id = (char *)al_job_id(job);
    response.timestamp = &timestamp;
    response.sequence = event->sequence;
    response.stdin_received = al_stream_stdin_received(stream);
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

/* Nobody reads any more: the call ends with the client's mistake, if that is why. */
static void end_detached(struct al_stream *stream)
{
    if (al_err_is_set(&stream->failure)) {
        al_call_fail(&stream->base, &stream->failure);
    }
}

/* Sends the next event, if there is one. Whoever calls it has the reader's turn and loses it. */
static void send_next(struct al_stream *stream)
{
    bool detached = false;
    struct al_event *event = al_job_next(stream->admitted.job, &detached);
    if (detached) {
        end_detached(stream);
    } else if (event) {
        bool is_last = event->kind == AL_EVENT_RESULT;
        stream->event = event;
        grpc_byte_buffer *message = pack_event(stream, event);
        is_last ? al_call_reply(&stream->base, message) : al_call_write(&stream->base, message);
    }
}

static void event_sent(struct al_call *call, bool ok)
{
    struct al_stream *stream = (struct al_stream *)call;
    struct al_event *event = stream->event;
    if (!event) { /* it was a status without a message */
        return;
    }
    bool was_last = event->kind == AL_EVENT_RESULT;
    stream->event = NULL;
    al_job_event_done(stream->admitted.job, event);
    if (!ok) {
        stream->over = true;
        (void)al_job_detach(stream->admitted.job);
    }
    if (!was_last) {
        send_next(stream);
    }
}

static void wake(struct al_reader *reader)
{
    send_next((struct al_stream *)((char *)reader - offsetof(struct al_stream, reader)));
}

void al_stream_fail(struct al_stream *stream, const struct al_err *err)
{
    if (stream->over) {
        return;
    }
    stream->over = true;
    stream->failure = *err;
    bool is_my_turn = al_job_detach(stream->admitted.job);
    (void)al_job_cancel(stream->admitted.job);
    if (is_my_turn) {
        end_detached(stream);
    }
}

/* --- the job --- */

/* Executor's thread, or the thread that took the job out of the queue. The events that this makes
 * are all that the client sees of it. */
static void run_job(struct al_task *task, bool removed)
{
    struct al_job *job = al_job_of_task(task);
    struct al_stream *stream = al_job_owner(job);
    al_admit_run(stream->base.service, job, removed);
    al_call_unref(&stream->base);
}

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

/* What a later version has. Returns its name, or NULL. */
static const char *find_unimplemented(const Airlock__V1__StreamRequest *message)
{
    if (message->event_case == AIRLOCK__V1__STREAM_REQUEST__EVENT_ATTACH) {
        return "attach: this server cannot attach to jobs";
    }
    if (message->event_case == AIRLOCK__V1__STREAM_REQUEST__EVENT_START &&
        message->start->linger_seconds != 0)
    {
        return "start.linger_seconds: this server's jobs end with their stream";
    }
    return NULL;
}

static int admit(struct al_stream *stream, const Airlock__V1__StreamRequest *message,
                 struct al_arena **arena, struct al_err *err)
{
    struct al_call *call = &stream->base;
    char tenant[AL_TENANT_METADATA_MAX];
    struct al_admission admission = {
        .lane = AL_LANE_STREAMS,
        .run = run_job,
        .owner = stream,
        .deadline_ms = al_call_deadline_ms(call),
    };
    int r = check_start(message, err);
    if (r == 0) {
        r = al_call_tenant(call, tenant, &admission.tenant_metadata, err);
    }
    if (r == 0) {
        stream->terminal = message->start->terminal;
        admission.message = message->start->request;
        if (stream->terminal) {
            r = al_convert_terminal("start.terminal", message->start->terminal, &admission.terminal,
                                    err);
        }
    }
    if (r == 0) {
        r = al_admit(call->service, &admission, arena, &stream->admitted, err);
    }
    return r;
}

static void start_job(struct al_stream *stream)
{
    struct al_err err = {0};
    struct al_call *call = &stream->base;
    call->sent = event_sent;
    stream->reader.wake = wake;
    al_job_set_reader(stream->admitted.job, &stream->reader);
    al_stream_input_start(stream);
    al_call_ref(call); /* run_job's */
    if (al_admit_submit(call->service, &stream->admitted, &err) < 0) {
        al_call_fail(call, &err);
        al_call_unref(call);
        return;
    }
    send_next(stream);
}

static void stream_arrived(struct al_call *call)
{
    struct al_stream *stream = (struct al_stream *)call;
    struct al_err err = {0};
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message = NULL;
    pthread_mutex_init(&stream->lock, NULL);
    if (al_call_unpack(&airlock__v1__stream_request__descriptor, &call->payload,
                       &call->service->run_limits, &arena, &message, &err) < 0)
    {
        al_call_fail(call, &err);
        return;
    }
    const char *unimplemented = find_unimplemented((Airlock__V1__StreamRequest *)message);
    if (unimplemented) {
        al_call_fail_status(call, GRPC_STATUS_UNIMPLEMENTED, unimplemented);
    } else if (admit(stream, (Airlock__V1__StreamRequest *)message, &arena, &err) < 0) {
        al_call_fail(call, &err);
    } else {
        start_job(stream);
    }
}

static void stream_gone(struct al_call *call)
{
    struct al_stream *stream = (struct al_stream *)call;
    if (stream->admitted.job) {
        stream->over = true;
        (void)al_job_detach(stream->admitted.job);
        (void)al_job_cancel(stream->admitted.job);
    }
}

static void stream_finish(struct al_call *call)
{
    struct al_stream *stream = (struct al_stream *)call;
    al_stream_input_finish(stream);
    al_admit_release(call->service, &stream->admitted);
}

const struct al_rpc al_rpc_stream = {
    .path = "/airlock.v1.ExecutionService/Stream",
    .call_size = sizeof(struct al_stream),
    .armed = 2,
    .arrived = stream_arrived,
    .gone = stream_gone,
    .finish = stream_finish,
};
