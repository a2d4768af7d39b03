/*
 * Where a backend puts what the program prints, in the order read. Called from the thread that runs
 * the job only. Appending never blocks: a sink with no room takes fewer bytes than offered (or
 * none), the backend keeps the rest and stops reading from the program until al_ctl_room.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes that a buffer which is given may have, and so what is worth reading at a time:
 * two, with what they cost besides, fit into the 1 MiB that a Stream may hold unless configured. */
#define AL_SINK_CHUNK_BYTES (508u << 10)

enum al_channel {
    AL_STDOUT,
    AL_STDERR,
};

struct al_sink;

struct al_sink_ops {
    /* Never NULL. Copies up to n bytes; returns how many were taken. A sink whose reader is gone
     * for good takes everything and drops it. */
    size_t (*append)(struct al_sink *sink, enum al_channel channel, const uint8_t *data, size_t n);
    /* May be NULL. Offers a malloc'ed buffer of `cap` bytes (at most AL_SINK_CHUNK_BYTES) as a
     * whole, of which the first n are output: true when the sink has taken it over. Else it stays
     * the caller's, who then appends. Worth it for large n. */
    bool (*give)(struct al_sink *sink, enum al_channel channel, uint8_t *data, size_t n,
                 size_t cap);
    /* May be NULL. The program (or its compile step) has started. Called at most once, before any
     * append. */
    void (*started)(struct al_sink *sink);
    /* May be NULL. The CPU time that the job has used so far, now and then while it runs. */
    void (*used)(struct al_sink *sink, int64_t cpu_us);
};

struct al_sink {
    const struct al_sink_ops *ops;
};

static inline size_t al_sink_append(struct al_sink *sink, enum al_channel channel,
                                    const uint8_t *data, size_t n)
{
    return sink->ops->append(sink, channel, data, n);
}

static inline bool al_sink_give(struct al_sink *sink, enum al_channel channel, uint8_t *data,
                                size_t n, size_t cap)
{
    return sink->ops->give && sink->ops->give(sink, channel, data, n, cap);
}

static inline void al_sink_started(struct al_sink *sink)
{
    if (sink->ops->started) {
        sink->ops->started(sink);
    }
}

static inline void al_sink_used(struct al_sink *sink, int64_t cpu_us)
{
    if (sink->ops->used) {
        sink->ops->used(sink, cpu_us);
    }
}
