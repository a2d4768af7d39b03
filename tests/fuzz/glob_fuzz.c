/*
 * Any text as a glob (the first line) over any path (the second). What matches has as many
 * components as the glob asks for at least, is not hidden from it, and a path with everything
 * special taken out of it matches itself.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/launcher/glob.h"
#include "tests/fuzz/fuzz.h"

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool matches(const struct al_glob *glob, const char *path, size_t *ret_components)
{
    uint64_t positions = AL_GLOB_START;
    *ret_components = 0;
    for (const char *at = path;; at++) {
        const char *end = strchrnul(at, '/');
        positions = al_glob_step(glob, positions, at, (size_t)(end - at));
        require(positions >> glob->n <= 1);
        (*ret_components)++;
        if (*end == '\0' || positions == 0) {
            return *end == '\0' && al_glob_is_match(glob, positions);
        }
        at = end;
    }
}

/* Each byte of a path behind a backslash, but for slashes and leading dots. */
static void quote(const char *path, char *to)
{
    for (const char *at = path; *at; at++) {
        bool leads = (at == path || at[-1] == '/') && *at == '.';
        if (*at != '/' && !leads && ((unsigned char)*at & 0x80) == 0) {
            *to++ = '\\';
        }
        *to++ = *at;
    }
    *to = '\0';
}

static void try_glob(const char *text, const char *path)
{
    static struct al_glob glob;
    size_t components;
    if (al_glob_parse(text, &glob) < 0) {
        return;
    }
    require(glob.n > 0 && glob.n <= AL_GLOB_PARTS_MAX);
    if (matches(&glob, path, &components)) {
        require(components >= glob.n);
        require(path[0] != '.' || text[0] == '.' || strncmp(text, "**/", 3) == 0);
    }
}

static void try_itself(const char *path)
{
    static struct al_glob glob;
    size_t components;
    char *quoted = malloc(2 * strlen(path) + 1);
    require(quoted);
    quote(path, quoted);
    if (al_glob_parse(quoted, &glob) == 0) {
        require(matches(&glob, path, &components));
    }
    free(quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = malloc(len + 1);
    require(text);
    if (len > 0) {
        memcpy(text, data, len);
    }
    text[len] = '\0';
    char *newline = strchr(text, '\n');
    if (newline) {
        *newline = '\0';
        try_glob(text, newline + 1);
        try_itself(newline + 1);
    }
    free(text);
    return 0;
}
