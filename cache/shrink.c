#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/audit.h"
#include "cache/state.h"

#define SAMPLE          16  /* entries looked at for each choice */
#define EVICT_OF_SAMPLE 4   /* of these at most so many go, unless they are too old */
#define ROUNDS_MAX      512 /* bounds one transaction: some 2,000 entries, a few ms */

struct candidate {
    uint8_t key[AL_CACHE_KEY_LEN];
    bool dead; /* too old, or no record of ours */
    uint64_t used;
    int64_t stored_wall_ns;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    if (x->dead != y->dead) {
        return x->dead ? -1 : 1;
    }
    if (x->used != y->used) {
        return x->used < y->used ? -1 : 1;
    }
    return (x->stored_wall_ns > y->stored_wall_ns) - (x->stored_wall_ns < y->stored_wall_ns);
}

static void judge(const struct al_cache *c, const MDB_val *key, const MDB_val *value,
                  int64_t now_ns, struct candidate *ret)
{
    memcpy(ret->key, key->mv_data, sizeof ret->key);
    ret->used = al_cache_recency_of(&c->recency, ret->key);
    ret->dead = !al_cache_record_peek(value->mv_data, value->mv_size, &ret->stored_wall_ns) ||
                (c->limits.max_age_ms > 0 && ret->stored_wall_ns < now_ns &&
                 (now_ns - ret->stored_wall_ns) / 1000000 > c->limits.max_age_ms);
}

/* The smallest key above the given one. */
static void step_over(uint8_t key[AL_CACHE_KEY_LEN])
{
    for (size_t i = AL_CACHE_KEY_LEN; i-- > 0;) {
        if (++key[i] != 0) {
            return;
        }
    }
}

static int next_entry(MDB_cursor *cursor, MDB_val *key, MDB_val *value)
{
    int rc;
    do {
        rc = mdb_cursor_get(cursor, key, value, MDB_NEXT);
        rc = rc == MDB_NOTFOUND ? mdb_cursor_get(cursor, key, value, MDB_FIRST) : rc;
    } while (rc == 0 && key->mv_size != AL_CACHE_KEY_LEN);
    return rc;
}

static int first_entry(MDB_cursor *cursor, const uint8_t *hand, MDB_val *key, MDB_val *value)
{
    *key = (MDB_val){AL_CACHE_KEY_LEN, (void *)hand};
    int rc = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
    rc = rc == MDB_NOTFOUND ? mdb_cursor_get(cursor, key, value, MDB_FIRST) : rc;
    return rc == 0 && key->mv_size != AL_CACHE_KEY_LEN ? next_entry(cursor, key, value) : rc;
}

static int take_sample(struct al_cache *c, MDB_txn *txn, size_t most, struct candidate *ret,
                       size_t *ret_n)
{
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val value;
    int64_t now_ns = c->clock.wall_ns(c->clock.arg);
    size_t n = 0;
    int rc = mdb_cursor_open(txn, c->store.dbi, &cursor);
    if (rc != 0) {
        return rc;
    }
    rc = first_entry(cursor, c->hand, &key, &value);
    while (rc == 0) {
        judge(c, &key, &value, now_ns, &ret[n++]);
        if (n == most) {
            break;
        }
        rc = next_entry(cursor, &key, &value);
    }
    mdb_cursor_close(cursor);
    if (rc == 0) {
        memcpy(c->hand, ret[n - 1].key, sizeof c->hand);
        step_over(c->hand);
        *ret_n = n;
    }
    return rc;
}

int al_cache_shrink_delete(struct al_cache *c, MDB_txn *txn, const uint8_t *key,
                           struct al_cache_change *change)
{
    MDB_val name = {AL_CACHE_KEY_LEN, (void *)key};
    MDB_val old;
    int rc = mdb_get(txn, c->store.dbi, &name, &old);
    if (rc != 0) {
        return rc == MDB_NOTFOUND ? 0 : rc;
    }
    uint64_t bytes = al_cache_audit_footprint(c->store.page_bytes, AL_CACHE_KEY_LEN, old.mv_size);
    rc = mdb_del(txn, c->store.dbi, &name, NULL);
    if (rc == 0) {
        change->entries--;
        change->bytes -= (int64_t)bytes;
    }
    return rc;
}

static bool is_over(const struct al_cache *c, const struct al_cache_change *change, uint64_t bytes)
{
    int64_t have = (int64_t)atomic_load(&c->bytes) + change->bytes;
    return have > 0 && (uint64_t)have + bytes > c->limits.max_bytes;
}

static int shrink_round(struct al_cache *c, MDB_txn *txn, uint64_t bytes,
                        struct al_cache_change *change)
{
    struct candidate sample[SAMPLE];
    size_t n = 0;
    uint64_t left = atomic_load(&c->entries) + (uint64_t)change->entries;
    if (left == 0) {
        return 0;
    }
    int rc = take_sample(c, txn, left < SAMPLE ? (size_t)left : SAMPLE, sample, &n);
    if (rc != 0) {
        return rc;
    }
    qsort(sample, n, sizeof sample[0], compare_candidates);
    size_t evicted = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (!sample[i].dead && (evicted == EVICT_OF_SAMPLE || !is_over(c, change, bytes))) {
            break;
        }
        evicted += !sample[i].dead;
        change->evictions++;
        rc = al_cache_shrink_delete(c, txn, sample[i].key, change);
    }
    return rc;
}

int al_cache_shrink_for(struct al_cache *c, MDB_txn *txn, uint64_t bytes,
                        struct al_cache_change *change)
{
    int rc = 0;
    int rounds = 0;
    do {
        rc = shrink_round(c, txn, bytes, change);
    } while (rc == 0 && is_over(c, change, bytes) && ++rounds < ROUNDS_MAX);
    return rc == 0 && is_over(c, change, bytes) ? ENOBUFS : rc;
}
