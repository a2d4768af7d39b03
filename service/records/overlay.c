#include "service/records/overlay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct al_entry *al_entry_create(const struct al_record *record)
{
    struct al_entry *entry = malloc(sizeof *entry + record->tenant_len + record->job_len);
    if (!entry) {
        return NULL;
    }
    *entry = (struct al_entry){.record = *record};
    atomic_init(&entry->refs, 1);
    memcpy(entry->bytes, record->tenant, record->tenant_len);
    if (record->job_len > 0) {
        memcpy(entry->bytes + record->tenant_len, record->job, record->job_len);
    }
    entry->record.tenant = (const char *)entry->bytes;
    entry->record.job = entry->bytes + record->tenant_len;
    return entry;
}

size_t al_entry_bytes(const struct al_entry *entry)
{
    return sizeof *entry + entry->record.tenant_len + entry->record.job_len;
}

struct al_entry *al_entry_ref(struct al_entry *entry)
{
    atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    return entry;
}

void al_entry_unref(struct al_entry *entry)
{
    if (entry && atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) == 1) {
        free(entry);
    }
}

void al_entry_unref_list(struct al_entry *first)
{
    while (first) {
        struct al_entry *next = first->next;
        al_entry_unref(first);
        first = next;
    }
}

/* Ids are random. */
static struct al_entry **bucket_of(struct al_overlay *overlay, uint64_t id)
{
    return &overlay->buckets[id % AL_OVERLAY_BUCKETS];
}

struct al_entry *al_overlay_find(const struct al_overlay *overlay, uint64_t id)
{
    struct al_entry *entry = overlay->buckets[id % AL_OVERLAY_BUCKETS];
    while (entry && entry->record.at.id != id) {
        entry = entry->next_in_bucket;
    }
    return entry;
}

static void hide(struct al_overlay *overlay, struct al_entry *entry)
{
    struct al_entry **link = bucket_of(overlay, entry->record.at.id);
    while (*link != entry) {
        link = &(*link)->next_in_bucket;
    }
    *link = entry->next_in_bucket;
    entry->next_in_bucket = NULL;
    entry->found = false;
}

static void link_before(struct al_overlay *overlay, struct al_entry *entry, struct al_entry *next)
{
    entry->next = next;
    entry->previous = next ? next->previous : overlay->last;
    *(entry->previous ? &entry->previous->next : &overlay->first) = entry;
    *(next ? &next->previous : &overlay->last) = entry;
    entry->waiting = true;
    overlay->waiting_bytes += al_entry_bytes(entry);
    overlay->n_waiting++;
}

static void unlink_waiting(struct al_overlay *overlay, struct al_entry *entry)
{
    *(entry->previous ? &entry->previous->next : &overlay->first) = entry->next;
    *(entry->next ? &entry->next->previous : &overlay->last) = entry->previous;
    entry->previous = entry->next = NULL;
    entry->waiting = false;
    overlay->waiting_bytes -= al_entry_bytes(entry);
    overlay->n_waiting--;
}

static void forget(struct al_overlay *overlay, const struct al_entry *entry)
{
    overlay->bytes -= al_entry_bytes(entry);
    overlay->n--;
}

bool al_overlay_put(struct al_overlay *overlay, struct al_entry *entry, size_t max_bytes,
                    struct al_entry **ret_replaced)
{
    struct al_entry *old = al_overlay_find(overlay, entry->record.at.id);
    struct al_entry *replaced = old && old->waiting ? old : NULL;
    size_t freed = replaced ? al_entry_bytes(replaced) : 0;
    if (overlay->bytes - freed + al_entry_bytes(entry) > max_bytes) {
        return false;
    }
    if (old) {
        hide(overlay, old);
    }
    if (replaced) {
        unlink_waiting(overlay, replaced);
        forget(overlay, replaced);
    }
    struct al_entry **bucket = bucket_of(overlay, entry->record.at.id);
    entry->next_in_bucket = *bucket;
    *bucket = entry;
    entry->found = true;
    link_before(overlay, entry, NULL);
    overlay->bytes += al_entry_bytes(entry);
    overlay->n++;
    *ret_replaced = replaced;
    return true;
}

struct al_entry *al_overlay_take(struct al_overlay *overlay)
{
    struct al_entry *first = overlay->first;
    for (struct al_entry *entry = first; entry; entry = entry->next) {
        entry->waiting = false;
    }
    overlay->first = overlay->last = NULL;
    overlay->waiting_bytes = 0;
    overlay->n_waiting = 0;
    return first;
}

struct al_entry *al_overlay_done(struct al_overlay *overlay, struct al_entry *taken, bool written)
{
    struct al_entry *gone = NULL;
    struct al_entry *came_since = overlay->first;
    for (struct al_entry *entry = taken, *next; entry; entry = next) {
        next = entry->next;
        if (entry->found && !written) {
            link_before(overlay, entry, came_since);
            continue;
        }
        if (entry->found) {
            hide(overlay, entry);
        }
        forget(overlay, entry);
        entry->next = gone;
        gone = entry;
    }
    return gone;
}

void al_overlay_visit(const struct al_overlay *overlay,
                      void (*visit)(void *arg, struct al_entry *entry), void *arg)
{
    if (overlay->n == 0) {
        return;
    }
    for (size_t i = 0; i < AL_OVERLAY_BUCKETS; i++) {
        for (struct al_entry *entry = overlay->buckets[i]; entry; entry = entry->next_in_bucket) {
            visit(arg, entry);
        }
    }
}

void al_overlay_clear(struct al_overlay *overlay)
{
    struct al_entry *waited = al_overlay_take(overlay);
    al_entry_unref_list(al_overlay_done(overlay, waited, true));
    assert(overlay->n == 0);
}
