/*
 * Docker's framing of an attached container's output: [stream, 0, 0, 0, length: 4 bytes,
 * big-endian] and the payload. The daemon is believed in what a container is, not in how it spells
 * it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum al_mux_stream {
    AL_MUX_STDOUT = 1,
    AL_MUX_STDERR = 2,
    AL_MUX_SYSTEM = 3, /* an error of the daemon's */
};

struct al_mux {
    uint8_t head[8];
    size_t head_got;
    uint32_t left;
};

/* A part of one stream, in what was fed. */
struct al_mux_piece {
    enum al_mux_stream stream;
    const uint8_t *data;
    size_t len;
};

/* Start with a zeroed one. Takes bytes until a piece is there: 1 and *ret. 0 when more bytes are
 * needed; -EBADMSG, also for a payload of stdin, which nobody has asked for. */
int al_mux_next(struct al_mux *m, const uint8_t *data, size_t n, size_t *ret_used,
                struct al_mux_piece *ret);
