#include "service/rpc.h"

#include "proto/airlock/v1/execution.pb-c.h"
#include "service/admit.h"
#include "service/job_encode.h"
#include "service/pack.h"

struct run_call {
    struct al_call base;
    struct al_admitted admitted;
};

#define RESULT_FIELD 1 /* RunResponse.result */

/* Takes the job's output out of its ring: at most one event a channel. */
static size_t take_output(struct al_job *job, struct al_event *ret[AL_PACK_EVENTS_MAX],
                          Airlock__V1__ExecutionResult *result)
{
    size_t n = 0;
    enum al_reader_state state;
    struct al_event *event;
    while (n < AL_PACK_EVENTS_MAX && (event = al_job_next(job, NULL, &state))) {
        ProtobufCBinaryData *to =
            event->kind == AL_EVENT_STDOUT ? &result->stdout : &result->stderr;
        *to = (ProtobufCBinaryData){.data = event->bytes.data, .len = event->bytes.len};
        ret[n++] = event;
    }
    return n;
}

static void reply(struct run_call *run)
{
    struct al_job *job = run->admitted.job;
    struct al_job_info info;
    struct al_result_message message;
    struct al_artifact_messages artifacts;
    struct al_event *events[AL_PACK_EVENTS_MAX];
    al_job_info(job, &info);
    al_encode_result(&info, &message);
    al_encode_artifacts(al_job_artifacts(job), &artifacts, &message.result);
    size_t n = take_output(job, events, &message.result);
    al_call_reply(&run->base, al_pack(&message.result.base, RESULT_FIELD, events, n));
    while (n > 0) {
        al_job_event_done(job, NULL, events[--n]);
    }
}

/* Executor's thread, or, if it never ran, the thread that took it out of the queue. */
static void run_job(struct al_task *task, bool removed)
{
    struct al_job *job = al_job_of_task(task);
    struct run_call *run = al_job_owner(job);
    al_admit_run(run->base.service, job, removed);
    reply(run);
    al_call_unref(&run->base);
}

static int admit(struct run_call *run, struct al_err *err)
{
    struct al_call *call = &run->base;
    char tenant[AL_TENANT_METADATA_MAX];
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message = NULL;
    struct al_admission admission = {
        .lane = AL_LANE_RUNS,
        .run = run_job,
        .owner = run,
        .deadline_ms = al_call_deadline_ms(call),
    };
    int r = al_call_tenant(call, tenant, &admission.tenant_metadata, err);
    if (r == 0) {
        r = al_call_unpack(&airlock__v1__run_request__descriptor, &call->payload,
                           &call->service->run_limits, &arena, &message, err);
    }
    if (r == 0) {
        admission.message = (const Airlock__V1__RunRequest *)message;
        r = al_admit(call->service, &admission, &arena, &run->admitted, err);
    }
    return r;
}

static void run_arrived(struct al_call *call)
{
    struct run_call *run = (struct run_call *)call;
    struct al_err err = {0};
    if (admit(run, &err) < 0) {
        al_call_fail(call, &err);
        return;
    }
    al_call_ref(call); /* run_job's */
    if (al_admit_submit(call->service, &run->admitted, &err) < 0) {
        al_call_fail(call, &err);
        al_call_unref(call);
    }
}

static void run_gone(struct al_call *call)
{
    struct run_call *run = (struct run_call *)call;
    if (run->admitted.job) {
        (void)al_job_cancel(run->admitted.job);
    }
}

static void run_finish(struct al_call *call)
{
    al_admit_release(call->service, &((struct run_call *)call)->admitted);
}

const struct al_rpc al_rpc_run = {
    .path = "/airlock.v1.ExecutionService/Run",
    .call_size = sizeof(struct run_call),
    .armed = 2,
    .arrived = run_arrived,
    .gone = run_gone,
    .finish = run_finish,
};
