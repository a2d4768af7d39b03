/*
 * Reads an INI text, on top of inih, which cuts what is too long for its buffers without a word and
 * knows no line numbers: here that is an error, and each error says where it is. An indented line
 * is one more value of the key above it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backends/base/err.h"

struct al_ini_value {
    const char *section; /* "" before the first one */
    const char *key;
    const char *text;
    bool continues; /* an indented line */
};

/* What is done with what is read. A negative value and `err` end the reading; the text need not say
 * where. */
struct al_ini_handler {
    /* May be NULL. A section begins; called for headers that stand at the left. */
    int (*section)(void *arg, const char *name, struct al_err *err);
    int (*value)(void *arg, const struct al_ini_value *value, struct al_err *err);
};

/* 0, or AL_ERR_INVALID_ARGUMENT with "NAME:LINE: ..." in front. */
int al_ini_parse(const char *name, const char *text, size_t len,
                 const struct al_ini_handler *handler, void *arg, struct al_err *err);

/* The same for a file, of at most 256 KiB. */
int al_ini_read(const char *path, const struct al_ini_handler *handler, void *arg,
                struct al_err *err);
