/*
 * What the parts of convert share. Each convert_* checks its fields of the message and fills in
 * those of the request; 0, or a negative value with `err` set.
 */
#pragma once

#include "service/convert.h"

/* execve takes no string longer than 128 KiB, terminator included. */
#define CONVERT_EXEC_STRING_MAX (128u * 1024 - 1)

struct convert {
    const struct al_convert_env *env;
    const struct al_request_limits *limits;
    const Airlock__V1__RunRequest *message;
    struct al_arena *arena;
    struct al_request *request;
    struct al_err *err;
};

/* The arena has no room. */
int convert_exhausted(struct al_err *err);

/* Refuses more than max of what is counted: "args: 300 arguments, at most 256". */
int convert_at_most(struct al_err *err, const char *field, size_t n, size_t max, const char *what);

/* convert_ids.c */
int convert_ids(struct convert *c);

/* convert_quotas.c */
int convert_quotas(struct convert *c);

/* convert_files.c; the workdir first. */
int convert_workdir(struct convert *c);
int convert_files(struct convert *c);
int convert_artifacts(struct convert *c);

/* In convert_files.c too; after all that is put into the sandbox. */
int convert_disk(struct convert *c);

/* convert_inputs.c */
int convert_inputs(struct convert *c);

/* convert_pairs.c */
int convert_env(struct convert *c);
int convert_metadata(struct convert *c);

/* convert_lists.c */
int convert_args(struct convert *c);
int convert_egress(struct convert *c);

/* convert_backend.c; last, since it compares what is asked with what there is. */
int convert_backend(struct convert *c);
