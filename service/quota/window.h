/*
 * What was used within the last 60 s, as slices that each leave AL_QUOTA_WINDOW_MS after their last
 * charge. A slice takes the charges of less than AL_QUOTA_MERGE_MS. Not thread-safe; times never go
 * back. All zero: an empty window. It must not be moved.
 */
#pragma once

#include <stdint.h>

#define AL_WINDOW_OWN_SLICES 2

struct al_window_slice {
    int64_t last_ms; /* when it was last charged */
    int64_t us;
};

struct al_window {
    int64_t sum_us;
    int64_t first_ms; /* when the newest slice was begun */
    uint32_t oldest;
    uint32_t n;
    uint32_t cap;                 /* of `slices`; a power of two */
    struct al_window_slice *ring; /* NULL: `own` */
    struct al_window_slice own[AL_WINDOW_OWN_SLICES];
};

void al_window_finish(struct al_window *window);

/* Drops what has left. To be called before the sum is looked at. */
void al_window_expire(struct al_window *window, int64_t now_ms);

/* Adds us > 0. When memory is out the newest slice takes it, whatever its age. */
void al_window_add(struct al_window *window, int64_t us, int64_t now_ms);

/* When the sum falls to target_us >= 0 or below it, if nothing is added: an absolute time. */
int64_t al_window_falls_to_ms(const struct al_window *window, int64_t target_us, int64_t now_ms);
