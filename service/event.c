#include "service/event.h"

#include <stdlib.h>

#include "backends/base/clock.h"

struct al_event *al_event_create(enum al_event_kind kind)
{
    struct al_event *event = calloc(1, sizeof *event);
    if (!event) {
        return NULL;
    }
    atomic_init(&event->refs, 1);
    event->kind = kind;
    event->wall_ns = al_wall_ns();
    return event;
}

struct al_event *al_event_ref(struct al_event *event)
{
    atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
    return event;
}

void al_event_unref(struct al_event *event)
{
    if (event && atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) == 1) {
        al_buf_finish(&event->bytes);
        free(event);
    }
}
