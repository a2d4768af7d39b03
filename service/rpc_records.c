/*
 * GetJob, ListJobs and Kill of what is on disk. Reading a record may wait for the disk, so it is
 * done by a thread of the executor's, in a lane of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/wire.h"
#include "service/convert.h"
#include "service/pack.h"
#include "service/rpc.h"
#include "service/rpc_records.h"

#define PAGE_DEFAULT 50

/* Both responses have their job or jobs in field 1, ListJobs its token in field 2. */
#define JOB_FIELD   1
#define TOKEN_FIELD 2

#define ANSWER_BYTES_MAX (AL_RECORDS_PAGE_BYTES + AL_RECORDS_JOB_MAX + (64u << 10))

static void run_query(struct al_task *task, bool removed)
{
    struct al_query *query = (struct al_query *)((char *)task - offsetof(struct al_query, task));
    struct al_call *call = query->call;
    if (removed) {
        al_call_fail_status(call, GRPC_STATUS_UNAVAILABLE, "the server is shutting down");
    } else {
        query->work(query);
    }
    al_call_unref(call);
}

void al_query_start(struct al_query *query)
{
    struct al_err err = {0};
    query->task =
        (struct al_task){.run = run_query, .lane = AL_LANE_QUERIES, .tenant = query->tenant};
    al_call_ref(query->call); /* run_query's */
    if (al_executor_submit(query->call->service->executor, &query->task, &err) < 0) {
        al_call_fail(query->call, &err);
        al_call_unref(query->call);
    }
}

static void fail(struct al_call *call, int r, const char *id)
{
    struct al_err err = {0};
    if (r == -ENOENT) {
        (void)al_err_set(&err, AL_ERR_NOT_FOUND, "there is no job %s", id);
    } else if (r == -EINVAL) {
        (void)al_err_set(&err, AL_ERR_INVALID_ARGUMENT,
                         "page_token: not one that this tenant got for this status");
    } else {
        (void)al_err_set(&err, r == -EIO ? AL_ERR_UNAVAILABLE : AL_ERR_RESOURCE_EXHAUSTED,
                         "the records cannot be read now: %s", strerror(-r));
    }
    al_call_fail(call, &err);
}

int al_query_record(const struct al_query *query, struct al_buf *ret)
{
    struct al_records *records = query->call->service->records;
    return records ? al_records_get(records, query->tenant, query->id, ret) : -ENOENT;
}

void al_query_fail(const struct al_query *query, int r)
{
    fail(query->call, r, query->id);
}

void al_query_get_job(struct al_query *query)
{
    struct al_buf job;
    struct al_buf answer;
    al_buf_init(&job, AL_RECORDS_JOB_MAX);
    al_buf_init(&answer, ANSWER_BYTES_MAX);
    int r = al_query_record(query, &job);
    if (r == 0) {
        r = al_pack_field(&answer, JOB_FIELD, job.data, job.len);
    }
    if (r < 0) {
        fail(query->call, r, query->id);
    } else {
        al_call_reply(query->call, al_pack_bytes(answer.data, answer.len));
    }
    al_buf_finish(&job);
    al_buf_finish(&answer);
}

/* --- ListJobs --- */

struct list_call {
    struct al_call base;
    struct al_query query;
    int status;
    uint32_t page_size;
    char token[AL_RECORDS_TOKEN_MAX];
};

static int add_job(void *arg, const uint8_t *job, size_t len)
{
    return al_pack_field(arg, JOB_FIELD, job, len);
}

static void list_jobs(struct al_query *query)
{
    struct list_call *list = (struct list_call *)query->call;
    struct al_records *records = query->call->service->records;
    char next[AL_RECORDS_TOKEN_MAX] = "";
    struct al_buf answer;
    al_buf_init(&answer, ANSWER_BYTES_MAX);
    int r = records ? al_records_list(records, query->tenant, list->status, list->page_size,
                                      list->token, add_job, &answer, next)
                    : 0;
    if (r == 0 && next[0]) {
        r = al_pack_field(&answer, TOKEN_FIELD, next, strlen(next));
    }
    if (r < 0) {
        fail(query->call, r, "");
    } else {
        al_call_reply(query->call, al_pack_bytes(answer.data, answer.len));
    }
    al_buf_finish(&answer);
}

static int read_list_request(struct list_call *list, const Airlock__V1__ListJobsRequest *request,
                             struct al_err *err)
{
    if (request->page_size > AL_RECORDS_PAGE_MAX) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "page_size: %u, at most %d",
                          request->page_size, AL_RECORDS_PAGE_MAX);
    }
    if ((int)request->status < 0 || (int)request->status > AL_STATUS_EGRESS_BLOCKED) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "status: %d is not a JobStatus",
                          (int)request->status);
    }
    if (strlen(request->page_token) >= sizeof list->token) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "page_token: not one of this server's");
    }
    list->status = (int)request->status;
    list->page_size = request->page_size ? request->page_size : PAGE_DEFAULT;
    (void)snprintf(list->token, sizeof list->token, "%s", request->page_token);
    return 0;
}

static int admit_list(struct list_call *list, struct al_err *err)
{
    struct al_call *call = &list->base;
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message;
    int r = al_call_unpack(&airlock__v1__list_jobs_request__descriptor, &call->payload,
                           &call->service->small_limits, &arena, &message, err);
    if (r < 0) {
        return r;
    }
    const Airlock__V1__ListJobsRequest *request = (const Airlock__V1__ListJobsRequest *)message;
    r = al_query_tenant(&list->query, call, request->tenant_id, err);
    return r < 0 ? r : read_list_request(list, request, err);
}

static void list_jobs_arrived(struct al_call *call)
{
    struct list_call *list = (struct list_call *)call;
    struct al_err err = {0};
    if (admit_list(list, &err) < 0) {
        al_call_fail(call, &err);
        return;
    }
    list->query.work = list_jobs;
    al_query_start(&list->query);
}

int al_query_tenant(struct al_query *query, struct al_call *call, const char *tenant_id,
                    struct al_err *err)
{
    char buffer[AL_TENANT_METADATA_MAX];
    const char *metadata = NULL;
    const char *tenant = NULL;
    query->call = call;
    int r = al_call_tenant(call, buffer, &metadata, err);
    if (r == 0) {
        r = al_convert_tenant(metadata, tenant_id, &tenant, err);
    }
    if (r == 0) {
        (void)snprintf(query->tenant, sizeof query->tenant, "%s", tenant);
    }
    return r;
}

const struct al_rpc al_rpc_list_jobs = {
    .path = "/airlock.v1.ExecutionService/ListJobs",
    .call_size = sizeof(struct list_call),
    .armed = 1,
    .in_drain = true,
    .arrived = list_jobs_arrived,
};
