#include "service/quote.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/wire/utf8.h"

/* The length of the one sequence at the front of the len (> 0) bytes, 0 when it is not valid. */
static size_t measure_sequence(const uint8_t *data, size_t len)
{
    for (size_t n = 1; n <= 4 && n <= len; n++) {
        if (al_utf8_valid_prefix(data, n) == n) {
            return n;
        }
    }
    return 0;
}

static bool is_plain(const uint8_t *p, size_t len, const char *mark)
{
    if (len == 1) {
        return *p >= 0x20 && *p != 0x7f && *p != (uint8_t)*mark && *p != '\\';
    }
    bool c1_control = len == 2 && p[0] == 0xc2 && p[1] < 0xa0;
    return len > 1 && !c1_control;
}

static struct al_quoted quote(const uint8_t *data, size_t len, const char *mark)
{
    struct al_quoted q;
    size_t used = 0;
    char *end = mempcpy(q.text, mark, strlen(mark));
    while (len > 0) {
        size_t n = measure_sequence(data, len);
        char escaped[sizeof "\\xNN"];
        const void *piece = data;
        size_t piece_len = n;
        if (!is_plain(data, n, mark)) {
            n = 1;
            piece_len = (size_t)snprintf(escaped, sizeof escaped, "\\x%02x", *data);
            piece = escaped;
        }
        if (used + piece_len > AL_QUOTE_BODY_MAX) {
            end = mempcpy(end, "...", 3);
            break;
        }
        end = mempcpy(end, piece, piece_len);
        used += piece_len;
        data += n;
        len -= n;
    }
    memcpy(end, mark, strlen(mark) + 1);
    return q;
}

struct al_quoted al_quote_bytes(const void *data, size_t len)
{
    return quote(data, len, "\"");
}

struct al_quoted al_quote(const char *s)
{
    return quote((const uint8_t *)s, strlen(s), "\"");
}

struct al_quoted al_quote_bare(const char *s)
{
    return quote((const uint8_t *)s, strlen(s), "");
}
