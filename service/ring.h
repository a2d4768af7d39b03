/*
 * The bounded queue of a job's events, between the one thread that runs the job and the one reader.
 *
 * Its bound counts memory, not payload: each event's own size and the capacity of its buffer. What
 * a reader has taken goes on counting until the reader says that it is done with it, so that the
 * bound holds for everything that is on its way. Nothing is allocated before it is needed.
 *
 * Bytes that nobody has read yet are added to the event that waits already, if that keeps their
 * order: in an ordered ring only behind the last event, else behind the last one of their channel.
 *
 * A ring may keep the last events that its reader is done with, in memory of their own, so that
 * another reader can go on where the first one stopped. Such a ring holds one run of events without
 * gaps: those that are kept, the one on its way, those that wait. It gives readers references to
 * them. A ring that keeps nothing gives the events away and pays for none of this.
 *
 * Not thread-safe: guarded by the lock of the job that it belongs to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/sink.h"
#include "service/event.h"

/* PENDING, RUNNING, a terminal status, and the end. */
#define AL_RING_STATUSES_MAX 4

enum al_ring_order {
    AL_RING_ORDERED,    /* Stream: the reader sees the order in which the channels were read */
    AL_RING_BY_CHANNEL, /* Run: one event a channel, however much comes */
};

struct al_ring {
    enum al_ring_order order;
    size_t capacity; /* bytes of memory for what waits or is on its way */
    size_t used;
    size_t keep_max; /* the same for what is kept; 0: nothing is */
    size_t kept;
    size_t event_max; /* bytes of an event of an ordered ring, and so of a Stream's message:
                         AL_SINK_CHUNK_BYTES, or half of keep_max, so that one is kept */
    uint64_t last_sequence;
    bool was_full; /* bytes were refused since the writer was last told of room */
    struct al_event *head;
    struct al_event *tail;
    struct al_event *next;    /* to be taken; NULL: none waits */
    struct al_event *open[2]; /* by channel: the event that more bytes may be added to, or NULL */
    struct al_event statuses[AL_RING_STATUSES_MAX]; /* here, so that saying them cannot fail */
    size_t n_statuses;
};

/* The capacity that a Run needs to hold `output_bytes` of each channel without ever being full. */
size_t al_ring_bytes_for(uint64_t output_bytes);

void al_ring_init(struct al_ring *ring, enum al_ring_order order, size_t capacity, size_t keep_max);
void al_ring_finish(struct al_ring *ring);

/* Takes as many of the bytes as fit and returns how many. 0 with *ret_error = -ENOMEM when there
 * would be room but no memory for it; *ret_error is untouched otherwise. */
size_t al_ring_append(struct al_ring *ring, enum al_channel channel, const uint8_t *data, size_t n,
                      int *ret_error);

/* Takes over the buffer (malloc'ed, n of cap bytes used) as an event of its own, if the ring is
 * ordered and has room for all of it. False: nothing has changed. */
bool al_ring_give(struct al_ring *ring, enum al_channel channel, uint8_t *data, size_t n,
                  size_t cap);

/* Adds a status (kind AL_EVENT_STATUS) or the end; always fits. The event lives as long as the
 * ring.
 */
void al_ring_append_status(struct al_ring *ring, enum al_event_kind kind, enum al_status status);

/* The next event, to which the caller gets a reference (it still counts), or NULL. */
struct al_event *al_ring_take(struct al_ring *ring);

/* A taken event of that cost is done with: no longer counted, or kept and the oldest that are too
 * many dropped. True when bytes had been refused and half of the ring is free: tell the writer. */
bool al_ring_release(struct al_ring *ring, size_t cost);

/* The events after that sequence are to be taken next, 0 being before the oldest; what was on its
 * way is not any more. *ret_tell as what al_ring_release returns. -ERANGE, and nothing has changed,
 * when one of them is kept no longer, or when there has been no such event. Not for a ring that
 * keeps nothing. */
int al_ring_rewind(struct al_ring *ring, uint64_t after_sequence, bool *ret_tell);

/* Drops everything that is held. True when bytes had been refused: tell the writer. */
bool al_ring_clear(struct al_ring *ring);

/* The memory that all of its events take. */
static inline size_t al_ring_memory(const struct al_ring *ring)
{
    return ring->used + ring->kept;
}
