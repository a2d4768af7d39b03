#include "service/quota/window.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "service/quota/quota.h"

/* Slices begin AL_QUOTA_MERGE_MS apart, and the oldest that counts began less than the window and
 * one such interval ago. */
#define SLICES_MAX 128
_Static_assert(AL_QUOTA_WINDOW_MS / AL_QUOTA_MERGE_MS + 2 <= SLICES_MAX, "the ring is too small");

static uint32_t capacity(const struct al_window *window)
{
    return window->ring ? window->cap : AL_WINDOW_OWN_SLICES;
}

static const struct al_window_slice *slice_at(const struct al_window *window, uint32_t i)
{
    const struct al_window_slice *slices = window->ring ? window->ring : window->own;
    return &slices[(window->oldest + i) & (capacity(window) - 1)];
}

static struct al_window_slice *slot_at(struct al_window *window, uint32_t i)
{
    return (struct al_window_slice *)slice_at(window, i);
}

void al_window_finish(struct al_window *window)
{
    free(window->ring);
    *window = (struct al_window){0};
}

void al_window_expire(struct al_window *window, int64_t now_ms)
{
    while (window->n > 0) {
        const struct al_window_slice *oldest = slice_at(window, 0);
        if (oldest->last_ms + AL_QUOTA_WINDOW_MS > now_ms) {
            break;
        }
        window->sum_us -= oldest->us;
        window->oldest++;
        window->n--;
    }
}

/* Room for one slice more; false when memory is out. */
static bool make_room(struct al_window *window)
{
    uint32_t cap = capacity(window);
    if (window->n < cap) {
        return true;
    }
    assert(cap > 0 && cap < SLICES_MAX);
    struct al_window_slice *ring = malloc(2 * cap * sizeof *ring);
    if (!ring) {
        return false;
    }
    for (uint32_t i = 0; i < window->n; i++) {
        ring[i] = *slice_at(window, i);
    }
    free(window->ring);
    window->ring = ring;
    window->cap = 2 * cap;
    window->oldest = 0;
    return true;
}

void al_window_add(struct al_window *window, int64_t us, int64_t now_ms)
{
    al_window_expire(window, now_ms);
    bool begun = window->n > 0 && now_ms - window->first_ms < AL_QUOTA_MERGE_MS;
    if (!begun && make_room(window)) {
        *slot_at(window, window->n++) = (struct al_window_slice){0};
        window->first_ms = now_ms;
    }
    struct al_window_slice *newest = slot_at(window, window->n - 1);
    newest->last_ms = now_ms;
    newest->us += us;
    window->sum_us += us;
}

int64_t al_window_falls_to_ms(const struct al_window *window, int64_t target_us, int64_t now_ms)
{
    int64_t sum_us = window->sum_us;
    int64_t at_ms = now_ms;
    for (uint32_t i = 0; i < window->n && sum_us > target_us; i++) {
        const struct al_window_slice *slice = slice_at(window, i);
        sum_us -= slice->us;
        at_ms = slice->last_ms + AL_QUOTA_WINDOW_MS;
    }
    return at_ms;
}
