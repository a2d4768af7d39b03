#include "cache/upkeep.h"

#include <errno.h>
#include <stdio.h>

#include "backends/base/clock.h"
#include "cache/data_file.h"

#define REST_MS 1000 /* between attempts while the disk or the file is out of order */

enum severity {
    PASSING, /* the disk's: the file is whole, a later attempt may succeed */
    FATAL,   /* the environment is of no use any more, the file may be whole */
    DAMAGED, /* the file is not */
};

static enum severity judge(int rc)
{
    switch (rc) {
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
        return DAMAGED;
    case MDB_PANIC:
    case MDB_VERSION_MISMATCH:
    case MDB_BAD_TXN:
    case MDB_BAD_DBI:
    case MDB_CURSOR_FULL:
    case MDB_PAGE_FULL:
    case MDB_INCOMPATIBLE:
    case MDB_BAD_RSLOT:
        return FATAL;
    default:
        return PASSING;
    }
}

static void note_code(struct al_cache *c, const char *what, int rc)
{
    char text[AL_CACHE_TROUBLE_MAX];
    snprintf(text, sizeof text, "%s: %s", what, mdb_strerror(rc));
    al_cache_note_fault(c, text);
}

static void rest(struct al_cache *c)
{
    atomic_store(&c->working, false);
    c->rest_until_ms = al_now_ms() + REST_MS;
}

void al_cache_upkeep_reading_failed(struct al_cache *c, int rc)
{
    if (rc == MDB_NOTFOUND || rc == EBUSY || rc == MDB_READERS_FULL) {
        return;
    }
    if (judge(rc) == PASSING) {
        note_code(c, "cannot read", rc);
    } else if (!atomic_exchange(&c->damaged, true)) {
        atomic_store(&c->working, false);
        note_code(c, "cannot read", rc);
    }
}

static void close_file(struct al_cache *c)
{
    al_cache_store_close(&c->store, false);
    atomic_store(&c->working, false);
    atomic_store(&c->entries, 0);
    atomic_store(&c->bytes, 0);
}

static bool remove_unwanted(struct al_cache *c)
{
    int r = c->unwanted ? al_cache_data_file_remove(c->store.dir) : 0;
    if (r < 0) {
        note_code(c, "cannot remove " AL_DATA_FILE_NAME, -r);
        return false;
    }
    c->unwanted = false;
    return true;
}

bool al_cache_upkeep_open(struct al_cache *c)
{
    struct al_cache_store_opened opened;
    if (!remove_unwanted(c)) {
        rest(c);
        return false;
    }
    bool distrust = atomic_load(&c->damaged);
    int rc = al_cache_store_open(&c->store, distrust, &opened);
    if (opened.trouble[0]) {
        al_cache_note_fault(c, opened.trouble);
    }
    if (rc != 0) {
        rest(c);
        return false;
    }
    atomic_store(&c->damaged, false);
    atomic_store(&c->entries, opened.entries);
    atomic_store(&c->bytes, opened.bytes);
    atomic_store(&c->working, true);
    return true;
}

bool al_cache_upkeep_ready(struct al_cache *c)
{
    if (c->store.env && !atomic_load(&c->damaged)) {
        return atomic_load(&c->working) || al_now_ms() >= c->rest_until_ms;
    }
    if (al_now_ms() < c->rest_until_ms) {
        return false;
    }
    close_file(c);
    return al_cache_upkeep_open(c);
}

void al_cache_upkeep_writing_failed(struct al_cache *c, int rc)
{
    note_code(c, "cannot write", rc);
    if (rc == MDB_MAP_FULL) {
        al_cache_upkeep_begin_anew(c);
        return;
    }
    enum severity severity = judge(rc);
    if (severity == DAMAGED) {
        atomic_store(&c->damaged, true);
    }
    if (severity != PASSING) {
        close_file(c);
    }
    rest(c);
}

void al_cache_upkeep_begin_anew(struct al_cache *c)
{
    close_file(c);
    c->unwanted = true;
    al_cache_upkeep_open(c);
}
