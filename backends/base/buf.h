/*
 * A byte buffer that grows up to a bound given at its birth and never beyond. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct al_buf {
    uint8_t *data; /* owned; NULL until the first byte */
    size_t len;
    size_t cap;
    size_t max;
};

void al_buf_init(struct al_buf *b, size_t max);
void al_buf_finish(struct al_buf *b);

/* Makes room for n more bytes and returns where they go; add n to `len` once they are written.
 * NULL when the bound would be passed or memory is out; the buffer is unchanged then. */
uint8_t *al_buf_reserve(struct al_buf *b, size_t n);

/* All or nothing. -ENOBUFS when the bound would be passed, -ENOMEM. */
int al_buf_append(struct al_buf *b, const void *data, size_t n);

/* Appends as much as fits; returns how much that was (less too when memory is out). */
size_t al_buf_append_some(struct al_buf *b, const void *data, size_t n);

/* Drops n (<= len) bytes from the front. */
void al_buf_consume(struct al_buf *b, size_t n);
