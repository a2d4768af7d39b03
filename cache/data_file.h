/*
 * The cache's folder and the file in it that LMDB is given, looked after from outside: nothing here
 * needs LMDB. All return 0 or -errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/audit.h"

#define AL_DATA_FILE_NAME "data.mdb"
#define AL_LOCK_FILE_NAME "lock.mdb"

struct al_cache_data_file {
    bool fresh;        /* there is none, or an empty one */
    const char *wrong; /* what is wrong with it, a constant text; NULL: nothing */
    uint64_t bytes;    /* its length */
    struct al_cache_audit audit;
};

/* Makes the folder (not those above it), and gives the lock file its blocks: LMDB writes to that
 * through a map, where a full disk would be a SIGBUS. */
int al_cache_data_file_prepare(const char *dir);

int al_cache_data_file_check(const char *dir, struct al_cache_data_file *ret);

/* Renames it to data.mdb.TIME; `ret_name` is the new name. */
int al_cache_data_file_set_aside(const char *dir, char *ret_name, size_t size);

int al_cache_data_file_remove(const char *dir);
