/*
 * The cache's LMDB environment and its life: opened after an audit, grown, closed, begun anew.
 *
 * Threads: al_cache_store_read from any; everything else only by the one that holds the cache's
 * writer lock. `in_use` is held for reading during a read transaction, and for writing while the
 * environment appears, goes or gets another map, which LMDB allows only when no transaction runs.
 * A reader never waits for it.
 *
 * Durability: MDB_NOSYNC without MDB_WRITEMAP. A commit is a few pwrite calls, the meta page last,
 * and none of them waits for the disk. After kill -9 the kernel holds them all: nothing is lost.
 * After a power loss any of those pages may be old, and the file inconsistent; the audit finds that
 * before LMDB reads it, and each record's checksum covers what the audit does not read.
 * MDB_NOMETASYNC would cost an fdatasync a put and only save entries that can be computed again. A
 * writable map would turn a full disk into SIGBUS, and any stray write of this process into a
 * damaged file.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <lmdb.h>

#include "backends/base/file_map.h"
#include "cache/record.h"

/* Raised with a change that older records cannot live beside; such a file is set aside. */
#define AL_CACHE_STORE_FORMAT 2

struct al_cache_store {
    char *dir;
    uint64_t map_max;
    pthread_rwlock_t in_use;
    MDB_env *env; /* NULL: not open */
    MDB_dbi dbi;
    uint32_t page_bytes;
    struct al_file_map map;      /* under `in_use`, as the environment's map is */
    _Atomic uint64_t file_bytes; /* of the file after the latest commit: it is never less */
};

struct al_cache_store_opened {
    uint64_t entries;
    uint64_t bytes;    /* sum of the footprints */
    char trouble[256]; /* why it is not open, or that a file was set aside; "" */
};

/* 0 or -errno. Opens nothing. */
int al_cache_store_init(struct al_cache_store *s, const char *dir, uint64_t map_max);
void al_cache_store_finish(struct al_cache_store *s); /* closed before */

/* The store is closed before. A file that is damaged, of another format, or in `distrust` is set
 * aside; one that is longer than map_max (of wider limits) is removed. 0 or an LMDB code. */
int al_cache_store_open(struct al_cache_store *s, bool distrust, struct al_cache_store_opened *ret);

/* Waits for readers and closes; flushes to disk first, which may take long. No effect when closed.
 */
void al_cache_store_close(struct al_cache_store *s, bool flush);

/* Doubles the map, up to map_max. 0, or MDB_MAP_FULL when it is there already. */
int al_cache_store_grow(struct al_cache_store *s);

/* The file was truncated or removed by somebody: LMDB would read behind its end, which is a SIGBUS.
 * The store is open and stays so. */
bool al_cache_store_is_cut(const struct al_cache_store *s);

/* Called after each commit. */
void al_cache_store_committed(struct al_cache_store *s);

/* A copy of the record, to be freed by the caller. MDB_NOTFOUND, EBUSY (not open or just being
 * changed), MDB_CORRUPTED when the file is cut, or another LMDB code. */
int al_cache_store_read(struct al_cache_store *s, const uint8_t key[AL_CACHE_RECORD_KEY_LEN],
                        uint8_t **ret_data, size_t *ret_len);
