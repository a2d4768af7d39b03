/* What one record is in the trees. */
#include "service/records/store_internal.h"

#include <errno.h>
#include <string.h>

#include "backends/api/result.h"
#include "backends/base/cleanup.h"
#include "service/records/interrupt.h"

static int delete_key(MDB_txn *txn, MDB_dbi tree, void *key, size_t len)
{
    int rc = mdb_del(txn, tree, &(MDB_val){len, key}, NULL);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int put_index(struct al_store *store, MDB_txn *txn, int status,
                     const struct al_record *record)
{
    uint8_t key[AL_RECORD_INDEX_MAX];
    size_t len =
        al_record_encode_index(status, record->tenant, record->tenant_len, &record->at, key);
    return mdb_put(txn, store->trees[STORE_INDEX], &(MDB_val){len, key}, &(MDB_val){0, ""}, 0);
}

static int delete_index(struct al_store *store, MDB_txn *txn, int status,
                        const struct al_record *record)
{
    uint8_t key[AL_RECORD_INDEX_MAX];
    size_t len =
        al_record_encode_index(status, record->tenant, record->tenant_len, &record->at, key);
    return delete_key(txn, store->trees[STORE_INDEX], key, len);
}

int store_find(struct al_store *store, MDB_txn *txn, uint64_t id, struct al_record *ret)
{
    uint8_t key[AL_RECORD_ID_LEN];
    MDB_val ref;
    al_record_encode_id(id, key);
    int rc = mdb_get(txn, store->trees[STORE_IDS], &(MDB_val){sizeof key, key}, &ref);
    if (rc == 0 && al_record_decode_ref(id, ref.mv_data, ref.mv_size, ret) < 0) {
        store->corrupt++;
        return MDB_NOTFOUND;
    }
    return rc;
}

int store_read(struct al_store *store, MDB_txn *txn, const struct al_record_at *at,
               struct al_record *ret)
{
    uint8_t key[AL_RECORD_AT_LEN];
    MDB_val value;
    al_record_encode_at(at, key);
    int rc = mdb_get(txn, store->trees[STORE_JOBS], &(MDB_val){sizeof key, key}, &value);
    if (rc == MDB_NOTFOUND ||
        (rc == 0 && al_record_decode(at, value.mv_data, value.mv_size, ret) < 0)) {
        store->corrupt++;
        return MDB_NOTFOUND;
    }
    return rc;
}

/* LMDB's memory is good until the next change only. */
static void keep_tenant(struct al_record *record, char tenant[AL_RECORDS_TENANT_MAX])
{
    memcpy(tenant, record->tenant, record->tenant_len);
    record->tenant = tenant;
}

int store_delete(struct al_store *store, MDB_txn *txn, const struct al_record *record)
{
    struct al_record own = *record;
    char tenant[AL_RECORDS_TENANT_MAX];
    uint8_t id[AL_RECORD_ID_LEN];
    uint8_t at[AL_RECORD_AT_LEN];
    keep_tenant(&own, tenant);
    int rc = delete_index(store, txn, 0, &own);
    if (rc == 0) {
        rc = delete_index(store, txn, own.status, &own);
    }
    if (rc == 0) {
        al_record_encode_id(own.at.id, id);
        rc = delete_key(txn, store->trees[STORE_IDS], id, sizeof id);
    }
    if (rc == 0) {
        al_record_encode_at(&own.at, at);
        rc = delete_key(txn, store->trees[STORE_JOBS], at, sizeof at);
    }
    return rc;
}

static bool same_place(const struct al_record *a, const struct al_record *b)
{
    return al_record_compare(&a->at, &b->at) == 0 && a->tenant_len == b->tenant_len &&
           memcmp(a->tenant, b->tenant, a->tenant_len) == 0;
}

/* What the record replaces must not be found any more. */
static int clear_old(struct al_store *store, MDB_txn *txn, const struct al_record *record)
{
    struct al_record old;
    int rc = store_find(store, txn, record->at.id, &old);
    if (rc != 0) {
        return rc == MDB_NOTFOUND ? 0 : rc;
    }
    if (!same_place(&old, record)) {
        return store_delete(store, txn, &old);
    }
    return old.status == record->status ? 0 : delete_index(store, txn, old.status, record);
}

/* Most are the newest of all, and appending fills pages to their end. */
static int reserve(struct al_store *store, MDB_txn *txn, const struct al_record *record,
                   MDB_val *value)
{
    uint8_t bytes[AL_RECORD_AT_LEN];
    MDB_val key = {sizeof bytes, bytes};
    value->mv_size = al_record_encoded_len(record);
    al_record_encode_at(&record->at, bytes);
    int rc = mdb_put(txn, store->trees[STORE_JOBS], &key, value, MDB_RESERVE | MDB_APPEND);
    return rc == MDB_KEYEXIST ? mdb_put(txn, store->trees[STORE_JOBS], &key, value, MDB_RESERVE)
                              : rc;
}

static int put_ref(struct al_store *store, MDB_txn *txn, const struct al_record *record)
{
    uint8_t key[AL_RECORD_ID_LEN];
    uint8_t ref[AL_RECORD_REF_MAX];
    size_t len = al_record_encode_ref(record, ref);
    al_record_encode_id(record->at.id, key);
    return mdb_put(txn, store->trees[STORE_IDS], &(MDB_val){sizeof key, key}, &(MDB_val){len, ref},
                   0);
}

int store_put(struct al_store *store, MDB_txn *txn, const struct al_record *record)
{
    MDB_val value;
    int rc = clear_old(store, txn, record);
    if (rc == 0) {
        rc = reserve(store, txn, record, &value);
    }
    if (rc == 0) {
        al_record_encode(record, value.mv_data);
        rc = put_index(store, txn, 0, record);
    }
    if (rc == 0) {
        rc = put_index(store, txn, record->status, record);
    }
    return rc == 0 ? put_ref(store, txn, record) : rc;
}

int store_previous(MDB_cursor *cursor, int status, const char *tenant, size_t tenant_len,
                   const struct al_record_at *before, struct al_record_at *ret)
{
    uint8_t bytes[AL_RECORD_INDEX_MAX];
    size_t len = al_record_encode_index(status, tenant, tenant_len, before, bytes);
    MDB_val key = {len, bytes};
    int rc = mdb_cursor_get(cursor, &key, NULL, MDB_SET_RANGE);
    if (rc == 0 || rc == MDB_NOTFOUND) { /* the first that is not older, or none */
        rc = mdb_cursor_get(cursor, &key, NULL, rc == 0 ? MDB_PREV : MDB_LAST);
    }
    if (rc == 0 && (key.mv_size != len || memcmp(key.mv_data, bytes, len - AL_RECORD_AT_LEN) != 0))
    {
        return MDB_NOTFOUND;
    }
    if (rc == 0) {
        struct al_record_at at;
        al_record_decode_at((const uint8_t *)key.mv_data + len - AL_RECORD_AT_LEN, &at);
        if (al_record_compare(&at, before) >= 0) { /* damaged; who went on from it would go round */
            return MDB_NOTFOUND;
        }
        *ret = at;
    }
    return rc;
}

/* --- jobs that have not ended --- */

/* The first one of the status, of any tenant. */
static int find_first(struct al_store *store, MDB_txn *txn, int status,
                      uint8_t ret_key[AL_RECORD_INDEX_MAX], size_t *ret_len)
{
    MDB_cursor *cursor;
    uint8_t first = (uint8_t)status;
    MDB_val key = {sizeof first, &first};
    int rc = mdb_cursor_open(txn, store->trees[STORE_INDEX], &cursor);
    if (rc != 0) {
        return rc;
    }
    rc = mdb_cursor_get(cursor, &key, NULL, MDB_SET_RANGE);
    if (rc == 0 && *(uint8_t *)key.mv_data != status) {
        rc = MDB_NOTFOUND;
    }
    if (rc == 0) {
        *ret_len = key.mv_size < AL_RECORD_INDEX_MAX ? key.mv_size : AL_RECORD_INDEX_MAX;
        memcpy(ret_key, key.mv_data, *ret_len);
    }
    mdb_cursor_close(cursor);
    return rc;
}

static int interrupt_one(struct al_store *store, MDB_txn *txn, const struct al_record_at *at,
                         int64_t now_wall_ns)
{
    struct al_record record;
    char tenant[AL_RECORDS_TENANT_MAX];
    al_auto_free uint8_t *job = NULL;
    int rc = store_read(store, txn, at, &record);
    if (rc != 0) {
        return rc;
    }
    keep_tenant(&record, tenant);
    int r = al_interrupt_job(record.job, record.job_len, now_wall_ns, &job, &record.job_len);
    if (r == -ENOMEM) {
        return ENOMEM;
    }
    if (r < 0) {
        store->corrupt++;
        return store_delete(store, txn, &record);
    }
    record.job = job;
    record.status = AL_STATUS_FAILED;
    return store_put(store, txn, &record);
}

/* Whatever the key leads to, it is gone afterwards, so this ends. */
static int interrupt_all(struct al_store *store, MDB_txn *txn, int status, int64_t now_wall_ns)
{
    uint8_t key[AL_RECORD_INDEX_MAX];
    size_t len;
    int rc;
    while ((rc = find_first(store, txn, status, key, &len)) == 0) {
        if (len > AL_RECORD_AT_LEN) {
            struct al_record_at at;
            al_record_decode_at(key + len - AL_RECORD_AT_LEN, &at);
            rc = interrupt_one(store, txn, &at, now_wall_ns);
        }
        if (rc == 0 || rc == MDB_NOTFOUND) {
            rc = delete_key(txn, store->trees[STORE_INDEX], key, len);
        }
        if (rc != 0) {
            return rc;
        }
    }
    return rc == MDB_NOTFOUND ? 0 : rc;
}

int store_interrupt(struct al_store *store, int64_t now_wall_ns, struct al_err *err)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (rc == 0) {
        rc = interrupt_all(store, txn, AL_STATUS_PENDING, now_wall_ns);
        if (rc == 0) {
            rc = interrupt_all(store, txn, AL_STATUS_RUNNING, now_wall_ns);
        }
        if (rc == 0) {
            rc = store_commit(store, txn);
        } else {
            mdb_txn_abort(txn);
        }
    }
    return rc == 0 ? 0 : store_fail(err, rc, "cannot mark the jobs that were interrupted");
}
