/*
 * A host as programs write it, brought to the one form in which it is judged: lower case, decoded,
 * A-labels, addresses in their usual spelling.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backends/base/host_match.h"

enum gate_host_kind {
    GATE_HOST_NONE, /* empty, no host, or its end is not known */
    GATE_HOST_NAME,
    GATE_HOST_ADDRESS,
};

struct gate_host {
    enum gate_host_kind kind;
    bool loopback;
    char text[AL_HOST_MAX + 1]; /* printable ASCII; `*` for what is not known */
};

/* Reads the host that begins at p, in brackets or not. Returns how many of the n bytes it takes,
 * whatever it is. Odd spellings of IPv4 (decimal, hexadecimal, octal, short) are addresses here. */
size_t gate_host_read(const char *p, size_t n, struct gate_host *ret);
