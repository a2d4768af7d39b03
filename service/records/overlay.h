/*
 * What was put and is not yet written: by id for readers, in the order of its coming for the
 * writer. Bounded in bytes. Not thread-safe: the owner's lock guards it, and entries too but for
 * what is fixed in them.
 *
 * An entry waits until the writer takes it, and is found by readers until the writer says that it
 * is done. One that is replaced while it is being written stays with the writer only.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/records/record.h"

#define AL_OVERLAY_BUCKETS \
    4096 /* a queue of usual records has one or two in each when it is full */

struct al_entry {
    struct al_record record; /* fixed, with its tenant and job in `bytes` */
    atomic_uint refs;
    bool found;   /* in its bucket */
    bool waiting; /* in the list */
    struct al_entry *next_in_bucket;
    struct al_entry *previous, *next;
    uint8_t bytes[];
};

/* A copy of the record, with one reference and not yet in any overlay; needs no lock. NULL when
 * memory is out. */
struct al_entry *al_entry_create(const struct al_record *record);
/* What it counts for. */
size_t al_entry_bytes(const struct al_entry *entry);

struct al_overlay {
    struct al_entry *buckets[AL_OVERLAY_BUCKETS];
    struct al_entry *first, *last; /* that wait */
    size_t bytes;                  /* of all that wait or are being written */
    size_t waiting_bytes;
    size_t n_waiting;
    size_t n; /* wait or are being written */
};

/* Drops all entries; none is being written. */
void al_overlay_clear(struct al_overlay *overlay);

/* Takes over the reference. Replaces the entry with that id. False: it would take the overlay
 * beyond `max_bytes`, and nothing has changed. *ret_replaced, to be unreferenced without the lock,
 * is one that waited, or NULL. */
bool al_overlay_put(struct al_overlay *overlay, struct al_entry *entry, size_t max_bytes,
                    struct al_entry **ret_replaced);

/* The last entry with that id, borrowed, or NULL. */
struct al_entry *al_overlay_find(const struct al_overlay *overlay, uint64_t id);

/* The writer takes all that waits, as a list by `next`, the oldest first. */
struct al_entry *al_overlay_take(struct al_overlay *overlay);

/* Gives back what was taken. Written: readers find it in the store from now on. Else it waits
 * again, before all that came since, unless it was replaced. Returns those that nobody will find
 * any more, to be unreferenced without the lock. */
struct al_entry *al_overlay_done(struct al_overlay *overlay, struct al_entry *taken, bool written);

/* Calls `visit` with each entry that can be found. */
void al_overlay_visit(const struct al_overlay *overlay,
                      void (*visit)(void *arg, struct al_entry *entry), void *arg);

/* References: any thread, any time. */
struct al_entry *al_entry_ref(struct al_entry *entry);
void al_entry_unref(struct al_entry *entry);
void al_entry_unref_list(struct al_entry *first);
