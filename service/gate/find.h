/*
 * Finds the hosts in the content of one literal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/gate/scan.h"

/* A byte that stands for what only the running program knows. */
#define GATE_UNKNOWN '\x01'

/* From this offset on, the text came from this line. */
struct gate_mark {
    size_t offset;
    uint32_t line;
};

struct gate_span {
    const char *data;
    size_t len;
    const struct gate_mark *marks; /* at least one, the first at the start */
    size_t n_marks;
    size_t base; /* what the marks' offsets count from, before `data` */
    bool whole;  /* a quoted literal of its own: may be a bare name */
    bool plain;  /* text of an unknown language: only URLs */
};

/* Reports all hosts, in order; linear in the length. */
void gate_find(struct gate_scan *scan, const struct gate_span *span);
