#include "service/admit.h"

#include <sys/eventfd.h>

#include "backends/base/log.h"
#include "service/convert.h"

static int convert(struct al_service *service, const struct al_admission *admission,
                   struct al_arena *arena, struct al_request **ret, struct al_err *err)
{
    const struct al_convert_env env = {
        .registry = service->registry,
        .limits = &service->config->limits,
        .tenant_metadata = admission->tenant_metadata,
        .stream = admission->lane == AL_LANE_STREAMS,
        .terminal = admission->terminal,
    };
    return al_convert_run(&env, admission->message, arena, ret, err);
}

/* The request's gate_mode, as far as the operator allows. */
static int gate_mode(const struct al_config *config, const struct al_request *request,
                     enum al_gate_mode *ret, struct al_err *err)
{
    switch (request->message->gate_mode) {
    case AIRLOCK__V1__GATE_MODE__GATE_MODE_ENFORCE:
        *ret = AL_GATE_ENFORCE;
        return 0;
    case AIRLOCK__V1__GATE_MODE__GATE_MODE_WARN:
        if (config->gate_mode == AL_GATE_ENFORCE && !config->gate_warn_allowed) {
            return al_err_set(err, AL_ERR_PERMISSION_DENIED,
                              "gate_mode: GATE_MODE_WARN is not allowed on this server");
        }
        *ret = AL_GATE_WARN;
        return 0;
    default:
        *ret = config->gate_mode;
        return 0;
    }
}

static int check_budget(const struct al_service *service, const struct al_job_spec *spec,
                        struct al_err *err)
{
    int64_t budget_ms = al_quota_budget_ms(service->quota, spec->tenant_id);
    if (spec->quotas.cpu_ms <= budget_ms) {
        return 0;
    }
    return al_err_set(
        err, AL_ERR_INVALID_ARGUMENT,
        "quotas.cpu_seconds: %g is more than the tenant's whole budget of %g a minute",
        (double)spec->quotas.cpu_ms / 1e3, (double)budget_ms / 1e3);
}

static int create_job(struct al_service *service, const struct al_admission *admission,
                      struct al_request *request, struct al_arena *arena, struct al_job **ret,
                      struct al_err *err)
{
    bool stream = admission->lane == AL_LANE_STREAMS;
    struct al_run_policy policy = {
        .cache = stream ? AL_CACHE_OFF : request->cache_mode,
        .cache_max_age_ms = request->cache_max_age_ms,
    };
    int r = gate_mode(service->config, request, &policy.gate, err)
                ?: check_budget(service, &request->spec, err);
    if (r < 0) {
        return r;
    }
    const struct al_job_params params = {
        .policy = policy,
        .arena = arena,
        .spec = &request->spec,
        .backend = request->backend,
        .metadata = request->metadata,
        .n_metadata = request->n_metadata,
        .executor = service->executor,
        .lane = admission->lane,
        .run = admission->run,
        .owner = admission->owner,
        .ring_bytes = stream ? service->config->ring_bytes
                             : al_ring_bytes_for(request->spec.quotas.output_bytes),
        .keep_bytes = admission->linger_ms > 0 ? service->config->stream_keep_bytes : 0,
        .artifact_memory =
            request->spec.n_artifacts > 0
                ? AL_JOB_ARTIFACT_COPIES * al_artifacts_memory(request->spec.quotas.artifact_bytes)
                : 0,
        .deadline_ms = admission->deadline_ms,
    };
    return al_job_create(&params, ret, err);
}

int al_admit(struct al_service *service, const struct al_admission *admission,
             struct al_arena **arena, struct al_admitted *ret, struct al_err *err)
{
    al_auto_arena struct al_arena *own = *arena;
    *arena = NULL;
    struct al_request *request = NULL;
    struct al_job *job = NULL;
    int r = convert(service, admission, own, &request, err);
    if (r < 0) {
        return r;
    }
    request->spec.linger_ms = admission->linger_ms;
    size_t bytes = al_arena_used_bytes(own);
    r = al_service_hold(service, bytes, err);
    if (r < 0) {
        return r;
    }
    r = create_job(service, admission, request, own, &job, err);
    if (r < 0) {
        al_service_release(service, bytes);
        return r;
    }
    own = NULL;
    atomic_fetch_add(&service->admitted, 1);
    al_jobs_insert(service->jobs, job);
    *ret = (struct al_admitted){.job = job, .request_bytes = bytes};
    return 0;
}

int al_admit_submit(struct al_service *service, struct al_admitted *admitted, struct al_err *err)
{
    int r = al_executor_submit(service->executor, al_job_task(admitted->job), err);
    if (r < 0) {
        al_jobs_remove(service->jobs, admitted->job);
    }
    return r;
}

void al_admit_run(struct al_service *service, struct al_job *job, bool removed)
{
    struct al_job_info info;
    if (removed) {
        al_pipeline_skip(&service->pipeline, job);
    } else {
        al_pipeline_run(&service->pipeline, job);
    }
    al_job_info(job, &info);
    if (info.result->reason == AL_REASON_BACKEND) {
        al_log_warn("job %s: backend %s failed: %s", info.id, info.backend->name,
                    info.result->error);
    }
}

void al_admit_ended(struct al_service *service, struct al_admitted *admitted)
{
    al_service_release(service, admitted->request_bytes);
    admitted->request_bytes = 0;
    al_executor_return_memory(service->executor, al_job_task(admitted->job),
                              al_job_memory(admitted->job));
}

void al_admit_release(struct al_service *service, struct al_admitted *admitted)
{
    if (!admitted->job) {
        return;
    }
    al_job_drop_output(admitted->job);
    al_executor_return_memory(service->executor, al_job_task(admitted->job), 0);
    al_job_unref(admitted->job);
    al_service_release(service, admitted->request_bytes);
    *admitted = (struct al_admitted){0};
    if (atomic_fetch_sub(&service->admitted, 1) == 1 && atomic_load(&service->draining)) {
        eventfd_write(service->idle_fd, 1);
    }
}
