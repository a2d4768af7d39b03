/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. Thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct al_arena;

/* How many bytes at the start of `data` are whole, valid sequences. NUL counts as valid. */
size_t al_utf8_valid_prefix(const uint8_t *data, size_t len);

/*
 * Makes a string of any bytes that may go into a proto3 string field: what is not valid UTF-8, and
 * NUL, becomes \xNN. Returns a string of the arena, or NULL when that is exhausted.
 */
char *al_utf8_escape(struct al_arena *arena, const uint8_t *data, size_t len);
