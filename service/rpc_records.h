/* A question about a tenant's records, answered on a thread of the executor's. */
#pragma once

#include "backends/api/job_spec.h"
#include "backends/base/buf.h"
#include "service/call.h"
#include "service/service.h"

/* Embedded in a call's struct, which the query keeps alive. */
struct al_query {
    struct al_task task;
    struct al_call *call;
    void (*work)(struct al_query *query); /* answers the call */
    char tenant[AL_TENANT_METADATA_MAX];
    char id[AL_JOB_ID_LEN + 1];
};

/* Takes the caller's tenant from the call's metadata or the request's field. CQ thread. */
int al_query_tenant(struct al_query *query, struct al_call *call, const char *tenant_id,
                    struct al_err *err);

/* Hands `work` to the executor; the call is answered in any case. */
void al_query_start(struct al_query *query);

/* In `work`: the packed Job of query->id. -ENOENT and others, for al_query_fail. */
int al_query_record(const struct al_query *query, struct al_buf *ret);
void al_query_fail(const struct al_query *query, int r);

/* al_query.work of GetJob. */
void al_query_get_job(struct al_query *query);
