/*
 * The content of literals while they are read: decoded, joined, and with the line that each part
 * of it came from. Literals nest (a literal within `${}` of another), so a text is a stack of them
 * in one buffer: the one opened last grows, and goes when it is closed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "service/gate/find.h"

struct gate_text {
    char *data; /* owned; cap is enough for any literal of the source */
    size_t len;
    size_t cap;
    struct gate_mark *marks; /* owned */
    size_t n_marks;
    size_t cap_marks;
    uint32_t line; /* of the last mark; 0: none that counts */
    bool failed;   /* memory is out */
};

struct gate_open {
    size_t start;
    size_t mark;
};

/* Room for the literals of sources of up to source_bytes. 0 or -ENOMEM. */
int gate_text_init(struct gate_text *text, size_t source_bytes);
void gate_text_finish(struct gate_text *text);

static inline struct gate_open gate_text_open(struct gate_text *text)
{
    text->line = 0;
    return (struct gate_open){.start = text->len, .mark = text->n_marks};
}

/* What is appended from here on came from this line. */
void gate_text_mark(struct gate_text *text, uint32_t line);

static inline void gate_text_put(struct gate_text *text, uint32_t line, const void *data, size_t n)
{
    if (n == 0 || n > text->cap - text->len) {
        return;
    }
    if (line != text->line) {
        gate_text_mark(text, line);
    }
    memcpy(text->data + text->len, data, n);
    text->len += n;
}

/* A character; what is none becomes U+FFFD. */
void gate_text_put_char(struct gate_text *text, uint32_t line, uint32_t code_point);

/* Something that only the running program knows. */
void gate_text_put_unknown(struct gate_text *text, uint32_t line);

/* Looks for hosts in the literal that was opened last, which ends. */
void gate_text_close(struct gate_text *text, struct gate_open open, struct gate_scan *scan,
                     bool whole);

/* Up to max hexadecimal digits at p: how many there are, and their value. */
size_t gate_read_hex(const uint8_t *p, const uint8_t *end, size_t max, uint32_t *ret_value);

/* One to three octal digits likewise. */
size_t gate_read_octal(const uint8_t *p, const uint8_t *end, uint32_t *ret_value);
