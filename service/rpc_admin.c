/* The methods of airlock.v1.AdminService. */
#include "service/rpc.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache.h"
#include "proto/airlock/v1/admin.pb-c.h"
#include "proto/wire/arena.h"
#include "proto/wire/utf8.h"
#include "proto/wire/wire.h"

#define ANSWER_BYTES_MAX (64u << 10)

/* There is nothing in the request; it must be one all the same. */
static int check_request(struct al_call *call, const ProtobufCMessageDescriptor *desc,
                         struct al_err *err)
{
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *message;
    return al_call_unpack(desc, &call->payload, &call->service->small_limits, &arena, &message,
                          err);
}

/* --- GetCacheStats --- */

/* False: no memory for the text, which may hold a path that is not UTF-8. */
static bool encode_stats(const struct al_cache_stats *stats, struct al_arena *arena,
                         Airlock__V1__GetCacheStatsResponse *response)
{
    response->enabled = true;
    response->working = stats->working;
    response->hits = stats->hits;
    response->misses = stats->misses;
    response->puts = stats->puts;
    response->evictions = stats->evictions;
    response->entries = stats->entries;
    response->bytes = stats->bytes;
    response->max_bytes = stats->max_bytes;
    response->trouble =
        al_utf8_escape(arena, (const uint8_t *)stats->trouble, strlen(stats->trouble));
    return response->trouble;
}

static void cache_stats_arrived(struct al_call *call)
{
    al_auto_arena struct al_arena *arena = al_arena_create(ANSWER_BYTES_MAX);
    Airlock__V1__GetCacheStatsResponse response = AIRLOCK__V1__GET_CACHE_STATS_RESPONSE__INIT;
    struct al_cache_stats stats;
    struct al_err err = {0};
    if (check_request(call, &airlock__v1__get_cache_stats_request__descriptor, &err) < 0) {
        al_call_fail(call, &err);
        return;
    }
    if (call->service->cache) {
        al_cache_stats(call->service->cache, &stats);
        if (!arena || !encode_stats(&stats, arena, &response)) {
            (void)al_err_set(&err, AL_ERR_RESOURCE_EXHAUSTED, "the server is out of memory");
            al_call_fail(call, &err);
            return;
        }
    }
    al_call_reply(call, al_wire_pack(&response.base));
}

const struct al_rpc al_rpc_cache_stats = {
    .path = "/airlock.v1.AdminService/GetCacheStats",
    .call_size = sizeof(struct al_call),
    .armed = 1,
    .in_drain = true,
    .arrived = cache_stats_arrived,
};

/* --- ClearCache --- */

/* One at a time, of the process: else a flood of calls would be a flood of threads. Against the
 * rule about globals: nothing else would use a field of struct al_service. */
static atomic_flag clearing = ATOMIC_FLAG_INIT;

/* Results in a file that could not be removed would be found after the next start. */
static void answer_cleared(struct al_call *call, const struct al_cache_stats *after,
                           uint64_t entries)
{
    Airlock__V1__ClearCacheResponse response = AIRLOCK__V1__CLEAR_CACHE_RESPONSE__INIT;
    struct al_err err = {0};
    if (after->working) {
        response.entries = entries;
        al_call_reply(call, al_wire_pack(&response.base));
        return;
    }
    (void)al_err_set(&err, AL_ERR_UNAVAILABLE,
                     "the cached results are out of use, but their file is not in order: %s",
                     after->trouble);
    al_call_fail(call, &err);
}

static void *clear(void *arg)
{
    struct al_call *call = arg;
    struct al_cache_stats after;
    uint64_t entries;
    al_cache_clear(call->service->cache, &entries);
    al_cache_stats(call->service->cache, &after);
    atomic_flag_clear(&clearing);
    answer_cleared(call, &after, entries);
    al_call_unref(call);
    return NULL;
}

/* The cache is there as long as the call: the server waits for all calls before it closes it. */
static int start_thread(struct al_call *call)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int r = pthread_attr_init(&attributes);
    if (r != 0) {
        return -r;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    al_call_ref(call);
    r = pthread_create(&thread, &attributes, clear, call);
    if (r != 0) {
        al_call_unref(call);
    }
    pthread_attr_destroy(&attributes);
    return -r;
}

/* On a thread of its own, since closing the old file writes what of it is not on the disk yet. */
static int begin_to_clear(struct al_call *call, struct al_err *err)
{
    int r = check_request(call, &airlock__v1__clear_cache_request__descriptor, err);
    if (r < 0) {
        return r;
    }
    if (!call->service->cache) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION,
                          "no cache is configured ([cache] max_mb)");
    }
    if (atomic_flag_test_and_set(&clearing)) {
        return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED, "the cache is being cleared already");
    }
    r = start_thread(call);
    if (r < 0) {
        atomic_flag_clear(&clearing);
        return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED, "cannot start a thread: %s",
                          strerror(-r));
    }
    return 0;
}

static void clear_cache_arrived(struct al_call *call)
{
    struct al_err err = {0};
    if (begin_to_clear(call, &err) < 0) {
        al_call_fail(call, &err);
    }
}

const struct al_rpc al_rpc_clear_cache = {
    .path = "/airlock.v1.AdminService/ClearCache",
    .call_size = sizeof(struct al_call),
    .armed = 1,
    .arrived = clear_cache_arrived,
};
