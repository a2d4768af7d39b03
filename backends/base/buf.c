#include "backends/base/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 512

void al_buf_init(struct al_buf *b, size_t max)
{
    *b = (struct al_buf){.max = max};
}

void al_buf_finish(struct al_buf *b)
{
    free(b->data);
    *b = (struct al_buf){0};
}

uint8_t *al_buf_reserve(struct al_buf *b, size_t n)
{
    if (n > b->max - b->len) {
        return NULL;
    }
    size_t need = b->len + n;
    if (need > b->cap || !b->data) {
        size_t cap = b->cap ? b->cap : FIRST_CAPACITY;
        while (cap < need) {
            cap *= 2;
        }
        if (cap > b->max) {
            cap = b->max;
        }
        uint8_t *data = realloc(b->data, cap ? cap : 1);
        if (!data) {
            return NULL;
        }
        b->data = data;
        b->cap = cap;
    }
    return b->data + b->len;
}

int al_buf_append(struct al_buf *b, const void *data, size_t n)
{
    if (n > b->max - b->len) {
        return -ENOBUFS;
    }
    if (n == 0) {
        return 0;
    }
    uint8_t *to = al_buf_reserve(b, n);
    if (!to) {
        return -ENOMEM;
    }
    memcpy(to, data, n);
    b->len += n;
    return 0;
}

size_t al_buf_append_some(struct al_buf *b, const void *data, size_t n)
{
    size_t room = b->max - b->len;
    size_t take = n < room ? n : room;
    return al_buf_append(b, data, take) == 0 ? take : 0;
}

void al_buf_consume(struct al_buf *b, size_t n)
{
    assert(n <= b->len);
    if (n == 0) {
        return; /* data may be NULL */
    }
    b->len -= n;
    memmove(b->data, b->data + n, b->len);
}
