/* From the items of a job to files, arguments and environment. One job a process: nothing of it is
 * ever freed. */
#pragma once

#include "backends/api/artifact.h"
#include "backends/base/err.h"
#include "backends/docker/frame.h"
#include "backends/docker/job.h"

#define AL_ITEMS_ENV_BASE 9 /* variables that every program gets, and TERM and AIRLOCK_INPUTS */

struct al_items {
    const struct al_container_plan *plan;
    int workdir;
    struct al_frame_item item; /* the one that comes in; type 0: none */
    char name[AL_PATH_MAX];
    int fd;             /* of a file */
    struct al_buf text; /* of what is none */
    const char *args[AL_ARGS_MAX + AL_CONTAINER_WORDS_MAX + 1];
    size_t n_args;
    char *env[AL_ENV_MAX + AL_ITEMS_ENV_BASE + 1]; /* NAME=VALUE, NULL behind the last */
    size_t n_env;
    const char *globs[AL_ARTIFACT_GLOBS_MAX];
    size_t n_globs;
};

/* Makes the workdir and goes there. `plan` is borrowed. */
int al_items_begin(struct al_items *items, const struct al_container_plan *plan,
                   struct al_err *err);
int al_items_item(struct al_items *items, const uint8_t *data, size_t n, struct al_err *err);
int al_items_data(struct al_items *items, const uint8_t *data, size_t n, struct al_err *err);
/* Everything has come. */
int al_items_end(struct al_items *items, struct al_err *err);

/* The last one of a name wins. -ENOMEM, also when there are too many. */
int al_items_add_env(struct al_items *items, const char *name, const char *value);
bool al_items_has_env(const struct al_items *items, const char *name);

/* Where programs without a path are looked for. */
extern const char al_items_path[];
