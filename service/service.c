#include "service/service.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "proto/wire/arena.h"
#include "service/job_encode.h"
#include "service/session.h"

#define MIB ((size_t)1 << 20)

/* Room in a message for all that has no bound of its own: paths, names, globs, hosts, tags. */
#define MESSAGE_SLACK_BYTES (2 * MIB)

#define SMALL_MESSAGE_BYTES (64u << 10)

/* Threads that read records at a time. */
#define QUERY_SLOTS 4

/* The part of output_memory_mb that ended jobs may take which linger for a reader. */
#define LINGER_SHARE 2

/* What a job's record may take while it is packed. */
#define RECORD_BYTES_MAX (256u << 10)

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
        .slots = {[AL_LANE_RUNS] = run_slots(config),
                  [AL_LANE_STREAMS] = config->stream_slots,
                  [AL_LANE_QUERIES] = QUERY_SLOTS},
        .queue_max = config->queue_max,
        .queue_tenant_max = config->queue_tenant_max,
        .memory_bytes = config->output_memory_mb * MIB,
    };
    return al_executor_create(&limits);
}

/* The pipeline's record: queued, not written, when this returns. */
static void put_record(void *arg, struct al_job *job)
{
    struct al_service *service = arg;
    struct al_job_info info;
    al_auto_arena struct al_arena *arena = al_arena_create(RECORD_BYTES_MAX);
    al_job_info(job, &info);
    Airlock__V1__Job *message = arena ? al_encode_job(&info, arena) : NULL;
    size_t len = message ? protobuf_c_message_get_packed_size(&message->base) : 0;
    uint8_t *packed = message ? al_arena_alloc(arena, len) : NULL;
    if (packed) {
        const struct al_record_key key = {.tenant = info.tenant_id,
                                          .id = info.id,
                                          .created_wall_ns = info.created_wall_ns,
                                          .status = (int)info.status};
        protobuf_c_message_pack(&message->base, packed);
        al_records_put(service->records, &key, packed, len);
    }
}

static int open_cache(struct al_service *service, struct al_err *err)
{
    const struct al_config *config = service->config;
    const struct al_cache_limits limits = {.max_bytes = config->cache_max_mb * MIB,
                                           .max_age_ms = config->cache_max_age_ms,
                                           .entry_max_bytes = config->cache_entry_max_kb << 10};
    char dir[AL_CONFIG_STRING_MAX + 16];
    (void)snprintf(dir, sizeof dir, "%s/cache", config->data_dir);
    return limits.max_bytes > 0 ? al_cache_open(dir, &limits, &service->cache, err) : 0;
}

static int open_records(struct al_service *service, struct al_err *err)
{
    const struct al_config *config = service->config;
    const struct al_records_limits limits = {.max_age_ms = config->records_max_age_ms,
                                             .max_count = config->records_max_count,
                                             .max_bytes = config->records_max_mb * MIB};
    char dir[AL_CONFIG_STRING_MAX + 16];
    (void)snprintf(dir, sizeof dir, "%s/records", config->data_dir);
    return al_records_open(dir, &limits, &service->records, err);
}

/* Without a data-dir (in tests) there is neither. */
static int open_stores(struct al_service *service, struct al_err *err)
{
    if (service->config->data_dir[0] == '\0') {
        return 0;
    }
    int r = open_cache(service, err);
    return r < 0 ? r : open_records(service, err);
}

static int make_pipeline(struct al_service *service)
{
    service->pipeline = (struct al_pipeline){
        .jobs = service->jobs,
        .quota = service->quota,
        .cache = service->cache,
        .record = service->records ? put_record : NULL,
        .record_arg = service,
        .deadline_margin_ms = service->config->limits.deadline_margin_ms,
    };
    return al_pipeline_init(&service->pipeline);
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
        .linger =
            al_linger_create(config->stream_slots, config->output_memory_mb * MIB / LINGER_SHARE),
        .quota = al_config_quota_create(config),
        .calls_max = run_slots(config) + config->stream_slots + config->queue_max + CALLS_SLACK,
        .request_bytes_max = config->output_memory_mb * MIB,
        .idle_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    int r = service->idle_fd < 0 ? -errno : 0;
    if (r == 0 && (!service->executor || !service->jobs || !service->linger || !service->quota)) {
        r = -ENOMEM;
    }
    if (r == 0) {
        r = open_stores(service, err);
    }
    if (r == 0) {
        r = make_pipeline(service);
    }
    if (r < 0) {
        al_service_finish(service);
        return al_err_errno(err, -r, "cannot make the service"); /* unless a store has said why */
    }
    return 0;
}

void al_service_finish(struct al_service *service)
{
    al_executor_destroy(service->executor);
    al_pipeline_finish(&service->pipeline);
    al_linger_destroy(service->linger);
    al_jobs_destroy(service->jobs);
    al_records_close(service->records);
    al_cache_close(service->cache);
    al_quota_destroy(service->quota);
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
    al_session_drain(service);
    if (atomic_load(&service->admitted) == 0) {
        eventfd_write(service->idle_fd, 1);
    }
}

static void report(const char *what, bool working, const char *trouble)
{
    if (!working) {
        al_log_warn("%s: %s; jobs run without it", what, trouble);
    }
}

void al_service_defer(struct al_service *service, struct al_deferred *deferred)
{
    deferred->next = NULL;
    if (!service->deferred) {
        service->deferred_end = &service->deferred;
    }
    *service->deferred_end = deferred;
    service->deferred_end = &deferred->next;
}

void al_service_run_deferred(struct al_service *service)
{
    struct al_deferred *deferred = service->deferred;
    if (deferred) {
        service->deferred = deferred->next;
        deferred->run(deferred);
    }
}

void al_service_report(struct al_service *service)
{
    if (service->cache) {
        struct al_cache_stats stats;
        al_cache_stats(service->cache, &stats);
        report("the result cache does not work", stats.working, stats.trouble);
    }
    if (service->records) {
        struct al_records_stats stats;
        al_records_stats(service->records, &stats);
        report("job records are not written", stats.working, stats.trouble);
    }
}
