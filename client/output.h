/*
 * What airlock prints. Bytes of the program go out untouched; what a server says in words is
 * printed with its control bytes escaped, so that it cannot drive the user's terminal.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "client/client.h"

/* All n bytes, whatever the fd's mode: short writes are finished, EAGAIN is waited for. 0 or
 * -errno; -EPIPE when nobody reads any more. */
int al_output_write(int fd, const void *data, size_t n);

/* One JSON document and a newline, indented or on one line. 0, -errno, -ENOMEM. */
int al_output_json(const ProtobufCMessage *message, bool indented);

/* A line on standard error: "airlock: ...". */
void al_output_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Says how a call failed; how to start a server when none was reached at `address`. */
void al_output_call_error(const char *address, const struct al_call_status *status);

/* Text that grows; one that did not fit into memory is cut. */
struct al_text {
    char *data; /* owned, terminated; NULL: empty */
    size_t len;
    size_t cap;
};

void al_text_add(struct al_text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds foreign words: control bytes become \xNN. */
void al_text_add_escaped(struct al_text *text, const char *words);

/* Writes the text to the fd and frees it. 0 or -errno. */
int al_text_flush(struct al_text *text, int fd);

/* Whether colours are wanted on the fd: a terminal that is not dumb, and NO_COLOR not set. */
bool al_output_has_colours(int fd);

#define AL_COLOUR_RED   "\033[31m"
#define AL_COLOUR_GREEN "\033[32m"
#define AL_COLOUR_BOLD  "\033[1m"
#define AL_COLOUR_NONE  "\033[0m"
