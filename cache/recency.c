#include "cache/recency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAYS      4
#define SLOTS_MIN (UINT64_C(1) << 10)
#define SLOTS_MAX (UINT64_C(1) << 20)

/* A slot: the tick above, the tag below. 2^40 ticks last two weeks at a million uses a second; the
 * order is lost once then. */
#define TAG_BITS 24
#define TAG_MASK ((UINT64_C(1) << TAG_BITS) - 1)

int al_cache_recency_init(struct al_cache_recency *r, uint64_t keys)
{
    uint64_t slots = SLOTS_MIN;
    while (slots < keys && slots < SLOTS_MAX) {
        slots *= 2;
    }
    *r = (struct al_cache_recency){.slots = calloc(slots, sizeof *r->slots),
                                   .mask = slots / WAYS - 1};
    return r->slots ? 0 : -ENOMEM;
}

void al_cache_recency_finish(struct al_cache_recency *r)
{
    free(r->slots);
    r->slots = NULL;
}

static _Atomic uint64_t *find_bucket(const struct al_cache_recency *r, const uint8_t *key)
{
    uint64_t hash;
    memcpy(&hash, key, sizeof hash);
    return r->slots + (hash & r->mask) * WAYS;
}

static uint64_t make_tag(const uint8_t *key)
{
    uint64_t hash;
    memcpy(&hash, key + sizeof hash, sizeof hash);
    return hash & TAG_MASK;
}

static uint64_t load(const _Atomic uint64_t *slot)
{
    return atomic_load_explicit(slot, memory_order_relaxed);
}

/* The key's own slot, or else the one that was used the longest ago. */
static _Atomic uint64_t *choose_slot(_Atomic uint64_t *bucket, uint64_t tag)
{
    _Atomic uint64_t *oldest = bucket;
    for (_Atomic uint64_t *slot = bucket; slot < bucket + WAYS; slot++) {
        if (load(slot) != 0 && (load(slot) & TAG_MASK) == tag) {
            return slot;
        }
        if (load(slot) < load(oldest)) {
            oldest = slot;
        }
    }
    return oldest;
}

void al_cache_recency_touch(struct al_cache_recency *r, const uint8_t *key)
{
    uint64_t tag = make_tag(key);
    uint64_t tick = atomic_fetch_add_explicit(&r->now, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(choose_slot(find_bucket(r, key), tag), tick << TAG_BITS | tag,
                          memory_order_relaxed);
}

uint64_t al_cache_recency_of(const struct al_cache_recency *r, const uint8_t *key)
{
    const _Atomic uint64_t *bucket = find_bucket(r, key);
    uint64_t tag = make_tag(key);
    uint64_t latest = 0;
    for (size_t i = 0; i < WAYS; i++) {
        uint64_t slot = load(&bucket[i]);
        if ((slot & TAG_MASK) == tag && slot >> TAG_BITS > latest) {
            latest = slot >> TAG_BITS;
        }
    }
    return latest;
}
