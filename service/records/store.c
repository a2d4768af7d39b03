#include "service/records/store.h"

#include <errno.h>
#include <string.h>

#include "service/records/store_internal.h"

int store_errno(int rc)
{
    switch (rc) {
    case MDB_NOTFOUND:
        return -ENOENT;
    case MDB_MAP_FULL:
        return -ENOSPC;
    case MDB_READERS_FULL:
        return -EAGAIN;
    case MDB_PANIC:
    case MDB_BAD_TXN:
    case MDB_BAD_RSLOT:
    case MDB_MAP_RESIZED:
        return -ENOTRECOVERABLE;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_CURSOR_FULL:
    case MDB_PAGE_FULL:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
        return -EUCLEAN;
    default:
        return rc > 0 ? -rc : -EIO;
    }
}

int store_fail(struct al_err *err, int rc, const char *what)
{
    (void)al_err_set(err, AL_ERR_INTERNAL, "%s: %s", what, mdb_strerror(rc));
    return store_errno(rc);
}

void al_store_figures(const struct al_store *store, struct al_store_figures *ret)
{
    *ret = (struct al_store_figures){
        .count = store->count,
        .bytes = store->bytes,
        .corrupt = store->corrupt,
        .expired = store->expired,
    };
}

/* --- writing --- */

struct use {
    uint64_t count;
    uint64_t bytes;
};

static int measure(struct al_store *store, MDB_txn *txn, struct use *ret)
{
    *ret = (struct use){0};
    for (int i = 0; i < STORE_TREES; i++) {
        MDB_stat stat;
        int rc = mdb_stat(txn, store->trees[i], &stat);
        if (rc != 0) {
            return rc;
        }
        ret->bytes += (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) *
                      (uint64_t)stat.ms_psize;
        ret->count = i == STORE_JOBS ? stat.ms_entries : ret->count;
    }
    return 0;
}

int store_commit(struct al_store *store, MDB_txn *txn)
{
    struct use use;
    int rc = measure(store, txn, &use);
    if (rc != 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    rc = mdb_txn_commit(txn);
    if (rc == 0) {
        store->count = use.count;
        store->bytes = use.bytes;
    }
    al_file_map_give_back(&store->map); /* a batch touches many pages */
    return rc;
}

static int find_oldest(struct al_store *store, MDB_txn *txn, struct al_record_at *ret)
{
    MDB_cursor *cursor;
    MDB_val key;
    int rc = mdb_cursor_open(txn, store->trees[STORE_JOBS], &cursor);
    if (rc != 0) {
        return rc;
    }
    rc = mdb_cursor_get(cursor, &key, NULL, MDB_FIRST);
    if (rc == 0 && key.mv_size != AL_RECORD_AT_LEN) {
        rc = MDB_CORRUPTED;
    }
    if (rc == 0) {
        al_record_decode_at(key.mv_data, ret);
    }
    mdb_cursor_close(cursor);
    return rc;
}

/* One whose reference is gone or another's leaves keys in the index, which lead nowhere. */
static int delete_at(struct al_store *store, MDB_txn *txn, const struct al_record_at *at)
{
    struct al_record record;
    uint8_t key[AL_RECORD_AT_LEN];
    int rc = store_find(store, txn, at->id, &record);
    if (rc == 0 && al_record_compare(at, &record.at) == 0) {
        return store_delete(store, txn, &record);
    }
    if (rc != 0 && rc != MDB_NOTFOUND) {
        return rc;
    }
    al_record_encode_at(at, key);
    return mdb_del(txn, store->trees[STORE_JOBS], &(MDB_val){sizeof key, key}, NULL);
}

struct trim {
    const struct al_records_limits *limits; /* NULL: whatever is oldest */
    uint64_t oldest_ns;
    size_t steps;
    size_t deleted;
    bool more;
};

static bool is_beyond(const struct trim *trim, const struct use *use, const struct al_record_at *at)
{
    return !trim->limits || at->created_ns < trim->oldest_ns ||
           use->count > trim->limits->max_count || use->bytes > trim->limits->max_bytes;
}

static int trim_oldest(struct al_store *store, MDB_txn *txn, struct trim *trim)
{
    for (;;) {
        struct use use;
        struct al_record_at at;
        int rc = measure(store, txn, &use);
        if (rc == 0) {
            rc = find_oldest(store, txn, &at);
        }
        if (rc != 0) {
            return rc == MDB_NOTFOUND ? 0 : rc;
        }
        if (!is_beyond(trim, &use, &at)) {
            return 0;
        }
        if (trim->deleted == trim->steps) {
            trim->more = true;
            return 0;
        }
        rc = delete_at(store, txn, &at);
        if (rc != 0) {
            return rc;
        }
        trim->deleted++;
    }
}

static int write_all(struct al_store *store, const struct al_entry *entries, struct trim *trim)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (rc != 0) {
        return rc;
    }
    for (const struct al_entry *entry = entries; rc == 0 && entry; entry = entry->next) {
        rc = store_put(store, txn, &entry->record);
        trim->steps += 2;
    }
    if (rc == 0) {
        rc = trim_oldest(store, txn, trim);
    }
    if (rc != 0 || (!entries && trim->deleted == 0)) {
        mdb_txn_abort(txn);
        return rc;
    }
    rc = store_commit(store, txn);
    if (rc == 0) {
        store->expired += trim->deleted;
    }
    return rc;
}

