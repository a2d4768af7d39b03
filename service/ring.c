#include "service/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "backends/base/clock.h"

/* From this size on, bytes that find the reader busy get an event of full size at once, so that
 * what follows is added without copying it again. */
#define BULK_BYTES 4096u

/* No event is begun for less than this when more is offered. */
#define LEAST_BYTES 1024u

/* So much of a buffer is not worth giving back. */
#define SLACK_BYTES 4096u

/* What a Run's ring needs beyond the bytes: its two events. */
#define RUN_SLACK_BYTES (2 * sizeof(struct al_event) + 1024)

size_t al_ring_bytes_for(uint64_t output_bytes)
{
    return (size_t)output_bytes * 2 + RUN_SLACK_BYTES;
}

void al_ring_init(struct al_ring *ring, enum al_ring_order order, size_t capacity, size_t keep_max)
{
    size_t event_max = AL_SINK_CHUNK_BYTES;
    if (keep_max > 0 && keep_max / 2 < event_max) {
        event_max = keep_max / 2;
    }
    *ring = (struct al_ring){
        .order = order, .capacity = capacity, .keep_max = keep_max, .event_max = event_max};
}

void al_ring_finish(struct al_ring *ring)
{
    (void)al_ring_clear(ring);
}

static void push(struct al_ring *ring, struct al_event *event)
{
    event->sequence = ++ring->last_sequence;
    if (ring->tail) {
        ring->tail->next = event;
    } else {
        ring->head = event;
    }
    ring->tail = event;
    if (!ring->next) {
        ring->next = event;
    }
}

static size_t room_of(const struct al_ring *ring)
{
    return ring->capacity > ring->used ? ring->capacity - ring->used : 0;
}

/* The most bytes of payload that the event may have in all. */
static size_t payload_max(const struct al_ring *ring, const struct al_event *event)
{
    if (ring->order == AL_RING_BY_CHANNEL) {
        return (ring->capacity - RUN_SLACK_BYTES) / 2;
    }
    size_t max = event->bytes.cap + room_of(ring);
    return max < ring->event_max ? max : ring->event_max;
}

/* Adds what fits to an event that nobody has read. */
static size_t fill(struct al_ring *ring, struct al_event *event, bool reader_is_behind,
                   const uint8_t *data, size_t n, int *ret_error)
{
    struct al_buf *bytes = &event->bytes;
    size_t cap = bytes->cap;
    bytes->max = payload_max(ring, event);
    size_t room = bytes->max - bytes->len;
    if (room == 0) {
        return 0;
    }
    if (reader_is_behind && n >= BULK_BYTES && ring->order == AL_RING_ORDERED) {
        (void)al_buf_reserve(bytes, room); /* without it the append only grows more slowly */
    }
    size_t taken = al_buf_append_some(bytes, data, n);
    ring->used += bytes->cap - cap;
    if (taken == 0) {
        *ret_error = -ENOMEM;
    }
    return taken;
}

/* A further event for the channel. */
static size_t append_new(struct al_ring *ring, enum al_channel channel, const uint8_t *data,
                         size_t n, int *ret_error)
{
    bool reader_is_behind = ring->used > 0;
    size_t least = sizeof(struct al_event) + (n < LEAST_BYTES ? n : LEAST_BYTES);
    if (room_of(ring) < least) {
        return 0;
    }
    struct al_event *event =
        al_event_create(channel == AL_STDOUT ? AL_EVENT_STDOUT : AL_EVENT_STDERR);
    if (!event) {
        *ret_error = -ENOMEM;
        return 0;
    }
    ring->used += sizeof *event;
    size_t taken = fill(ring, event, reader_is_behind, data, n, ret_error);
    if (taken == 0) {
        ring->used -= sizeof *event;
        al_event_unref(event);
        return 0;
    }
    push(ring, event);
    ring->open[channel] = event;
    return taken;
}

static struct al_event *open_event(struct al_ring *ring, enum al_channel channel)
{
    struct al_event *event = ring->open[channel];
    if (event && (ring->order == AL_RING_BY_CHANNEL || event == ring->tail)) {
        return event;
    }
    return NULL;
}

size_t al_ring_append(struct al_ring *ring, enum al_channel channel, const uint8_t *data, size_t n,
                      int *ret_error)
{
    size_t taken = 0;
    while (taken < n) {
        struct al_event *event = open_event(ring, channel);
        size_t more = event ? fill(ring, event, true, data + taken, n - taken, ret_error) : 0;
        if (more == 0 && (!event || ring->order == AL_RING_ORDERED)) {
            more = append_new(ring, channel, data + taken, n - taken, ret_error);
        }
        if (more == 0) {
            ring->was_full = true;
            break;
        }
        taken += more;
    }
    return taken;
}

