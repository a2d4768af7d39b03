/*
 * Theory of operation. inih gets its lines from read_line, which counts them and refuses what would
 * be cut. An indented line comes from inih as a further value of the key above it; read_line notes
 * that, so that it can be told from a key given twice. After the first failure neither has more to
 * say, so that it is the one that is shown.
 */
#include "backends/base/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"

#define FILE_BYTES_MAX   (256u << 10)
#define SECTION_NAME_MAX 49 /* inih's buffer, less the terminator */

struct reader {
    const struct al_ini_handler *handler;
    void *arg;
    const char *next; /* the unread rest of the text */
    const char *end;
    int line;
    bool indented;                       /* that line */
    char last[2 * SECTION_NAME_MAX + 4]; /* "section/key" of the value before */
    struct al_err err;
    bool failed;
};

static void fail(struct reader *r, const char *what)
{
    al_err_set(&r->err, AL_ERR_INVALID_ARGUMENT, "%s", what);
    r->failed = true;
}

static void fail_length(struct reader *r, const char *what, int max)
{
    al_err_set(&r->err, AL_ERR_INVALID_ARGUMENT, "%s is longer than %d bytes", what, max);
    r->failed = true;
}

static void take_section(struct reader *r, const char *line, size_t len)
{
    const char *close = memchr(line, ']', len);
    char name[SECTION_NAME_MAX + 1];
    size_t name_len = close ? (size_t)(close - line - 1) : 0;
    if (name_len > SECTION_NAME_MAX) {
        fail_length(r, "the section's name", SECTION_NAME_MAX);
    } else if (close && r->handler->section) {
        *(char *)mempcpy(name, line + 1, name_len) = '\0';
        r->failed = r->handler->section(r->arg, name, &r->err) < 0;
    }
}

/* fgets for inih. */
static char *read_line(char *buf, int size, void *stream)
{
    struct reader *r = stream;
    if (r->failed || r->next == r->end) {
        return NULL;
    }
    const char *newline = memchr(r->next, '\n', (size_t)(r->end - r->next));
    const char *after = newline ? newline + 1 : r->end;
    size_t len = (size_t)(after - r->next);
    r->line++;
    r->indented = *r->next == ' ' || *r->next == '\t';
    if (len >= (size_t)size) {
        fail_length(r, "the line", size - 2);
    } else if (memchr(r->next, '\0', len)) {
        fail(r, "a NUL byte");
    } else if (*r->next == '[') {
        take_section(r, r->next, len);
    }
    if (r->failed) {
        return NULL;
    }
    *(char *)mempcpy(buf, r->next, len) = '\0';
    r->next = after;
    return buf;
}

/* inih's convention: 0 is failure. */
static int take_value(void *arg, const char *section, const char *key, const char *text)
{
    struct reader *r = arg;
    char id[sizeof r->last];
    if (r->failed) {
        return 0;
    }
    snprintf(id, sizeof id, "%s/%s", section, key);
    struct al_ini_value value = {.section = section,
                                 .key = key,
                                 .text = text,
                                 .continues = r->indented && strcmp(id, r->last) == 0};
    memcpy(r->last, id, sizeof id);
    r->failed = r->handler->value(r->arg, &value, &r->err) < 0;
    return !r->failed;
}

int al_ini_parse(const char *name, const char *text, size_t len,
                 const struct al_ini_handler *handler, void *arg, struct al_err *err)
{
    struct reader r = {.handler = handler, .arg = arg, .next = text, .end = text + len};
    int bad_line = ini_parse_stream(read_line, &r, take_value, &r);
    if (!r.failed && bad_line > 0) {
        r.line = bad_line;
        fail(&r, "neither [section] nor key = value");
    } else if (!r.failed && bad_line < 0) {
        fail(&r, "out of memory");
    }
    return r.failed
               ? al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s:%d: %s", name, r.line, r.err.text)
               : 0;
}

int al_ini_read(const char *path, const struct al_ini_handler *handler, void *arg,
                struct al_err *err)
{
    al_auto_free char *text = malloc(FILE_BYTES_MAX);
    ssize_t len = text ? al_io_read_file(AT_FDCWD, path, text, FILE_BYTES_MAX) : -ENOMEM;
    if (len < 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: %s", path, strerror((int)-len));
    }
    return al_ini_parse(path, text, (size_t)len, handler, arg, err);
}