int al_store_write(struct al_store *store, const struct al_entry *entries,
                   const struct al_records_limits *limits, int64_t now_wall_ns, bool *ret_more,
                   struct al_err *err)
{
    int64_t now_ms = now_wall_ns / 1000000;
    int64_t oldest_ms = limits->max_age_ms < now_ms ? now_ms - limits->max_age_ms : 0;
    struct trim trim = {
        .limits = limits,
        .oldest_ns = (uint64_t)oldest_ms * 1000000,
        .steps = AL_STORE_STEP,
    };
    int rc = write_all(store, entries, &trim);
    if (rc == MDB_MAP_FULL) {
        struct trim room = {.steps = AL_STORE_STEP};
        (void)write_all(store, NULL, &room);
    }
    if (rc != 0) {
        return store_fail(err, rc, "cannot write records");
    }
    *ret_more = trim.more;
    return 0;
}

/* --- reading --- */

/* Whatever it is that ails the store, it is for the writer to know. */
static int read_errno(int rc)
{
    int r = store_errno(rc);
    return r == -ENOENT || r == -EAGAIN || r == -ENOMEM ? r : -EIO;
}

int al_store_get(struct al_store *store, const char *tenant, uint64_t id, struct al_buf *ret_job)
{
    MDB_txn *txn;
    struct al_record record;
    size_t len = strlen(tenant);
    int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn);
    if (rc != 0) {
        return read_errno(rc);
    }
    rc = store_find(store, txn, id, &record);
    if (rc == 0 && (record.tenant_len != len || memcmp(record.tenant, tenant, len) != 0)) {
        rc = MDB_NOTFOUND;
    }
    if (rc == 0) {
        struct al_record_at at = record.at;
        rc = store_read(store, txn, &at, &record);
    }
    int r = rc == 0 ? al_buf_append(ret_job, record.job, record.job_len) : read_errno(rc);
    mdb_txn_abort(txn);
    al_file_map_use(&store->map);
    return r;
}

struct scan {
    struct al_store *store;
    MDB_txn *txn;
    MDB_cursor *cursor;
    const char *tenant;
    size_t tenant_len;
    int status;
    struct al_record_at at;
    uint32_t left; /* corrupt ones that may be skipped */
    bool (*visit)(void *arg, const struct al_record *record);
    void *arg;
};

static bool is_listed(const struct scan *scan, const struct al_record *record)
{
    return record->tenant_len == scan->tenant_len &&
           memcmp(record->tenant, scan->tenant, scan->tenant_len) == 0 &&
           (scan->status == 0 || record->status == scan->status);
}

static int walk_index(struct scan *scan, bool *ret_stopped)
{
    for (;;) {
        struct al_record record;
        int rc = store_previous(scan->cursor, scan->status, scan->tenant, scan->tenant_len,
                                &scan->at, &scan->at);
        if (rc != 0) {
            return rc == MDB_NOTFOUND ? 0 : rc;
        }
        rc = store_read(scan->store, scan->txn, &scan->at, &record);
        if (rc != 0 && rc != MDB_NOTFOUND) {
            return rc;
        }
        if (rc == 0 && is_listed(scan, &record)) {
            if (!scan->visit(scan->arg, &record)) {
                return 0;
            }
        } else if (scan->left-- == 0) {
            *ret_stopped = true;
            return 0;
        }
    }
}

int al_store_scan(struct al_store *store, const char *tenant, int status,
                  const struct al_record_at *before, uint32_t n,
                  bool (*visit)(void *arg, const struct al_record *record), void *arg,
                  struct al_record_at *ret_stopped_at)
{
    struct scan scan = {
        .store = store,
        .tenant = tenant,
        .tenant_len = strlen(tenant),
        .status = status,
        .at = before ? *before : (struct al_record_at){UINT64_MAX, UINT64_MAX},
        .left = n,
        .visit = visit,
        .arg = arg,
    };
    bool stopped = false;
    int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &scan.txn);
    if (rc != 0) {
        return read_errno(rc);
    }
    rc = mdb_cursor_open(scan.txn, store->trees[STORE_INDEX], &scan.cursor);
    if (rc == 0) {
        rc = walk_index(&scan, &stopped);
        mdb_cursor_close(scan.cursor);
    }
    mdb_txn_abort(scan.txn);
    al_file_map_use(&store->map);
    if (rc != 0) {
        return read_errno(rc);
    }
    if (stopped) {
        *ret_stopped_at = scan.at;
    }
    return stopped;
}
