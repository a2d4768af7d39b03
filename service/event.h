/*
 * One thing that happened to a job: bytes that its program wrote, another status, or the end.
 * Reference-counted, because gRPC may still hold the bytes after the ring has let go of them; an
 * event does not change any more once a reader has taken it.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/result.h"
#include "backends/base/buf.h"

enum al_event_kind {
    AL_EVENT_STDOUT,
    AL_EVENT_STDERR,
    AL_EVENT_STATUS,
    AL_EVENT_RESULT, /* the last one; the job itself holds the result */
};

struct al_event {
    struct al_event *next; /* the ring's */
    atomic_uint refs;
    enum al_event_kind kind;
    enum al_status status; /* of AL_EVENT_STATUS and AL_EVENT_RESULT */
    uint64_t sequence;     /* 1, 2, 3 ... over all events of a job */
    int64_t wall_ns;       /* when it happened; nanoseconds since 1970 */
    struct al_buf bytes;   /* output; empty in the other kinds */
};

/* With one reference. NULL when memory is out. */
struct al_event *al_event_create(enum al_event_kind kind);

struct al_event *al_event_ref(struct al_event *event);

/* NULL is ignored. Any thread. */
void al_event_unref(struct al_event *event);

/* The bytes of memory that it occupies. */
static inline size_t al_event_cost(const struct al_event *event)
{
    return sizeof *event + event->bytes.cap;
}
