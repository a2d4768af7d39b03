/*
 * An error for a human: a code that says what kind it is, and one line of text. It is set once,
 * where the cause is known, and wrapped on the way up. Pass NULL where nobody will read it.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum al_err_code {
    AL_ERR_NONE = 0,
    AL_ERR_INVALID_ARGUMENT, /* the caller's request is malformed: names field and allowed range */
    AL_ERR_NOT_FOUND,        /* no such backend or job */
    AL_ERR_FAILED_PRECONDITION, /* the backend lacks what was asked for, or is unavailable */
    AL_ERR_RESOURCE_EXHAUSTED,  /* too busy */
    AL_ERR_UNAVAILABLE,         /* draining */
    AL_ERR_PERMISSION_DENIED,
    AL_ERR_INTERNAL, /* our own or the system's fault */
};

#define AL_ERR_TEXT_MAX 480

struct al_err {
    enum al_err_code code;
    char text[AL_ERR_TEXT_MAX]; /* valid UTF-8 if the arguments were; always terminated */
};

/* Sets code and text; an error that is already set keeps its own. Returns a negative errno-style
 * value that fits the code, so that `return al_err_set(...)` reads well. */
int al_err_set(struct al_err *err, enum al_err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with code AL_ERR_INTERNAL, ": strerror(errnum)" appended, and -errnum returned. */
int al_err_errno(struct al_err *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "text: " before what is there. No effect on an error that is not set. */
void al_err_wrap(struct al_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Copies into `to` (size bytes, at least 1) what fits of `from`, never a part of a UTF-8 character.
 */
void al_err_copy_text(char *to, size_t size, const char *from);

static inline bool al_err_is_set(const struct al_err *err)
{
    return err->code != AL_ERR_NONE;
}
