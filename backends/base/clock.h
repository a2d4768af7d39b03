/* Durations are CLOCK_MONOTONIC; wall-clock time is only for time stamps shown to people. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t al_timespec_ns(const struct timespec *ts)
{
    return (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec;
}

static inline int64_t al_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return al_timespec_ns(&ts);
}

static inline int64_t al_now_ms(void)
{
    return al_now_ns() / 1000000;
}

/* Nanoseconds since 1970, UTC. */
static inline int64_t al_wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return al_timespec_ns(&ts);
}
