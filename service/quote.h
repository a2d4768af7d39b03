/*
 * Outside text made fit for an error or a log line: in double quotes, at most 64 bytes of it (then
 * "..."), control bytes, quotes, backslashes and what is not UTF-8 as \xNN. The result is valid
 * UTF-8 whatever came in. A value, so that `al_quote(s).text` can stand among printf's arguments.
 */
#pragma once

#include <stddef.h>

#define AL_QUOTE_BODY_MAX 64

struct al_quoted {
    char text[AL_QUOTE_BODY_MAX + sizeof "\"...\""];
};

struct al_quoted al_quote(const char *s);
struct al_quoted al_quote_bytes(const void *data, size_t len);

/* The same without the quotes, for a name within a name: env[FOO]. */
struct al_quoted al_quote_bare(const char *s);
