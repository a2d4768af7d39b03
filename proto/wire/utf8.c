#include "proto/wire/utf8.h"

#include <stdbool.h>
#include <string.h>

#include "proto/wire/arena.h"

#define ESCAPE_LENGTH (sizeof("\\xNN") - 1)

static bool is_between(uint8_t byte, uint8_t low, uint8_t high)
{
    return byte >= low && byte <= high;
}

/* How many bytes follow this lead byte, and the range of the first of them; -1: not a lead byte. */
static int decode_lead(uint8_t lead, uint8_t *ret_low, uint8_t *ret_high)
{
    *ret_low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *ret_high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0x80) {
        return 0;
    }
    if (is_between(lead, 0xc2, 0xdf)) {
        return 1;
    }
    if (is_between(lead, 0xe0, 0xef)) {
        return 2;
    }
    return is_between(lead, 0xf0, 0xf4) ? 3 : -1;
}

/* The length of the sequence at `data`, 0 when there is no whole, valid one. `len` is above 0. */
static size_t measure_sequence(const uint8_t *data, size_t len)
{
    uint8_t low = 0;
    uint8_t high = 0;
    int following = decode_lead(data[0], &low, &high);
    if (following < 0 || (size_t)following >= len) {
        return 0;
    }
    for (int i = 1; i <= following; i++) {
        if (!is_between(data[i], low, high)) {
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return (size_t)following + 1;
}

static bool is_ascii_word(const uint8_t *data)
{
    uint64_t word = 0;
    memcpy(&word, data, sizeof(word));
    return (word & UINT64_C(0x8080808080808080)) == 0;
}

size_t al_utf8_valid_prefix(const uint8_t *data, size_t len)
{
    size_t at = 0;
    while (at < len) {
        if (len - at >= sizeof(uint64_t) && is_ascii_word(data + at)) {
            at += sizeof(uint64_t);
            continue;
        }
        size_t sequence = measure_sequence(data + at, len - at);
        if (sequence == 0) {
            break;
        }
        at += sequence;
    }
    return at;
}

static size_t measure_clean(const uint8_t *data, size_t len)
{
    return data[0] == '\0' ? 0 : measure_sequence(data, len);
}

static size_t count_unclean(const uint8_t *data, size_t len)
{
    size_t count = 0;
    for (size_t at = 0; at < len;) {
        size_t sequence = measure_clean(data + at, len - at);
        count += sequence == 0;
        at += sequence == 0 ? 1 : sequence;
    }
    return count;
}

char *al_utf8_escape(struct al_arena *arena, const uint8_t *data, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    size_t unclean = count_unclean(data, len);
    char *text = al_arena_alloc(arena, len + unclean * (ESCAPE_LENGTH - 1) + 1);
    if (!text) {
        return NULL;
    }
    char *out = text;
    for (size_t at = 0; at < len;) {
        size_t sequence = measure_clean(data + at, len - at);
        if (sequence == 0) {
            *out++ = '\\';
            *out++ = 'x';
            *out++ = digits[data[at] >> 4];
            *out++ = digits[data[at] & 0xf];
            at++;
            continue;
        }
        memcpy(out, data + at, sequence);
        out += sequence;
        at += sequence;
    }
    *out = '\0';
    return text;
}
