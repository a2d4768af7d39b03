/*
 * The globs of a request's artifacts. In a component of a path `*` stands for any characters, `?`
 * for one, `[a-z]` and `[!a-z]` for one of a set or not of it, and a backslash takes the meaning
 * from what follows. `**` as a whole component stands for any number of folders, none included; as
 * the last one for every file below. As in a shell, a leading dot is matched by nothing but a dot:
 * `**` enters no hidden folder. A character is a UTF-8 one, or a byte that belongs to none.
 *
 * Matching goes along with a walk through folders: a set of positions in the glob, one bit each,
 * says how much of it the path so far may have used up. So a folder in which nothing can match is
 * never entered, and no glob costs more than its length times that of the name, for each position.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/artifact.h"

/* A path has no more components, and so a glob none either, "**" left aside. */
#define AL_GLOB_PARTS_MAX (AL_ARTIFACT_DEPTH_MAX + 1)

struct al_glob_part {
    const char *text;
    size_t len;
    bool gap; /* any folders may come before it */
};

/* Points into the text that it was parsed from. */
struct al_glob {
    struct al_glob_part parts[AL_GLOB_PARTS_MAX];
    size_t n;
};

/* 0; -E2BIG for one that no path within the bounds can match. */
int al_glob_parse(const char *text, struct al_glob *ret);

/* The positions before the first component. */
#define AL_GLOB_START UINT64_C(1)

/* Those after a further component of the path. 0: nothing in there can match. */
uint64_t al_glob_step(const struct al_glob *glob, uint64_t positions, const char *name, size_t len);

/* The path so far, as a file. */
static inline bool al_glob_is_match(const struct al_glob *glob, uint64_t positions)
{
    return positions >> glob->n & 1;
}

/* Something below the path so far, as a folder. */
static inline bool al_glob_goes_on(const struct al_glob *glob, uint64_t positions)
{
    return (positions & ~(UINT64_C(1) << glob->n)) != 0;
}
