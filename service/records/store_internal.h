/* Shared by the files of the store. */
#pragma once

#include <lmdb.h>
#include <stdatomic.h>

#include "backends/base/file_map.h"
#include "service/records/store.h"

enum store_tree {
    STORE_ABOUT, /* "format" and "secret" */
    STORE_JOBS, /* position → record; so new ones are appended and old ones deleted at the front */
    STORE_IDS,  /* id → reference */
    STORE_INDEX, /* status, tenant, position → nothing; each record under 0 and under its status */
    STORE_TREES,
};

struct al_store {
    MDB_env *env;
    struct al_file_map map;
    MDB_dbi trees[STORE_TREES];
    uint8_t secret[AL_RECORD_SECRET_LEN];
    atomic_uint_fast64_t count, bytes, corrupt, expired;
};

/* What LMDB returned, as errno. */
int store_errno(int rc);

/* Says what was tried. Returns store_errno(rc). */
int store_fail(struct al_err *err, int rc, const char *what);

/* --- inside a transaction; these return what LMDB does --- */

int store_put(struct al_store *store, MDB_txn *txn, const struct al_record *record);
/* MDB_NOTFOUND is no error: the record is gone then. */
int store_delete(struct al_store *store, MDB_txn *txn, const struct al_record *record);
/* Everything but the job. The result points into the map. A damaged reference is MDB_NOTFOUND. */
int store_find(struct al_store *store, MDB_txn *txn, uint64_t id, struct al_record *ret);
/* Into the map. MDB_NOTFOUND when it is not there or corrupt, which is counted. */
int store_read(struct al_store *store, MDB_txn *txn, const struct al_record_at *at,
               struct al_record *ret);
/* The newest position under status and tenant that is older than `before`, with a cursor over the
 * index, which is moved to it. MDB_NOTFOUND: none. `ret` may be `before`. */
int store_previous(MDB_cursor *cursor, int status, const char *tenant, size_t tenant_len,
                   const struct al_record_at *before, struct al_record_at *ret);
/* Commits and takes the figures. */
int store_commit(struct al_store *store, MDB_txn *txn);

/* Jobs that have not ended become interrupted. */
int store_interrupt(struct al_store *store, int64_t now_wall_ns, struct al_err *err);
