/*
 * The records on disk: one LMDB environment. One thread at a time writes, any number reads, and no
 * reader waits. The folder holds data.mdb, lock.mdb and what was set aside.
 *
 * Errors of writing are errno's with a sentence: -ENOSPC (disk or map), -EIO, -EACCES, -EROFS;
 * -ENOTRECOVERABLE: close the store and open it again; -EUCLEAN: and set it aside. Reading fails
 * with -EAGAIN (too many readers), -ENOMEM or -EIO.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/err.h"
#include "service/records/overlay.h"
#include "service/records/record.h"

struct al_store;

#define AL_STORE_NOTE_MAX 256

struct al_store_options {
    const char *dir;    /* made if it is missing */
    uint64_t max_bytes; /* as in al_records_limits */
    bool set_aside;     /* whatever is there */
    bool interrupt;     /* jobs that have not ended are another process's, which is gone */
};

/* `ret_note`, AL_STORE_NOTE_MAX bytes, tells of a file that was set aside; else untouched. On
 * failure too: what is set aside stays so. */
int al_store_open(const struct al_store_options *options, struct al_store **ret, char *ret_note,
                  struct al_err *err);

/* Flushes it. No reader is left. NULL is ignored. */
void al_store_close(struct al_store *store);

/* Kept with the records. */
const uint8_t *al_store_secret(const struct al_store *store);

struct al_store_figures {
    uint64_t count;
    uint64_t bytes;
    uint64_t corrupt; /* how often one was met, by anybody */
    uint64_t expired;
};
void al_store_figures(const struct al_store *store, struct al_store_figures *ret);

/*
 * One transaction: puts the entries, a list by `next`, then deletes records beyond the limits, in
 * proportion to the entries and AL_STORE_STEP at most besides. *ret_more: there are more of those.
 * All or nothing.
 */
#define AL_STORE_STEP 256
int al_store_write(struct al_store *store, const struct al_entry *entries,
                   const struct al_records_limits *limits, int64_t now_wall_ns, bool *ret_more,
                   struct al_err *err);

/* Appends the job. -ENOENT: none, corrupt, or another tenant's; -ENOBUFS, -ENOMEM: of the buffer.
 */
int al_store_get(struct al_store *store, const char *tenant, uint64_t id, struct al_buf *ret_job);

/*
 * Calls `visit` with records of the tenant and status (0: all), the newest first, that are older
 * than `before` (NULL: all), until it returns false. What it gets is good during the call. At most
 * `n` corrupt records are skipped: then *ret_stopped_at is the last of those and 1 is returned.
 */
int al_store_scan(struct al_store *store, const char *tenant, int status,
                  const struct al_record_at *before, uint32_t n,
                  bool (*visit)(void *arg, const struct al_record *record), void *arg,
                  struct al_record_at *ret_stopped_at);
