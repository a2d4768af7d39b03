/*
 * The keys by which a user leaves a job whose program gets every key: "~." at the beginning of a
 * line, as in ssh. "~~" there is one "~"; a "~" before anything else, or elsewhere, is just that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct al_escape {
    bool in_line;   /* something was typed since Enter */
    bool has_tilde; /* a "~" is held back until the next key tells what it means */
};

/* Copies the keys that are the program's to `ret`, which has room for n + 1. Returns how many there
 * are. *ret_leaves: the user wants to leave; the keys after that are dropped. */
size_t al_escape_filter(struct al_escape *escape, const uint8_t *keys, size_t n, uint8_t *ret,
                        bool *ret_leaves);
