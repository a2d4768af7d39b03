#include "service/job.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backends/base/clock.h"
#include "proto/wire/arena.h"

#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* What a job needs only while it runs and is read. */
struct live {
    struct al_job *job;
    struct al_sink sink;
    struct al_arena *arena;   /* NULL once the run has ended */
    struct al_job_spec *spec; /* in the arena */
    struct al_ctl *ctl;

    /* Under the job's lock. */
    struct al_ring ring;
    struct al_reader *reader;
    bool reader_is_idle;
    bool detached;
    bool out_of_memory;
};

struct al_job {
    atomic_uint refs;
    struct al_task task;
    struct al_executor *executor;
    void *owner;
    int64_t deadline_ms;
    struct al_job_links links; /* under the table's lock */

    char id[AL_JOB_ID_LEN + 1];
    uint64_t key;
    struct al_backend *backend;
    const struct al_language *language;
    const char *tenant;
    const char *user;
    struct al_env *metadata;
    size_t n_metadata;
    int64_t created_wall_ns;
    int64_t created_ns;

    pthread_mutex_t lock; /* guards everything below */
    struct live *live;    /* NULL after al_job_drop_output */
    enum al_status status;
    struct al_quotas quotas;
    bool has_digest;
    uint8_t digest[AL_SHA256_LEN];
    int64_t started_wall_ns;
    int64_t finished_wall_ns;
    int64_t queue_us;
    struct al_result result; /* does not change once the status is terminal */
    struct al_job_waiter *waiters;

    _Alignas(struct al_env) char strings[]; /* what the pointers above point to */
};

static size_t append(struct al_sink *sink, enum al_channel channel, const uint8_t *data, size_t n);

static const struct al_sink_ops sink_ops = {.append = append};

static size_t record_bytes(const struct al_job_params *params)
{
    size_t size = params->n_metadata * sizeof(struct al_env);
    size += strlen(params->spec->tenant_id) + 1 + strlen(params->spec->user_id) + 1;
    for (size_t i = 0; i < params->n_metadata; i++) {
        size += strlen(params->metadata[i].name) + 1 + strlen(params->metadata[i].value) + 1;
    }
    return size;
}

static char *copy_string(char **at, const char *from)
{
    size_t size = strlen(from) + 1;
    char *to = memcpy(*at, from, size);
    *at += size;
    return to;
}

static void fill_record(struct al_job *job, const struct al_job_params *params)
{
    char *at = job->strings + params->n_metadata * sizeof(struct al_env);
    job->metadata = (struct al_env *)(void *)job->strings;
    job->n_metadata = params->n_metadata;
    for (size_t i = 0; i < params->n_metadata; i++) {
        job->metadata[i].name = copy_string(&at, params->metadata[i].name);
        job->metadata[i].value = copy_string(&at, params->metadata[i].value);
    }
    job->tenant = copy_string(&at, params->spec->tenant_id);
    job->user = copy_string(&at, params->spec->user_id);
    job->backend = params->backend;
    job->language = params->spec->language;
    job->quotas = params->spec->quotas;
    job->created_wall_ns = al_wall_ns();
    job->created_ns = al_now_ns();
    job->status = AL_STATUS_PENDING;
    al_result_init(&job->result);
}

static int make_id(struct al_job *job, struct al_err *err)
{
    if (getrandom(&job->key, sizeof job->key, 0) != sizeof job->key) {
        return al_err_errno(err, errno, "cannot get random bytes");
    }
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < AL_JOB_ID_LEN; i++) {
        job->id[i] = digits[job->key >> (60 - 4 * i) & 15];
    }
    return 0;
}

static struct live *create_live(struct al_job *job, const struct al_job_params *params)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live) {
        return NULL;
    }
    live->ctl = al_ctl_create();
    if (!live->ctl) {
        free(live);
        return NULL;
    }
    live->job = job;
    live->sink.ops = &sink_ops;
    live->arena = params->arena;
    live->spec = params->spec;
    memcpy(live->spec->job_id, job->id, sizeof job->id);
    bool stream = params->lane == AL_LANE_STREAMS;
    al_ring_init(&live->ring, stream ? AL_RING_ORDERED : AL_RING_BY_CHANNEL, params->ring_bytes);
    if (stream) {
        al_ring_append_status(&live->ring, AL_EVENT_STATUS, AL_STATUS_PENDING);
    }
    return live;
}

