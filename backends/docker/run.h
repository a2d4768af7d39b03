/* One job in one container, from its creation to its removal. */
#pragma once

#include <linux/filter.h>

#include "backends/api/backend.h"
#include "backends/docker/config.h"
#include "backends/docker/engine.h"
#include "backends/docker/leftover.h"

/* What all jobs of a backend share. */
struct al_docker_host {
    const struct al_docker_config *config;
    struct al_engine *engine;
    struct al_leftover leftover;
    struct sock_fprog filter; /* of system calls, for every program; owned */
    char instance[33];        /* hex digits */
};

/* A runtime whose image is there. */
struct al_docker_runtime {
    const struct al_docker_image *image;
    char derived[160]; /* the image with our init in it */
};

/* As al_backend_ops.run. `argv` and `compile` are the configuration's, or a probe's. Thread-safe.
 */
int al_docker_run(struct al_docker_host *host, const struct al_docker_runtime *runtime,
                  const char *compile, const char *argv, const struct al_job_spec *spec,
                  struct al_ctl *ctl, struct al_sink *sink, struct al_result *result,
                  struct al_err *err);
