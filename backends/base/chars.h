/* Single characters of UTF-8 as RFC 3629 has it: no overlong forms, no surrogates. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The length (1 to 4) of the character that `data` begins with, of which n > 0 bytes are there, and
 * its code point. 0 when there is no valid one. */
size_t al_char_decode(const char *data, size_t n, uint32_t *ret);
