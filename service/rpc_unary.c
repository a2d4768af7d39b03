#include "service/rpc.h"

#include <string.h>

#include "backends/base/clock.h"

#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/wire.h"
#include "service/convert.h"
#include "service/job_encode.h"
#include "service/rpc_records.h"

/* What an answer about one job or about all backends may take. */
#define ANSWER_BYTES_MAX (1u << 20)

/* Takes tenant and job id of a request; *ret is the job, or NULL when it is not in memory. */
static int find_job(struct al_query *query, struct al_call *call, const char *job_id,
                    const char *tenant_id, struct al_job **ret, struct al_err *err)
{
    int r = al_query_tenant(query, call, tenant_id, err);
    if (r == 0) {
        r = al_convert_job_id("job_id", job_id, err);
    }
    if (r == 0) {
        memcpy(query->id, job_id, sizeof query->id);
        *ret = al_jobs_find(call->service->jobs, query->tenant, job_id);
    }
    return r;
}

/* Packs an answer made in an arena; NULL in `message`: that had no room. */
static void answer(struct al_call *call, const ProtobufCMessage *message)
{
    if (!message) {
        const struct al_err err = {AL_ERR_RESOURCE_EXHAUSTED, "the server is out of memory"};
        al_call_fail(call, &err);
        return;
    }
    al_call_reply(call, al_wire_pack(message));
}

/* --- Kill --- */

struct kill_call {
    struct al_call base;
    struct al_query query;
    struct al_job_waiter waiter;
};

static void answer_kill(struct al_call *call, bool killed, enum al_status status)
{
    Airlock__V1__KillResponse response = AIRLOCK__V1__KILL_RESPONSE__INIT;
    response.killed = killed;
    response.status = (Airlock__V1__JobStatus)status;
    answer(call, &response.base);
}

/* The job that was running when Kill came has ended, by Kill or by itself. */
static void job_ended(struct al_job_waiter *waiter, enum al_status status)
{
    struct kill_call *self =
        (struct kill_call *)((char *)waiter - offsetof(struct kill_call, waiter));
    answer_kill(&self->base, status == AL_STATUS_KILLED, status);
    al_call_unref(&self->base);
}

/* What is not in memory has ended, if there ever was such a job. */
static void answer_from_record(struct al_query *query)
{
    struct al_buf packed;
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message = NULL;
    char why[128];
    al_buf_init(&packed, AL_RECORDS_JOB_MAX);
    int r = al_query_record(query, &packed);
    if (r == 0) {
        r = al_wire_unpack_bytes(&airlock__v1__job__descriptor, packed.data, packed.len,
                                 &query->call->service->run_limits, &arena, &message, why,
                                 sizeof why);
    }
    if (r == 0) {
        const Airlock__V1__Job *job = (const Airlock__V1__Job *)message;
        answer_kill(query->call, false, (enum al_status)job->status);
    } else {
        al_query_fail(query, r);
    }
    al_buf_finish(&packed);
}

static int find_job_to_kill(struct kill_call *self, struct al_job **ret, struct al_err *err)
{
    struct al_call *call = &self->base;
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message;
    int r = al_call_unpack(&airlock__v1__kill_request__descriptor, &call->payload,
                           &call->service->small_limits, &arena, &message, err);
    if (r < 0) {
        return r;
    }
    const Airlock__V1__KillRequest *request = (const Airlock__V1__KillRequest *)message;
    return find_job(&self->query, call, request->job_id, request->tenant_id, ret, err);
}

static void kill_arrived(struct al_call *call)
{
    struct kill_call *self = (struct kill_call *)call;
    struct al_err err = {0};
    struct al_job *job;
    enum al_status status;
    if (find_job_to_kill(self, &job, &err) < 0) {
        al_call_fail(call, &err);
        return;
    }
    if (!job) {
        self->query.work = answer_from_record;
        al_query_start(&self->query);
        return;
    }
    al_call_ref(call); /* the waiter's */
    self->waiter.ended = job_ended;
    if (al_job_wait(job, &self->waiter, &status)) {
        (void)al_job_cancel(job);
    } else {
        answer_kill(call, false, status);
        al_call_unref(call);
    }
    al_job_unref(job);
}

const struct al_rpc al_rpc_kill = {
    .path = "/airlock.v1.ExecutionService/Kill",
    .call_size = sizeof(struct kill_call),
    .armed = 1,
    .in_drain = true,
    .arrived = kill_arrived,
};

/* --- GetJob --- */

struct get_job_call {
    struct al_call base;
    struct al_query query;
};

