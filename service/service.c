#include "service/service.h"

#include <errno.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* Room in a message for all that has no bound of its own: paths, names, globs, hosts, tags. */
#define MESSAGE_SLACK_BYTES (2 * MIB)

#define SMALL_MESSAGE_BYTES (64u << 10)

/* Calls without a job (Kill, GetJob, ...) that are served besides those that may wait or run. */
#define CALLS_SLACK 1024

static struct al_wire_limits run_limits(const struct al_request_limits *from)
{
    size_t bytes = from->code_bytes + from->files_bytes + from->stdin_bytes + from->inputs_bytes +
                   from->metadata_bytes + from->env_bytes + from->args_bytes + MESSAGE_SLACK_BYTES;
    struct al_wire_limits limits = al_wire_request_limits;
    limits.memory_bytes += bytes > limits.message_bytes ? bytes - limits.message_bytes : 0;
    limits.message_bytes = bytes < INT_MAX ? bytes : INT_MAX;
    return limits;
}

static struct al_wire_limits small_limits(void)
{
    struct al_wire_limits limits = al_wire_request_limits;
    limits.message_bytes = SMALL_MESSAGE_BYTES;
    limits.memory_bytes = 4 * SMALL_MESSAGE_BYTES;
    return limits;
}

static uint32_t run_slots(const struct al_config *config)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return config->run_slots ? config->run_slots : 4 * (uint32_t)(cores > 0 ? cores : 1);
}

static struct al_executor *make_executor(const struct al_config *config)
{
    struct al_executor_limits limits = {
        .slots = {[AL_LANE_RUNS] = run_slots(config), [AL_LANE_STREAMS] = config->stream_slots},
        .queue_max = config->queue_max,
        .queue_tenant_max = config->queue_tenant_max,
        .memory_bytes = config->output_memory_mb * MIB,
    };
    return al_executor_create(&limits);
}

int al_service_init(struct al_service *service, const struct al_config *config,
                    const struct al_registry *registry, struct al_err *err)
{
    *service = (struct al_service){
        .config = config,
        .registry = registry,
        .run_limits = run_limits(&config->limits),
        .small_limits = small_limits(),
        .executor = make_executor(config),
        .jobs = al_jobs_create(config->job_history),
        .calls_max = run_slots(config) + config->stream_slots + config->queue_max + CALLS_SLACK,
        .request_bytes_max = config->output_memory_mb * MIB,
        .idle_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    int r = service->idle_fd < 0 ? -errno : 0;
    if (r == 0 && (!service->executor || !service->jobs)) {
        r = -ENOMEM;
    }
    if (r == 0) {
        r = al_pipeline_init(&service->pipeline, service->jobs, config->limits.deadline_margin_ms);
    }
    if (r < 0) {
        al_service_finish(service);
        return al_err_errno(err, -r, "cannot make the service");
    }
    return 0;
}

void al_service_finish(struct al_service *service)
{
    al_executor_destroy(service->executor);
    al_pipeline_finish(&service->pipeline);
    al_jobs_destroy(service->jobs);
    if (service->idle_fd >= 0) {
        close(service->idle_fd);
    }
    *service = (struct al_service){.idle_fd = -1};
}

int al_service_hold(struct al_service *service, size_t bytes, struct al_err *err)
{
    size_t before = atomic_fetch_add(&service->request_bytes, bytes);
    if (before + bytes > service->request_bytes_max) {
        atomic_fetch_sub(&service->request_bytes, bytes);
        return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED,
                          "the requests that wait or run take too much memory");
    }
    return 0;
}

void al_service_release(struct al_service *service, size_t bytes)
{
    atomic_fetch_sub(&service->request_bytes, bytes);
}

void al_service_drain(struct al_service *service)
{
    atomic_store(&service->draining, true);
    if (atomic_load(&service->admitted) == 0) {
        eventfd_write(service->idle_fd, 1);
    }
}