int al_job_create(const struct al_job_params *params, struct al_job **ret, struct al_err *err)
{
    struct al_job *job = calloc(1, sizeof *job + record_bytes(params));
    if (!job) {
        return al_err_errno(err, ENOMEM, "cannot make a job");
    }
    fill_record(job, params);
    int r = make_id(job, err);
    if (r == 0 && !(job->live = create_live(job, params))) {
        r = al_err_set(err, AL_ERR_INTERNAL, "cannot make a job: no memory or no file descriptor");
    }
    if (r < 0) {
        free(job);
        return r;
    }
    atomic_init(&job->refs, 1);
    pthread_mutex_init(&job->lock, NULL);
    job->executor = params->executor;
    job->owner = params->owner;
    job->deadline_ms = params->deadline_ms;
    job->task = (struct al_task){
        .run = params->run,
        .lane = params->lane,
        .tenant = job->tenant,
        .memory_bytes = params->ring_bytes,
    };
    *ret = job;
    return 0;
}

static void destroy_live(struct live *live)
{
    if (live) {
        al_ring_finish(&live->ring);
        al_ctl_destroy(live->ctl);
        al_arena_destroy(live->arena);
        free(live);
    }
}

struct al_job *al_job_ref(struct al_job *job)
{
    atomic_fetch_add_explicit(&job->refs, 1, memory_order_relaxed);
    return job;
}

void al_job_unref(struct al_job *job)
{
    if (job && atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) == 1) {
        destroy_live(job->live);
        al_result_finish(&job->result);
        pthread_mutex_destroy(&job->lock);
        free(job);
    }
}

const char *al_job_id(const struct al_job *job)
{
    return job->id;
}

uint64_t al_job_key(const struct al_job *job)
{
    return job->key;
}

const char *al_job_tenant(const struct al_job *job)
{
    return job->tenant;
}

struct al_backend *al_job_backend(const struct al_job *job)
{
    return job->backend;
}

void *al_job_owner(const struct al_job *job)
{
    return job->owner;
}

struct al_task *al_job_task(struct al_job *job)
{
    return &job->task;
}

struct al_job *al_job_of_task(struct al_task *task)
{
    return CONTAINER_OF(task, struct al_job, task);
}

struct al_job_links *al_job_links(struct al_job *job)
{
    return &job->links;
}

/* The thread that runs the job and the reader may touch `live` itself without the lock: only
 * al_job_drop_output ends it, and that comes after both. */

struct al_job_spec *al_job_spec(struct al_job *job)
{
    return job->live->spec;
}

struct al_ctl *al_job_ctl(struct al_job *job)
{
    return job->live->ctl;
}

struct al_sink *al_job_sink(struct al_job *job)
{
    return &job->live->sink;
}

int64_t al_job_deadline_ms(const struct al_job *job)
{
    return job->deadline_ms;
}

/* The reader to wake after unlocking, or NULL. With the lock held, after an event was added. */
static struct al_reader *reader_to_wake(struct live *live)
{
    if (!live->reader || !live->reader_is_idle || !live->ring.head) {
        return NULL;
    }
    live->reader_is_idle = false;
    return live->reader;
}

static void wake_reader(struct al_reader *reader)
{
    if (reader) {
        reader->wake(reader);
    }
}

static size_t append(struct al_sink *sink, enum al_channel channel, const uint8_t *data, size_t n)
{
    struct live *live = CONTAINER_OF(sink, struct live, sink);
    struct al_job *job = live->job;
    struct al_reader *reader = NULL;
    size_t taken = n;
    int error = 0;
    pthread_mutex_lock(&job->lock);
    if (!live->detached) {
        taken = al_ring_append(&live->ring, channel, data, n, &error);
        reader = reader_to_wake(live);
    }
    bool out_of_memory = taken == 0 && error == -ENOMEM;
    live->out_of_memory |= out_of_memory;
    pthread_mutex_unlock(&job->lock);
    wake_reader(reader);
    if (out_of_memory) {
        al_ctl_cancel(live->ctl); /* nobody would ever report room */
    }
    return taken;
}

/* Adds events that only a Stream's reader sees. With the lock held. */
static void add_status(struct live *live, enum al_event_kind kind, enum al_status status)
{
    if (live->ring.order == AL_RING_ORDERED && !live->detached) {
        al_ring_append_status(&live->ring, kind, status);
    }
}

void al_job_begin(struct al_job *job)
{
    struct live *live = job->live;
    pthread_mutex_lock(&job->lock);
    assert(job->status == AL_STATUS_PENDING);
    job->status = AL_STATUS_RUNNING;
    job->quotas = live->spec->quotas;
    job->started_wall_ns = al_wall_ns();
    job->queue_us = (al_now_ns() - job->created_ns) / 1000;
    add_status(live, AL_EVENT_STATUS, AL_STATUS_RUNNING);
    struct al_reader *reader = reader_to_wake(live);
    pthread_mutex_unlock(&job->lock);
    wake_reader(reader);
}

static void fail_for_memory(struct al_result *result)
{
    static const char text[] = "the server had no memory for the output";
    result->status = AL_STATUS_FAILED;
    result->reason = AL_REASON_BACKEND;
    memcpy(result->error, text, sizeof text);
}

