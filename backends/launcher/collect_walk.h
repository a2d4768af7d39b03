/*
 * Finds the files that a job's globs name, in a tree that a hostile program has left and nobody
 * changes any more. Memory is bounded by what is returned, and time by the number of entries looked
 * at; no link is followed and no other file system entered.
 */
#pragma once

#include "backends/launcher/glob.h"

/* Entries looked at in all, over all folders that globs lead into. */
#define AL_COLLECT_ENTRIES_MAX (1u << 18)

struct al_found {
    char *paths[AL_ARTIFACTS_MAX]; /* sorted bytewise, owned: the first of all that match */
    size_t n;
    /* What matched otherwise: beyond that number, with a path that is not valid, not a regular
     * file; and one for each folder that could not be entered, read to its end, or was too deep. */
    uint32_t omitted;
};

/* `dir` is borrowed. -ENOMEM; finish `ret` in any case. */
int al_collect_walk(int dir, const struct al_glob *globs, size_t n_globs, struct al_found *ret);
void al_found_finish(struct al_found *found);

/* Something matched that is not returned. */
void al_found_omit(struct al_found *found);

/* What is below `dir`, without links on the way, as `flags` say. The fd, or -1 and errno. */
int al_collect_open(int dir, const char *path, int flags);
