/* What the parts of the cache share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "cache/cache.h"
#include "cache/clock.h"
#include "cache/recency.h"
#include "cache/store.h"

struct al_cache {
    struct al_cache_limits limits;
    struct al_cache_clock clock;
    struct al_cache_recency recency;
    struct al_cache_store store;

    pthread_mutex_t writer; /* guards the three below, and every change of the store */
    uint8_t hand[AL_CACHE_KEY_LEN];
    int64_t rest_until_ms; /* no attempt to write before; monotonic */
    bool unwanted;         /* the file was cleared but could not be removed yet */

    _Atomic uint64_t hits;
    _Atomic uint64_t misses;
    _Atomic uint64_t puts;
    _Atomic uint64_t evictions;
    _Atomic uint64_t entries; /* written under `writer` */
    _Atomic uint64_t bytes;   /* written under `writer` */
    _Atomic bool damaged;     /* a reader found the file damaged: the next writer begins anew */
    _Atomic bool working;

    pthread_mutex_t trouble_lock; /* guards the two below */
    uint64_t faults;
    char trouble[AL_CACHE_TROUBLE_MAX];
};

/* What a write transaction does to the totals once it is committed. */
struct al_cache_change {
    int64_t entries;
    int64_t bytes;
    uint64_t evictions;
};

/* Removes the entry if it is there. 0 or an LMDB code. */
int al_cache_shrink_delete(struct al_cache *c, MDB_txn *txn, const uint8_t *key,
                           struct al_cache_change *change);

/* Moves the hand on: drops what is too old, and evicts until `bytes` more fit. ENOBUFS when it took
 * out as many as one transaction may and there is no room yet; commit all the same. */
int al_cache_shrink_for(struct al_cache *c, MDB_txn *txn, uint64_t bytes,
                        struct al_cache_change *change);

void al_cache_note_fault(struct al_cache *c, const char *text);
