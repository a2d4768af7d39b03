/* What becomes of the cache's file when something goes wrong with it. Except for the first, the
 * caller holds the cache's writer lock. */
#pragma once

#include "cache/state.h"

/* A read gave this LMDB code, MDB_NOTFOUND and EBUSY among them. Any thread. */
void al_cache_upkeep_reading_failed(struct al_cache *c, int rc);

/* Opens the file, which is closed. True: it can be used. */
bool al_cache_upkeep_open(struct al_cache *c);

/* Is writing worth an attempt now? Opens the file if that is due. */
bool al_cache_upkeep_ready(struct al_cache *c);

/* A write gave this LMDB code, not 0: closes, begins anew or rests, as it demands. */
void al_cache_upkeep_writing_failed(struct al_cache *c, int rc);

/* Closes, removes the file and begins a new one. */
void al_cache_upkeep_begin_anew(struct al_cache *c);
