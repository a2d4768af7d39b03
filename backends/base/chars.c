#include "backends/base/chars.h"

#include <stdbool.h>

/* By the number of ones at the front of the first byte. */
static const struct {
    uint8_t mask;   /* of the first byte's own bits */
    uint32_t least; /* smaller code points have a shorter form */
} forms[] = {{0x7f, 0}, {0, 0}, {0x1f, 0x80}, {0x0f, 0x800}, {0x07, 0x10000}};

static size_t count_ones(uint8_t byte)
{
    size_t n = 0;
    while (n < 8 && byte & 0x80 >> n) {
        n++;
    }
    return n;
}

size_t al_char_decode(const char *data, size_t n, uint32_t *ret)
{
    size_t ones = count_ones((uint8_t)data[0]);
    size_t len = ones == 0 ? 1 : ones;
    if (ones == 1 || ones > 4 || len > n) {
        return 0;
    }
    uint32_t c = (uint8_t)data[0] & forms[ones].mask;
    for (size_t i = 1; i < len; i++) {
        if (((uint8_t)data[i] & 0xc0) != 0x80) {
            return 0;
        }
        c = c << 6 | ((uint8_t)data[i] & 0x3f);
    }
    bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
    if (c < forms[ones].least || c > 0x10ffff || is_surrogate) {
        return 0;
    }
    *ret = c;
    return len;
}
