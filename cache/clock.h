/* For tests: a cache whose wall clock is the caller's. */
#pragma once

#include <stdint.h>

#include "cache/cache.h"

struct al_cache_clock {
    int64_t (*wall_ns)(void *arg); /* called from any thread */
    void *arg;
};

int al_cache_open_clock(const char *dir, const struct al_cache_limits *limits,
                        const struct al_cache_clock *clock, struct al_cache **ret,
                        struct al_err *err);
