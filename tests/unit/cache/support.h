/* A folder, a clock and results for the cache's tests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cache/cache.h"
#include "cache/clock.h"

#define SUPPORT_MIB (UINT64_C(1) << 20)

struct support {
    char root[448]; /* made for the test, removed with it */
    char dir[512];  /* the cache's, below it */
    struct al_cache_limits limits;
    struct al_cache *cache; /* NULL: closed */
    int64_t now_ns;         /* what the cache takes for the wall clock */
};

/* cmocka fixtures: *state becomes a struct support whose cache is closed. */
int support_setup(void **state);
int support_teardown(void **state);

void support_open(struct support *s);
void support_close(struct support *s);

/* The key of a number: a hash, as real keys are. */
void support_key(uint64_t number, uint8_t ret[AL_CACHE_KEY_LEN]);

/* Stores what belongs to the number and a version: `size` bytes of stdout that only they have. */
bool support_put(struct support *s, uint64_t number, uint32_t version, size_t size);

struct support_found {
    uint32_t version;
    size_t size;
};

/* True: a hit; fails the test when anything in it is not what support_put stored for the number. */
bool support_get(struct support *s, uint64_t number, struct support_found *ret);
bool support_has(struct support *s, uint64_t number);

struct al_cache_stats support_stats(struct support *s);

/* dir/NAME */
void support_path(const struct support *s, const char *name, char *ret, size_t size);

/* How many files in dir begin with "data.mdb." */
int support_count_set_aside(const struct support *s);
