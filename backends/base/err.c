#include "backends/base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int errno_of(enum al_err_code code)
{
    switch (code) {
    case AL_ERR_INVALID_ARGUMENT:
        return -EINVAL;
    case AL_ERR_NOT_FOUND:
        return -ENOENT;
    case AL_ERR_FAILED_PRECONDITION:
        return -ENOTSUP;
    case AL_ERR_RESOURCE_EXHAUSTED:
        return -EBUSY;
    case AL_ERR_UNAVAILABLE:
        return -ESHUTDOWN;
    case AL_ERR_PERMISSION_DENIED:
        return -EPERM;
    case AL_ERR_NONE:
    case AL_ERR_INTERNAL:
        break;
    }
    return -EIO;
}

/* Where `text` is to be cut so that at most n bytes stay and no character is split. */
static size_t cut_between_characters(const char *text, size_t n)
{
    size_t len = strnlen(text, n + 1);
    if (len <= n) {
        return len;
    }
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) {
        n--;
    }
    return n;
}

void al_err_copy_text(char *to, size_t size, const char *from)
{
    size_t n = cut_between_characters(from, size - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

/* "head: tail", or the head alone when there is no tail. */
static void __attribute__((format(printf, 3, 0)))
put_text(struct al_err *err, const char *tail, const char *fmt, va_list ap)
{
    char text[2 * AL_ERR_TEXT_MAX];
    int n = vsnprintf(text, sizeof text, fmt, ap);
    if (tail && n >= 0 && (size_t)n < AL_ERR_TEXT_MAX) {
        snprintf(text + n, sizeof text - (size_t)n, ": %s", tail);
    }
    al_err_copy_text(err->text, sizeof err->text, text);
}

int al_err_set(struct al_err *err, enum al_err_code code, const char *fmt, ...)
{
    if (err && err->code == AL_ERR_NONE) {
        va_list ap;
        va_start(ap, fmt);
        put_text(err, NULL, fmt, ap);
        va_end(ap);
        err->code = code;
    }
    return errno_of(code);
}

int al_err_errno(struct al_err *err, int errnum, const char *fmt, ...)
{
    if (err && err->code == AL_ERR_NONE) {
        va_list ap;
        va_start(ap, fmt);
        put_text(err, strerror(errnum), fmt, ap);
        va_end(ap);
        err->code = AL_ERR_INTERNAL;
    }
    return errnum > 0 ? -errnum : -EIO;
}

void al_err_wrap(struct al_err *err, const char *fmt, ...)
{
    if (!err || err->code == AL_ERR_NONE) {
        return;
    }
    char inner[AL_ERR_TEXT_MAX];
    memcpy(inner, err->text, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    put_text(err, inner, fmt, ap);
    va_end(ap);
}
