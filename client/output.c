#include "client/output.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "client/json.h"

#define INDENT 2

int al_output_write(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        ssize_t put = TEMP_FAILURE_RETRY(write(fd, p, n));
        if (put < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
            continue;
        }
        if (put < 0) {
            return -errno;
        }
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

int al_output_json(const ProtobufCMessage *message, bool indented)
{
    json_t *json = al_json_from_message(message);
    al_auto_free char *text = json ? al_json_text(json, indented ? INDENT : 0) : NULL;
    json_decref(json);
    if (!text) {
        return -ENOMEM;
    }
    size_t len = strlen(text);
    text[len] = '\n';
    return al_output_write(STDOUT_FILENO, text, len + 1);
}

static bool make_room(struct al_text *text, size_t n)
{
    if (text->len + n < text->cap) {
        return true;
    }
    size_t cap = (text->len + n) * 2 + 64;
    char *data = realloc(text->data, cap);
    if (data) {
        text->data = data;
        text->cap = cap;
    }
    return data != NULL;
}

static void add_args(struct al_text *text, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n > 0 && make_room(text, (size_t)n)) {
        text->len += (size_t)vsnprintf(text->data + text->len, (size_t)n + 1, fmt, again);
    }
    va_end(again);
}

void al_text_add(struct al_text *text, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_args(text, fmt, args);
    va_end(args);
}

/* The C1 controls, U+0080 to U+009F, are C2 80 to C2 9F in UTF-8. */
static size_t control_length(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    if (u[0] < 0x20 || u[0] == 0x7f) {
        return 1;
    }
    return u[0] == 0xc2 && u[1] >= 0x80 && u[1] <= 0x9f ? 2 : 0;
}

void al_text_add_escaped(struct al_text *text, const char *words)
{
    while (*words) {
        size_t control = control_length(words);
        if (control == 0) {
            al_text_add(text, "%c", *words++);
        }
        for (; control > 0; control--) {
            al_text_add(text, "\\x%02x", (unsigned char)*words++);
        }
    }
}

int al_text_flush(struct al_text *text, int fd)
{
    int rc = text->len > 0 ? al_output_write(fd, text->data, text->len) : 0;
    free(text->data);
    *text = (struct al_text){0};
    return rc;
}

bool al_output_has_colours(int fd)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

static void add_name(struct al_text *text)
{
    bool colours = al_output_has_colours(STDERR_FILENO);
    al_text_add(text, "%sairlock:%s ", colours ? AL_COLOUR_RED : "", colours ? AL_COLOUR_NONE : "");
}

void al_output_error(const char *fmt, ...)
{
    struct al_text words = {0};
    struct al_text line = {0};
    va_list args;
    va_start(args, fmt);
    add_args(&words, fmt, args);
    va_end(args);
    add_name(&line);
    al_text_add_escaped(&line, words.data ? words.data : "out of memory");
    al_text_add(&line, "\n");
    free(words.data);
    (void)al_text_flush(&line, STDERR_FILENO);
}

void al_output_call_error(const char *address, const struct al_call_status *status)
{
    if (status->unreachable) {
        al_output_error("no server answers at %s (%s)", address, status->text);
        al_output_error("start one with 'airlockd --listen %s', or name another with --server",
                        address);
        return;
    }
    al_output_error("%s: %s", al_call_status_name(status->code),
                    *status->text ? status->text : "the server gave no reason");
    if (status->retry_pushback_ms >= 0) {
        al_output_error("the server asks to try again in %lld ms",
                        (long long)status->retry_pushback_ms);
    }
}
