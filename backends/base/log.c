#include "backends/base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1200

static const char *proc_name = "airlock";
static enum al_log_level least_level = AL_LOG_INFO;

void al_log_init(const char *proc, enum al_log_level least)
{
    proc_name = proc;
    least_level = least;
}

/* The C1 controls, U+0080 to U+009F, are C2 80 to C2 9F in UTF-8: terminals obey them too. */
static size_t control_length(const char *p)
{
    unsigned char c = (unsigned char)p[0];
    if (c < 0x20 || c == 0x7f) {
        return 1;
    }
    return c == 0xc2 && ((unsigned char)p[1] & 0xe0) == 0x80 ? 2 : 0;
}

static size_t escape(char *to, size_t size, const char *from)
{
    size_t n = 0;
    while (*from && n + 2 * sizeof "\\xNN" < size) {
        size_t control = control_length(from);
        for (size_t i = 0; i < control; i++) {
            n += (size_t)snprintf(to + n, size - n, "\\x%02x", (unsigned char)*from++);
        }
        if (control == 0 && (*from == '"' || *from == '\\')) {
            to[n++] = '\\';
        }
        if (control == 0) {
            to[n++] = *from++;
        }
    }
    return n;
}

void al_log(enum al_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    if (level < least_level) {
        return;
    }
    char text[LINE_MAX_BYTES / 2];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);

    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    char line[LINE_MAX_BYTES];
    size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof line - n, ".%03dZ level=%s proc=%s msg=\"",
                          (int)(now.tv_nsec / 1000000), names[level], proc_name);
    n += escape(line + n, sizeof line - n - 2, text);
    line[n++] = '"';
    line[n++] = '\n';
    ssize_t put = write(STDERR_FILENO, line, n);
    (void)put; /* a log that cannot be written has nowhere to say so */
}
