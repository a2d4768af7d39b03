/*
 * A job's bulk (code, files, inputs, environment, arguments) as one sealed memfd: written by
 * airlockd, carried by the launcher unread, unpacked by the program's own process inside the cell.
 * The reader takes its bytes for hostile: every length is checked against what is left.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/api/job_spec.h"

enum al_bundle_type {
    AL_BUNDLE_CODE = 1, /* no name */
    AL_BUNDLE_FILE,     /* name: path below the workdir; mode */
    AL_BUNDLE_INPUTS,   /* no name; canonical JSON */
    AL_BUNDLE_ENV,      /* name and data: variable and value */
    AL_BUNDLE_ARG,      /* data: the argument */
    AL_BUNDLE_ARTIFACT, /* data: a glob; only the collector reads it */
};

/* One item. The pointers lie in the bundle. Names, and the data of ENV, ARG and ARTIFACT, hold no
 * NUL and have one behind them. */
struct al_bundle_item {
    enum al_bundle_type type;
    uint32_t mode;
    const char *name;
    const uint8_t *data;
    size_t len;
};

/* The sealed memfd, owned by the caller; -errno, -EFBIG above AL_BUNDLE_BYTES_MAX. */
int al_bundle_create(const struct al_job_spec *spec);

/* Checks that the fd is a memfd that nobody can change or shrink any more and is within bounds, so
 * that a mapping of it can be read without surprises. The size, or -errno. */
ssize_t al_bundle_check_fd(int fd);

struct al_bundle_reader {
    const uint8_t *data;
    size_t left;
};

/* 1 and an item, 0 at the end, -EBADMSG. */
int al_bundle_next(struct al_bundle_reader *r, struct al_bundle_item *ret);
