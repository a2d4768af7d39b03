/*
 * Writes the artifacts of a result below a folder. Their paths come from a program that nobody
 * trusts: each is resolved beneath the folder, no symbolic link is followed at any place below it,
 * and what is already there is replaced, if at all, only where it is a regular file.
 */
#pragma once

#include <stdbool.h>

#include "backends/base/err.h"
#include "proto/airlock/v1/execution.pb-c.h"

/* Opens the folder, which is made if it is missing (its parent is not); the path itself is the
 * user's and may lead through links. The fd or -errno. */
int al_artifacts_open_folder(const char *path, struct al_err *err);

/* Writes one artifact with its permission bits, less the umask; folders on its way are made. The
 * error names the path. A file appears whole or not at all. Without `replace`, one that is there
 * already stays, and that is an error. */
int al_artifacts_write(int folder, const Airlock__V1__Artifact *artifact, bool replace,
                       struct al_err *err);
