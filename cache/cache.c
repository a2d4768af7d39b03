#include "cache/cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "cache/state.h"
#include "cache/upkeep.h"

#define KEY_BYTES_GUESS 256 /* below a small entry: sizes the table of last uses */
#define MAP_SPARE       (UINT64_C(16) << 20)

static int64_t real_wall_ns(void *arg)
{
    (void)arg;
    return al_wall_ns();
}

static struct al_cache_limits fill_in(const struct al_cache_limits *limits)
{
    struct al_cache_limits full = *limits;
    if (full.max_bytes > INT64_MAX / 4) {
        full.max_bytes = INT64_MAX / 4;
    }
    if (full.entry_max_bytes == 0) {
        full.entry_max_bytes = full.max_bytes / 8;
    }
    if (full.entry_max_bytes > full.max_bytes) {
        full.entry_max_bytes = full.max_bytes;
    }
    return full;
}

static struct al_cache *create(const char *dir, const struct al_cache_limits *limits,
                               const struct al_cache_clock *clock)
{
    struct al_cache *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    c->limits = fill_in(limits);
    c->clock = *clock;
    if (al_cache_recency_init(&c->recency, c->limits.max_bytes / KEY_BYTES_GUESS) < 0) {
        free(c);
        return NULL;
    }
    if (al_cache_store_init(&c->store, dir, 2 * c->limits.max_bytes + MAP_SPARE) < 0) {
        al_cache_recency_finish(&c->recency);
        free(c);
        return NULL;
    }
    pthread_mutex_init(&c->writer, NULL);
    pthread_mutex_init(&c->trouble_lock, NULL);
    return c;
}

int al_cache_open_clock(const char *dir, const struct al_cache_limits *limits,
                        const struct al_cache_clock *clock, struct al_cache **ret,
                        struct al_err *err)
{
    if (limits->max_bytes == 0 || limits->max_age_ms < 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "cache: max_bytes must be above 0 and max_age_ms not below");
    }
    struct al_cache *c = create(dir, limits, clock);
    if (!c) {
        return al_err_errno(err, ENOMEM, "cache");
    }
    pthread_mutex_lock(&c->writer);
    al_cache_upkeep_open(c);
    pthread_mutex_unlock(&c->writer);
    *ret = c;
    return 0;
}

int al_cache_open(const char *dir, const struct al_cache_limits *limits, struct al_cache **ret,
                  struct al_err *err)
{
    const struct al_cache_clock clock = {.wall_ns = real_wall_ns};
    return al_cache_open_clock(dir, limits, &clock, ret, err);
}

void al_cache_close(struct al_cache *c)
{
    if (!c) {
        return;
    }
    al_cache_store_close(&c->store, true);
    al_cache_store_finish(&c->store);
    al_cache_recency_finish(&c->recency);
    pthread_mutex_destroy(&c->writer);
    pthread_mutex_destroy(&c->trouble_lock);
    free(c);
}

static bool is_young(const struct al_cache *c, const struct al_cache_ask *ask, int64_t stored_ns)
{
    int64_t age_ns = c->clock.wall_ns(c->clock.arg) - stored_ns;
    int64_t limits[] = {c->limits.max_age_ms, ask->max_age_ms};
    for (size_t i = 0; i < 2; i++) {
        if (limits[i] > 0 && age_ns / 1000000 > limits[i]) {
            return false;
        }
    }
    return age_ns >= 0; /* stored in the future: the clock was set back, its age is not known */
}

static bool fits(const struct al_cache_ask *ask, const struct al_cache_record *record)
{
    int64_t took_us = record->result.duration_us + record->result.compile.duration_us;
    size_t larger =
        record->out[0].len > record->out[1].len ? record->out[0].len : record->out[1].len;
    return (ask->wall_ms <= 0 || took_us / 1000 < ask->wall_ms) &&
           (ask->output_bytes == 0 || larger <= ask->output_bytes) &&
           (ask->artifact_bytes == 0 ||
            al_artifacts_bytes(&record->result.artifacts) <= ask->artifact_bytes);
}

static bool read_entry(struct al_cache *c, const uint8_t *key, const struct al_cache_ask *ask,
                       struct al_cache_entry *ret)
{
    uint8_t *data;
    size_t len;
    struct al_cache_record record;
    if (atomic_load(&c->damaged)) {
        return false;
    }
    int rc = al_cache_store_read(&c->store, key, &data, &len);
    if (rc != 0) {
        al_cache_upkeep_reading_failed(c, rc);
        return false;
    }
    int r = al_cache_record_decode(key, data, len, &record);
    if (r < 0) {
        if (r == -EBADMSG) {
            al_cache_note_fault(c, "a damaged record was passed over");
        }
        free(data);
        return false;
    }
    if (!is_young(c, ask, record.stored_wall_ns) || !fits(ask, &record)) {
        al_result_finish(&record.result);
        free(data);
        return false;
    }
    *ret = (struct al_cache_entry){
        record.result, {record.out[0], record.out[1]}, record.stored_wall_ns, data};
    return true;
}

bool al_cache_get(struct al_cache *c, const uint8_t key[AL_CACHE_KEY_LEN],
                  const struct al_cache_ask *ask, struct al_cache_entry *ret)
{
    bool hit = read_entry(c, key, ask, ret);
    if (hit) {
        al_cache_recency_touch(&c->recency, key);
    }
    atomic_fetch_add_explicit(hit ? &c->hits : &c->misses, 1, memory_order_relaxed);
    return hit;
}

void al_cache_entry_finish(struct al_cache_entry *entry)
{
    al_result_finish(&entry->result);
    free(entry->memory);
    entry->memory = NULL;
}

void al_cache_note_fault(struct al_cache *c, const char *text)
{
    pthread_mutex_lock(&c->trouble_lock);
    c->faults++;
    al_err_copy_text(c->trouble, sizeof c->trouble, text);
    pthread_mutex_unlock(&c->trouble_lock);
}

void al_cache_stats(struct al_cache *c, struct al_cache_stats *ret)
{
    *ret = (struct al_cache_stats){
        .hits = atomic_load(&c->hits),
        .misses = atomic_load(&c->misses),
        .puts = atomic_load(&c->puts),
        .evictions = atomic_load(&c->evictions),
        .entries = atomic_load(&c->entries),
        .bytes = atomic_load(&c->bytes),
        .max_bytes = c->limits.max_bytes,
        .working = atomic_load(&c->working),
    };
    pthread_mutex_lock(&c->trouble_lock);
    ret->faults = c->faults;
    memcpy(ret->trouble, c->trouble, sizeof ret->trouble);
    pthread_mutex_unlock(&c->trouble_lock);
}

bool al_cache_may_store(const struct al_job_spec *spec, const struct al_result *result)
{
    return result->status == AL_STATUS_SUCCEEDED && !result->stdout_truncated &&
           !result->stderr_truncated && spec->network == AL_NETWORK_NONE && !spec->stdin_open &&
           al_artifacts_are_whole(&result->artifacts);
}