bool al_ring_give(struct al_ring *ring, enum al_channel channel, uint8_t *data, size_t n,
                  size_t cap)
{
    if (ring->order != AL_RING_ORDERED || cap > ring->event_max ||
        room_of(ring) < sizeof(struct al_event) + cap)
    {
        return false;
    }
    struct al_event *event =
        al_event_create(channel == AL_STDOUT ? AL_EVENT_STDOUT : AL_EVENT_STDERR);
    if (!event) {
        return false;
    }
    event->bytes = (struct al_buf){.data = data, .len = n, .cap = cap, .max = cap};
    ring->used += al_event_cost(event);
    push(ring, event);
    ring->open[channel] = event;
    return true;
}

void al_ring_append_status(struct al_ring *ring, enum al_event_kind kind, enum al_status status)
{
    assert(ring->n_statuses < AL_RING_STATUSES_MAX);
    struct al_event *event = &ring->statuses[ring->n_statuses++];
    atomic_init(&event->refs, 2); /* one is the ring's own: unref never frees it */
    event->kind = kind;
    event->status = status;
    event->wall_ns = al_wall_ns();
    ring->used += al_event_cost(event);
    push(ring, event);
}

/* The ring's reference to its oldest event becomes the caller's. */
static struct al_event *unlink_head(struct al_ring *ring)
{
    struct al_event *event = ring->head;
    ring->head = event->next;
    if (!ring->head) {
        ring->tail = NULL;
    }
    if (ring->next == event) {
        ring->next = event->next;
    }
    event->next = NULL;
    return event;
}

static void close_event(struct al_ring *ring, const struct al_event *event)
{
    for (int i = 0; i < 2; i++) {
        if (ring->open[i] == event) {
            ring->open[i] = NULL;
        }
    }
}

/* Gives back what the buffer has too much, before it stays for longer. Nobody else may see it. */
static void shrink(struct al_ring *ring, struct al_event *event)
{
    struct al_buf *bytes = &event->bytes;
    size_t slack = bytes->cap - bytes->len;
    if (atomic_load(&event->refs) != 1 || bytes->len == 0 ||
        (slack < bytes->len && slack < SLACK_BYTES))
    {
        return;
    }
    uint8_t *smaller = realloc(bytes->data, bytes->len);
    if (smaller) {
        ring->used -= bytes->cap - bytes->len;
        bytes->data = smaller;
        bytes->cap = bytes->len;
    }
}

struct al_event *al_ring_take(struct al_ring *ring)
{
    struct al_event *event = ring->next;
    if (!event) {
        return NULL;
    }
    close_event(ring, event);
    if (ring->keep_max == 0) {
        return unlink_head(ring);
    }
    ring->next = event->next;
    shrink(ring, event);
    return al_event_ref(event);
}

/* Not before half of it is free: each word wakes the writer, who is to have work for a while. */
static bool tell_of_room(struct al_ring *ring)
{
    bool tell = ring->was_full && room_of(ring) >= ring->capacity / 2;
    ring->was_full = ring->was_full && !tell;
    return tell;
}

static void drop_too_many(struct al_ring *ring)
{
    while (ring->kept > ring->keep_max) {
        struct al_event *oldest = unlink_head(ring);
        ring->kept -= al_event_cost(oldest);
        al_event_unref(oldest);
    }
}

bool al_ring_release(struct al_ring *ring, size_t cost)
{
    ring->used -= cost;
    if (ring->keep_max > 0) {
        ring->kept += cost;
        drop_too_many(ring);
    }
    return tell_of_room(ring);
}

int al_ring_rewind(struct al_ring *ring, uint64_t after_sequence, bool *ret_tell)
{
    uint64_t first = ring->head ? ring->head->sequence : ring->last_sequence + 1;
    uint64_t after = after_sequence ? after_sequence : first - 1;
    if (after + 1 < first || after > ring->last_sequence) {
        return -ERANGE;
    }
    ring->next = NULL;
    ring->used = ring->kept = 0;
    for (struct al_event *event = ring->head; event; event = event->next) {
        bool is_seen = event->sequence <= after;
        *(is_seen ? &ring->kept : &ring->used) += al_event_cost(event);
        if (is_seen) {
            close_event(ring, event);
        } else if (!ring->next) {
            ring->next = event;
        }
    }
    drop_too_many(ring);
    *ret_tell = tell_of_room(ring);
    return 0;
}

bool al_ring_clear(struct al_ring *ring)
{
    while (ring->head) {
        struct al_event *event = unlink_head(ring);
        close_event(ring, event);
        if (ring->keep_max == 0) {
            ring->used -= al_event_cost(event);
        }
        al_event_unref(event);
    }
    if (ring->keep_max > 0) {
        ring->used = ring->kept = 0;
    }
    bool tell = ring->was_full; /* whatever is still on its way: nobody may ever release it */
    ring->was_full = false;
    return tell;
}
