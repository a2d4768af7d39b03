/* The escape suite's table: each attack, what must stop it, and how that shows. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct escape_row {
    const char *attack; /* its name in tests/escape/attack */
    const char *held;   /* what it says in the product: an errno, a signal, "ok" */
    const char *layer;  /* what must stop it; "allowed" where nothing should */
    uint32_t off;       /* AL_BARRIER bits: without these it says `open`; 0: cannot be shown */
    const char *open;
    const char *absent; /* or this, where the kernel lacks or refuses it by itself; may be NULL */
    const char *why;    /* why it cannot be shown */
    const char *after;  /* an attack that another job, still running, has made before; or NULL */
};

struct escape_class {
    const char *name;
    const struct escape_row *rows;
    size_t n;
};

extern const struct escape_class escape_classes[];
extern const size_t n_escape_classes;
