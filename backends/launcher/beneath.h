/* Folders and files that are made below an open folder, through no link, whatever a program has put
 * there before. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/err.h"

/* The RESOLVE_* of openat2 for that. */
extern const uint64_t al_beneath_flags;

/* Opens as `flags` and `resolve` say. The fd, or -1 and errno. */
int al_beneath_open(int dir, const char *path, uint64_t flags, mode_t mode, uint64_t resolve);

/* The folders on the way to `path`, 0755; those that are there stay. */
int al_beneath_make_parents(int dir, const char *path, struct al_err *err);

/* A new file with exactly that mode, and the folders on the way to it, open for writing. The fd. */
int al_beneath_create(int dir, const char *path, mode_t mode, struct al_err *err);

/* The folder at `path`, made if `make`. The fd. */
int al_beneath_open_folder(int dir, const char *path, bool make, uint64_t resolve,
                           struct al_err *err);
