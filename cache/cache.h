/*
 * Results of earlier runs, kept on disk under the run's fingerprint.
 *
 * Thread-safe. A lookup never waits: while the file is being opened or its map grows it is a miss.
 * One writer at a time. Nothing that goes wrong with the file or the disk is an error for the
 * caller: the cache then misses and stores nothing, says so in its stats, and tries again about a
 * second later. A wrong result is never returned: each record has a checksum, and a file is checked
 * in whole before it is opened. What is not survived is a file that something else overwrites, in
 * place, while it is open; one that is cut short or removed is noticed. Files set aside are never
 * removed.
 *
 * Eviction is approximately least-recently-used. The time of last use is kept in memory (see
 * recency.h), so a hit writes nothing; a hand goes round the keys, which lie at random since they
 * are hashes, and where room is needed the least recently used of the next sixteen go. After a
 * restart, what has not been used since goes first, oldest first. Each put also drops the entries
 * under the hand that have passed the age limit.
 *
 * A folder has one cache, in one process, at a time; its lock is the caller's business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/job_spec.h"
#include "backends/api/result.h"
#include "backends/base/err.h"

#define AL_CACHE_KEY_LEN 32

struct al_cache;

struct al_cache_limits {
    uint64_t max_bytes;       /* of all entries, with what they cost in the file; not 0. The file
                               * itself stays below twice that and 16 MiB. */
    int64_t max_age_ms;       /* 0: no limit */
    uint64_t entry_max_bytes; /* of one record; 0: an eighth of max_bytes */
};

/* Makes `dir` (mode 0700) when it is missing. A damaged or truncated file and one of another format
 * are renamed (data.mdb.TIME) and a new one begun. A folder that cannot be written gives a cache
 * that always misses. Reads the whole index of an existing file: about a second for a million small
 * entries. 0; -EINVAL for limits without room, -ENOMEM. */
int al_cache_open(const char *dir, const struct al_cache_limits *limits, struct al_cache **ret,
                  struct al_err *err);

/* No other thread uses it any more. Flushes to disk. NULL is nothing. */
void al_cache_close(struct al_cache *c);

/* What the caller wants: an older or larger entry is a miss. */
struct al_cache_ask {
    int64_t max_age_ms;      /* 0: only the limits' own, which holds in any case */
    int64_t wall_ms;         /* 0: any; else what program and compile step took must be less */
    uint64_t output_bytes;   /* stdout and stderr each; 0: any */
    uint64_t artifact_bytes; /* of all artifacts; 0: any */
};

struct al_cache_entry {
    struct al_result result;
    struct al_bytes out[2]; /* stdout, stderr: copies, until finish */
    int64_t stored_wall_ns; /* wall clock */
    void *memory;
};

/* True: a hit, to be finished. `ret` is untouched on a miss. */
bool al_cache_get(struct al_cache *c, const uint8_t key[AL_CACHE_KEY_LEN],
                  const struct al_cache_ask *ask, struct al_cache_entry *ret);
void al_cache_entry_finish(struct al_cache_entry *entry);

/* Stores or replaces. False: not stored, because it is too large, is no success or is not
 * whole, another writer took longer than 100 ms, or the file cannot be written. */
bool al_cache_put(struct al_cache *c, const uint8_t key[AL_CACHE_KEY_LEN],
                  const struct al_result *result, const struct al_bytes out[2]);

/* Begins a new file and gives the old one's room back. `ret_entries` (may be NULL): how many there
 * were. */
void al_cache_clear(struct al_cache *c, uint64_t *ret_entries);

#define AL_CACHE_TROUBLE_MAX 256

struct al_cache_stats {
    uint64_t hits;
    uint64_t misses;
    uint64_t puts;      /* that were stored */
    uint64_t evictions; /* by size or age */
    uint64_t entries;
    uint64_t bytes;
    uint64_t max_bytes;
    uint64_t faults;                    /* so far; log `trouble` when it has grown */
    bool working;                       /* the latest attempt to use the file succeeded */
    char trouble[AL_CACHE_TROUBLE_MAX]; /* the latest fault; stays when it is over; "" */
};

void al_cache_stats(struct al_cache *c, struct al_cache_stats *ret);

/* May the result be stored at all? It succeeded, nothing was truncated, no artifact cut or omitted,
 * there was no network, and all stdin was known before. Pure. */
bool al_cache_may_store(const struct al_job_spec *spec, const struct al_result *result);