void al_job_end(struct al_job *job, struct al_result *result)
{
    struct live *live = job->live;
    pthread_mutex_lock(&job->lock);
    assert(!al_status_is_terminal(job->status));
    if (live->out_of_memory) {
        fail_for_memory(result);
    }
    al_result_finish(&job->result);
    job->result = *result;
    al_result_init(result);
    job->status = job->result.status;
    job->finished_wall_ns = al_wall_ns();
    if (job->started_wall_ns == 0) {
        job->queue_us = (al_now_ns() - job->created_ns) / 1000;
    }
    add_status(live, AL_EVENT_STATUS, job->status);
    add_status(live, AL_EVENT_RESULT, job->status);
    struct al_arena *arena = live->arena;
    live->arena = NULL;
    live->spec = NULL;
    enum al_status status = job->status;
    struct al_job_waiter *waiter = job->waiters;
    job->waiters = NULL;
    struct al_reader *reader = reader_to_wake(live);
    pthread_mutex_unlock(&job->lock);

    al_arena_destroy(arena);
    wake_reader(reader);
    while (waiter) {
        struct al_job_waiter *next = waiter->next;
        waiter->ended(waiter, status);
        waiter = next;
    }
}

void al_job_set_reader(struct al_job *job, struct al_reader *reader)
{
    pthread_mutex_lock(&job->lock);
    job->live->reader = reader;
    job->live->reader_is_idle = false;
    pthread_mutex_unlock(&job->lock);
}

struct al_event *al_job_next(struct al_job *job, bool *ret_detached)
{
    pthread_mutex_lock(&job->lock);
    struct live *live = job->live;
    struct al_event *event = NULL;
    if (!live->detached) {
        event = al_ring_take(&live->ring);
        live->reader_is_idle = !event;
    }
    *ret_detached = live->detached;
    pthread_mutex_unlock(&job->lock);
    return event;
}

void al_job_event_done(struct al_job *job, struct al_event *event)
{
    pthread_mutex_lock(&job->lock);
    struct live *live = job->live;
    bool tell = al_ring_release(&live->ring, al_event_cost(event));
    pthread_mutex_unlock(&job->lock);
    al_event_unref(event);
    if (tell) {
        al_ctl_room(live->ctl);
    }
}

bool al_job_detach(struct al_job *job)
{
    pthread_mutex_lock(&job->lock);
    struct live *live = job->live;
    bool was_idle = live->reader_is_idle;
    live->reader_is_idle = false;
    live->detached = true;
    bool tell = al_ring_clear(&live->ring);
    pthread_mutex_unlock(&job->lock);
    if (tell) {
        al_ctl_room(live->ctl);
    }
    return was_idle;
}

void al_job_drop_output(struct al_job *job)
{
    pthread_mutex_lock(&job->lock);
    struct live *live = job->live;
    job->live = NULL;
    pthread_mutex_unlock(&job->lock);
    destroy_live(live);
}

bool al_job_cancel(struct al_job *job)
{
    pthread_mutex_lock(&job->lock);
    bool alive = job->live && !al_status_is_terminal(job->status);
    if (alive) {
        al_ctl_cancel(job->live->ctl);
    }
    pthread_mutex_unlock(&job->lock);
    if (alive) {
        (void)al_executor_remove(job->executor, &job->task);
    }
    return alive;
}

bool al_job_wait(struct al_job *job, struct al_job_waiter *waiter, enum al_status *ret_status)
{
    pthread_mutex_lock(&job->lock);
    bool ended = al_status_is_terminal(job->status);
    if (ended) {
        *ret_status = job->status;
    } else {
        waiter->next = job->waiters;
        job->waiters = waiter;
    }
    pthread_mutex_unlock(&job->lock);
    return !ended;
}

void al_job_info(struct al_job *job, struct al_job_info *ret)
{
    pthread_mutex_lock(&job->lock);
    *ret = (struct al_job_info){
        .id = job->id,
        .tenant_id = job->tenant,
        .user_id = job->user,
        .backend = job->backend,
        .language = job->language,
        .metadata = job->metadata,
        .n_metadata = job->n_metadata,
        .status = job->status,
        .quotas = job->quotas,
        .result = al_status_is_terminal(job->status) ? &job->result : NULL,
        .code_sha256 = job->has_digest ? job->digest : NULL,
        .created_wall_ns = job->created_wall_ns,
        .started_wall_ns = job->started_wall_ns,
        .finished_wall_ns = job->finished_wall_ns,
        .queue_us = job->queue_us,
    };
    pthread_mutex_unlock(&job->lock);
}

void al_job_set_code_sha256(struct al_job *job, const uint8_t digest[AL_SHA256_LEN])
{
    pthread_mutex_lock(&job->lock);
    memcpy(job->digest, digest, AL_SHA256_LEN);
    job->has_digest = true;
    pthread_mutex_unlock(&job->lock);
}
