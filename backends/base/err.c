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

int al_err_set(struct al_err *err, enum al_err_code code, const char *fmt, ...)
{
    if (err && err->code == AL_ERR_NONE) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
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
        int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof err->text) {
            snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", strerror(errnum));
        }
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
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof err->text) {
        int room = (int)sizeof err->text - n - 3; /* ": " and the end */
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %.*s", room > 0 ? room : 0, inner);
    }
}