static int find_job_to_get(struct get_job_call *self, struct al_job **ret, struct al_err *err)
{
    struct al_call *call = &self->base;
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message;
    int r = al_call_unpack(&airlock__v1__get_job_request__descriptor, &call->payload,
                           &call->service->small_limits, &arena, &message, err);
    if (r < 0) {
        return r;
    }
    const Airlock__V1__GetJobRequest *request = (const Airlock__V1__GetJobRequest *)message;
    return find_job(&self->query, call, request->job_id, request->tenant_id, ret, err);
}

static void get_job_arrived(struct al_call *call)
{
    struct get_job_call *self = (struct get_job_call *)call;
    struct al_err err = {0};
    struct al_job *job;
    if (find_job_to_get(self, &job, &err) < 0) {
        al_call_fail(call, &err);
        return;
    }
    if (!job) {
        self->query.work = al_query_get_job;
        al_query_start(&self->query);
        return;
    }
    al_auto_arena struct al_arena *arena = al_arena_create(ANSWER_BYTES_MAX);
    struct al_job_info info;
    Airlock__V1__GetJobResponse response = AIRLOCK__V1__GET_JOB_RESPONSE__INIT;
    al_job_info(job, &info);
    response.job = arena ? al_encode_job(&info, arena) : NULL;
    answer(call, response.job ? &response.base : NULL);
    al_job_unref(job);
}

const struct al_rpc al_rpc_get_job = {
    .path = "/airlock.v1.ExecutionService/GetJob",
    .call_size = sizeof(struct get_job_call),
    .armed = 1,
    .in_drain = true,
    .arrived = get_job_arrived,
};

/* --- ListBackends --- */

static bool encode_backends(const struct al_registry *registry, struct al_arena *arena,
                            Airlock__V1__ListBackendsResponse *response)
{
    response->backends =
        al_arena_alloc_array(arena, registry->n, sizeof(Airlock__V1__BackendInfo *));
    for (size_t i = 0; response->backends && i < registry->n; i++) {
        struct al_backend *backend = registry->backends[i];
        response->backends[i] =
            al_encode_backend(backend, backend == registry->default_backend, arena);
    }
    response->n_backends = registry->n;
    return !al_arena_is_exhausted(arena);
}

static void list_backends_arrived(struct al_call *call)
{
    al_auto_arena struct al_arena *request_arena = NULL;
    al_auto_arena struct al_arena *arena = al_arena_create(ANSWER_BYTES_MAX);
    ProtobufCMessage *message;
    struct al_err err = {0};
    Airlock__V1__ListBackendsResponse response = AIRLOCK__V1__LIST_BACKENDS_RESPONSE__INIT;
    if (al_call_unpack(&airlock__v1__list_backends_request__descriptor, &call->payload,
                       &call->service->small_limits, &request_arena, &message, &err) < 0)
    {
        al_call_fail(call, &err);
        return;
    }
    bool made = arena && encode_backends(call->service->registry, arena, &response);
    answer(call, made ? &response.base : NULL);
}

const struct al_rpc al_rpc_list_backends = {
    .path = "/airlock.v1.ExecutionService/ListBackends",
    .call_size = sizeof(struct al_call),
    .armed = 1,
    .arrived = list_backends_arrived,
};

/* --- GetQuota --- */

static void get_quota_arrived(struct al_call *call)
{
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message;
    struct al_err err = {0};
    struct al_query caller = {0};
    if (al_call_unpack(&airlock__v1__get_quota_request__descriptor, &call->payload,
                       &call->service->small_limits, &arena, &message, &err) < 0 ||
        al_query_tenant(&caller, call, ((Airlock__V1__GetQuotaRequest *)message)->tenant_id, &err) <
            0)
    {
        al_call_fail(call, &err);
        return;
    }
    struct al_quota_remaining remaining;
    Airlock__V1__GetQuotaResponse response = AIRLOCK__V1__GET_QUOTA_RESPONSE__INIT;
    al_quota_get(call->service->quota, caller.tenant, al_now_ms(), &remaining);
    response.cpu_seconds_remaining = remaining.cpu_seconds_remaining;
    response.cpu_seconds_per_minute = remaining.cpu_seconds_per_minute;
    response.inflight = remaining.inflight;
    response.max_inflight = remaining.max_inflight;
    answer(call, &response.base);
}

const struct al_rpc al_rpc_get_quota = {
    .path = "/airlock.v1.ExecutionService/GetQuota",
    .call_size = sizeof(struct al_call),
    .armed = 1,
    .arrived = get_quota_arrived,
};

/* --- everything else --- */

static void unknown_arrived(struct al_call *call)
{
    al_call_fail_status(call, GRPC_STATUS_UNIMPLEMENTED, "this server has no such method");
}

const struct al_rpc al_rpc_unknown = {
    .call_size = sizeof(struct al_call),
    .armed = 1,
    .in_drain = true,
    .arrived = unknown_arrived,
};
