#include "service/job_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "proto/wire/arena.h"

static size_t append(struct al_sink *sink, enum al_channel channel, const uint8_t *data, size_t n);

static bool give(struct al_sink *sink, enum al_channel channel, uint8_t *data, size_t n,
                 size_t cap);

static void used(struct al_sink *sink, int64_t cpu_us);

static const struct al_sink_ops sink_ops = {.append = append, .give = give, .used = used};

struct al_job_live *al_job_live_create(struct al_job *job, const struct al_job_params *params)
{
    struct al_job_live *live = calloc(1, sizeof *live);
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
    al_ring_init(&live->ring, stream ? AL_RING_ORDERED : AL_RING_BY_CHANNEL, params->ring_bytes,
                 params->keep_bytes);
    if (stream) {
        al_ring_append_status(&live->ring, AL_EVENT_STATUS, AL_STATUS_PENDING);
    }
    return live;
}

void al_job_live_destroy(struct al_job_live *live)
{
    if (live) {
        al_ring_finish(&live->ring);
        al_artifacts_finish(&live->artifacts);
        al_ctl_destroy(live->ctl);
        al_arena_destroy(live->arena);
        free(live);
    }
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

/* The reader to wake after unlocking, or NULL. With the lock held, after an event was added. */
static struct al_reader *reader_to_wake(struct al_job_live *live)
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
    struct al_job_live *live = AL_CONTAINER_OF(sink, struct al_job_live, sink);
    struct al_job *job = live->job;
    struct al_reader *reader = NULL;
    size_t taken = n;
    int error = 0;
    pthread_mutex_lock(&job->lock);
    if (!live->discards) {
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

static bool give(struct al_sink *sink, enum al_channel channel, uint8_t *data, size_t n, size_t cap)
{
    struct al_job_live *live = AL_CONTAINER_OF(sink, struct al_job_live, sink);
    struct al_job *job = live->job;
    struct al_reader *reader = NULL;
    pthread_mutex_lock(&job->lock);
    bool taken = !live->discards && al_ring_give(&live->ring, channel, data, n, cap);
    if (taken) {
        reader = reader_to_wake(live);
    }
    pthread_mutex_unlock(&job->lock);
    wake_reader(reader);
    return taken;
}

static void used(struct al_sink *sink, int64_t cpu_us)
{
    struct al_job_live *live = AL_CONTAINER_OF(sink, struct al_job_live, sink);
    if (live->on_used) {
        live->on_used(live->on_used_arg, cpu_us);
    }
}

void al_job_on_used(struct al_job *job, void (*fn)(void *arg, int64_t cpu_us), void *arg)
{
    job->live->on_used = fn;
    job->live->on_used_arg = arg;
}

void al_job_peek_output(struct al_job *job, struct al_bytes ret[2])
{
    ret[AL_STDOUT] = ret[AL_STDERR] = (struct al_bytes){0};
    pthread_mutex_lock(&job->lock);
    for (const struct al_event *e = job->live->ring.head; e; e = e->next) {
        if (e->kind == AL_EVENT_STDOUT || e->kind == AL_EVENT_STDERR) {
            enum al_channel channel = e->kind == AL_EVENT_STDOUT ? AL_STDOUT : AL_STDERR;
            ret[channel] = (struct al_bytes){e->bytes.data, e->bytes.len};
        }
    }
    pthread_mutex_unlock(&job->lock);
}

/* Adds events that only a Stream's reader sees. With the lock held. */
static void add_status(struct al_job_live *live, enum al_event_kind kind, enum al_status status)
{
    if (live->ring.order == AL_RING_ORDERED && !live->discards) {
        al_ring_append_status(&live->ring, kind, status);
    }
}

void al_job_begin(struct al_job *job)
{
    struct al_job_live *live = job->live;
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

/* Everything that becomes final at once. With the lock held. */
static void record_end(struct al_job *job, struct al_result *result)
{
    assert(!al_status_is_terminal(job->status));
    if (job->live->out_of_memory) {
        fail_for_memory(result);
    }
    al_result_finish(&job->result);
    job->result = *result;
    al_result_init(result);
    job->live->artifacts = job->result.artifacts;
    job->result.artifacts = (struct al_artifacts){.omitted = job->live->artifacts.omitted};
    job->status = job->result.status;
    job->finished_wall_ns = al_wall_ns();
    if (job->started_wall_ns == 0) {
        job->queue_us = (al_now_ns() - job->created_ns) / 1000;
    }
    add_status(job->live, AL_EVENT_STATUS, job->status);
    add_status(job->live, AL_EVENT_RESULT, job->status);
}

void al_job_end(struct al_job *job, struct al_result *result)
{
    struct al_job_live *live = job->live;
    pthread_mutex_lock(&job->lock);
    record_end(job, result);
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

struct al_event *al_job_next(struct al_job *job, const struct al_reader *reader,
                             enum al_reader_state *ret_state)
{
    pthread_mutex_lock(&job->lock);
    struct al_job_live *live = job->live;
    struct al_event *event = NULL;
    if (live->discards || live->reader != reader) {
        *ret_state = AL_READER_DETACHED;
    } else if (!(event = al_ring_take(&live->ring))) {
        bool ended = al_status_is_terminal(job->status);
        *ret_state = ended ? AL_READER_FINISHED : AL_READER_IDLE;
        live->reader_is_idle = !ended;
    }
    pthread_mutex_unlock(&job->lock);
    return event;
}

void al_job_event_done(struct al_job *job, const struct al_reader *reader, struct al_event *event)
{
    pthread_mutex_lock(&job->lock);
    struct al_job_live *live = job->live;
    bool counts = !live->discards && live->reader == reader;
    bool tell = counts && al_ring_release(&live->ring, al_event_cost(event));
    pthread_mutex_unlock(&job->lock);
    al_event_unref(event);
    if (tell) {
        al_ctl_room(live->ctl);
    }
}

/* With the lock held; whether the reader was idle. */
static bool set_reader(struct al_job_live *live, struct al_reader *reader)
{
    bool was_idle = live->reader_is_idle;
    live->reader = reader;
    live->reader_is_idle = false;
    return was_idle;
}

/* With the lock held; whether the program is to be told of room. */
static bool discard(struct al_job_live *live)
{
    live->discards = true;
    return al_ring_clear(&live->ring);
}

bool al_job_detach(struct al_job *job, const struct al_reader *reader)
{
    bool was_idle = false;
    bool tell = false;
    pthread_mutex_lock(&job->lock);
    struct al_job_live *live = job->live;
    if (live->reader == reader) {
        was_idle = set_reader(live, NULL);
        tell = !job->lingers && discard(live);
    }
    pthread_mutex_unlock(&job->lock);
    if (tell) {
        al_ctl_room(live->ctl);
    }
    return was_idle;
}

int al_job_attach(struct al_job *job, struct al_reader *reader, uint64_t after_sequence,
                  bool *ret_was_idle)
{
    int r = -ENOENT;
    bool tell = false;
    pthread_mutex_lock(&job->lock);
    struct al_job_live *live = job->live;
    if (job->lingers && !live->discards) {
        r = al_ring_rewind(&live->ring, after_sequence, &tell);
    }
    if (r == 0) {
        *ret_was_idle = set_reader(live, reader);
    }
    pthread_mutex_unlock(&job->lock);
    if (tell) {
        al_ctl_room(live->ctl);
    }
    return r;
}

void al_job_discard(struct al_job *job)
{
    pthread_mutex_lock(&job->lock);
    struct al_job_live *live = job->live;
    bool tell = discard(live);
    pthread_mutex_unlock(&job->lock);
    if (tell) {
        al_ctl_room(live->ctl);
    }
}

size_t al_job_memory(struct al_job *job)
{
    pthread_mutex_lock(&job->lock);
    const struct al_artifacts *artifacts = &job->live->artifacts;
    size_t bytes = al_ring_memory(&job->live->ring);
    if (artifacts->n > 0) {
        bytes += AL_JOB_ARTIFACT_COPIES * al_artifacts_memory(al_artifacts_bytes(artifacts));
    }
    pthread_mutex_unlock(&job->lock);
    return bytes;
}

const struct al_artifacts *al_job_artifacts(const struct al_job *job)
{
    return &job->live->artifacts;
}

void al_job_drop_output(struct al_job *job)
{
    pthread_mutex_lock(&job->lock);
    struct al_job_live *live = job->live;
    job->live = NULL;
    pthread_mutex_unlock(&job->lock);
    al_job_live_destroy(live);
}
