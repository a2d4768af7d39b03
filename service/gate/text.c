#include "service/gate/text.h"

#include <errno.h>
#include <stdlib.h>

#define MARKS_FIRST 256

int gate_text_init(struct gate_text *text, size_t source_bytes)
{
    *text = (struct gate_text){.cap = source_bytes + 16};
    text->data = malloc(text->cap);
    return text->data ? 0 : -ENOMEM;
}

void gate_text_finish(struct gate_text *text)
{
    free(text->data);
    free(text->marks);
    *text = (struct gate_text){0};
}

void gate_text_mark(struct gate_text *text, uint32_t line)
{
    if (text->n_marks == text->cap_marks) {
        size_t cap = text->cap_marks ? 2 * text->cap_marks : MARKS_FIRST;
        struct gate_mark *marks = reallocarray(text->marks, cap, sizeof *marks);
        if (!marks) {
            text->failed = true;
            return;
        }
        text->marks = marks;
        text->cap_marks = cap;
    }
    text->marks[text->n_marks++] = (struct gate_mark){.offset = text->len, .line = line};
    text->line = line;
}

void gate_text_put_char(struct gate_text *text, uint32_t line, uint32_t c)
{
    uint8_t utf8[4];
    size_t n = 0;
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        c = 0xfffd;
    }
    if (c < 0x80) {
        utf8[n++] = (uint8_t)c;
    } else {
        if (c < 0x800) {
            utf8[n++] = (uint8_t)(0xc0 | c >> 6);
        } else if (c < 0x10000) {
            utf8[n++] = (uint8_t)(0xe0 | c >> 12);
            utf8[n++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        } else {
            utf8[n++] = (uint8_t)(0xf0 | c >> 18);
            utf8[n++] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
            utf8[n++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        }
        utf8[n++] = (uint8_t)(0x80 | (c & 0x3f));
    }
    gate_text_put(text, line, utf8, n);
}

void gate_text_put_unknown(struct gate_text *text, uint32_t line)
{
    gate_text_put(text, line, &(char){GATE_UNKNOWN}, 1);
}

void gate_text_close(struct gate_text *text, struct gate_open open, struct gate_scan *scan,
                     bool whole)
{
    if (text->n_marks > open.mark) {
        gate_find(scan, &(struct gate_span){.data = text->data + open.start,
                                            .len = text->len - open.start,
                                            .marks = text->marks + open.mark,
                                            .n_marks = text->n_marks - open.mark,
                                            .base = open.start,
                                            .whole = whole});
    }
    text->len = open.start;
    text->n_marks = open.mark;
    text->line = 0;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t gate_read_hex(const uint8_t *p, const uint8_t *end, size_t max, uint32_t *ret_value)
{
    size_t n = 0;
    uint32_t value = 0;
    for (; n < max && p + n < end && hex_digit(p[n]) >= 0; n++) {
        value = value << 4 | (uint32_t)hex_digit(p[n]);
    }
    *ret_value = value;
    return n;
}

size_t gate_read_octal(const uint8_t *p, const uint8_t *end, uint32_t *ret_value)
{
    size_t n = 0;
    uint32_t value = 0;
    for (; n < 3 && p + n < end && p[n] >= '0' && p[n] <= '7'; n++) {
        value = value << 3 | (uint32_t)(p[n] - '0');
    }
    *ret_value = value;
    return n;
}
