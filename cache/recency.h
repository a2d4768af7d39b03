/*
 * When keys were last used, in a table of fixed size: it knows the most recently used ones, about
 * as many as it has room for. What it does not know was used longer ago, or never since the start.
 * A few keys in a million are taken for another one. Thread-safe without a lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct al_cache_recency {
    _Atomic uint64_t *slots; /* owned; in buckets of four; tick and tag of a key, or 0 */
    uint64_t mask;           /* of a bucket's number */
    _Atomic uint64_t now;
};

/* Room for `keys` keys, between 2^10 and 2^20, at 8 bytes each. 0 or -ENOMEM. */
int al_cache_recency_init(struct al_cache_recency *r, uint64_t keys);
void al_cache_recency_finish(struct al_cache_recency *r);

/* `key`: at least 16 bytes, evenly spread (a hash). */
void al_cache_recency_touch(struct al_cache_recency *r, const uint8_t *key);

/* Larger is later; 0: not known. */
uint64_t al_cache_recency_of(const struct al_cache_recency *r, const uint8_t *key);
