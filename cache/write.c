#include <errno.h>
#include <stdlib.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "cache/audit.h"
#include "cache/state.h"
#include "cache/upkeep.h"

#define WAIT_MS 100 /* for another writer */

struct item {
    const uint8_t *key;
    uint8_t *data;
    size_t len;
    uint64_t footprint;
};

/* By the wall clock, against the rule: ThreadSanitizer does not know pthread_mutex_clocklock. A
 * step of that clock makes one put wait for its turn. */
static bool lock_writer(struct al_cache *c)
{
    int64_t until_ns = al_wall_ns() + WAIT_MS * 1000000;
    struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    return pthread_mutex_timedlock(&c->writer, &until) == 0;
}

/* 0, ENOBUFS (made some room, not enough), or an LMDB code. */
static int change_in(struct al_cache *c, MDB_txn *txn, const struct item *item,
                     struct al_cache_change *change)
{
    MDB_val key = {AL_CACHE_KEY_LEN, (void *)item->key};
    MDB_val value = {item->len, item->data};
    int rc = al_cache_shrink_delete(c, txn, item->key, change);
    rc = rc ? rc : al_cache_shrink_for(c, txn, item->footprint, change);
    rc = rc ? rc : mdb_put(txn, c->store.dbi, &key, &value, 0);
    if (rc == 0) {
        change->entries++;
        change->bytes += (int64_t)item->footprint;
    }
    return rc;
}

static void count(struct al_cache *c, const struct al_cache_change *change)
{
    atomic_fetch_add(&c->entries, (uint64_t)change->entries);
    atomic_fetch_add(&c->bytes, (uint64_t)change->bytes);
    atomic_fetch_add(&c->evictions, change->evictions);
}

static int write_once(struct al_cache *c, const struct item *item)
{
    struct al_cache_change change = {0};
    MDB_txn *txn;
    if (al_cache_store_is_cut(&c->store)) {
        return MDB_CORRUPTED;
    }
    int rc = mdb_txn_begin(c->store.env, NULL, 0, &txn);
    if (rc != 0) {
        return rc;
    }
    rc = change_in(c, txn, item, &change);
    if (rc != 0 && rc != ENOBUFS) {
        mdb_txn_abort(txn);
        return rc;
    }
    int committed = mdb_txn_commit(txn);
    if (committed != 0) {
        return committed;
    }
    al_cache_store_committed(&c->store);
    count(c, &change);
    return rc;
}

static bool write_item(struct al_cache *c, struct item *item)
{
    item->footprint = al_cache_audit_footprint(c->store.page_bytes, AL_CACHE_KEY_LEN, item->len);
    if (item->footprint > c->limits.max_bytes) {
        return false;
    }
    int rc = write_once(c, item);
    while ((rc == MDB_MAP_FULL || rc == MDB_MAP_RESIZED) && al_cache_store_grow(&c->store) == 0) {
        rc = write_once(c, item);
    }
    if (rc != 0 && rc != ENOBUFS) {
        al_cache_upkeep_writing_failed(c, rc);
        return false;
    }
    atomic_store(&c->working, true);
    return rc == 0;
}

static bool write_locked(struct al_cache *c, struct item *item)
{
    if (!lock_writer(c)) {
        return false;
    }
    bool stored = al_cache_upkeep_ready(c) && write_item(c, item);
    pthread_mutex_unlock(&c->writer);
    return stored;
}

bool al_cache_put(struct al_cache *c, const uint8_t key[AL_CACHE_KEY_LEN],
                  const struct al_result *result, const struct al_bytes out[2])
{
    size_t len = al_cache_record_size(result, out);
    if (len == 0 || len > c->limits.entry_max_bytes || result->status != AL_STATUS_SUCCEEDED ||
        result->stdout_truncated || result->stderr_truncated ||
        !al_artifacts_are_whole(&result->artifacts))
    {
        return false;
    }
    al_auto_free uint8_t *data = malloc(len);
    if (!data || al_cache_record_encode(key, result, out, c->clock.wall_ns(c->clock.arg), data) < 0)
    {
        return false;
    }
    struct item item = {.key = key, .data = data, .len = len};
    if (!write_locked(c, &item)) {
        return false;
    }
    al_cache_recency_touch(&c->recency, key);
    atomic_fetch_add_explicit(&c->puts, 1, memory_order_relaxed);
    return true;
}

void al_cache_clear(struct al_cache *c, uint64_t *ret_entries)
{
    pthread_mutex_lock(&c->writer);
    uint64_t entries = atomic_load(&c->entries);
    al_cache_upkeep_begin_anew(c);
    pthread_mutex_unlock(&c->writer);
    if (ret_entries) {
        *ret_entries = entries;
    }
}
