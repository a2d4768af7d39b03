/* What an image's programs and the containers of a daemon are like: found out by running one. */
#pragma once

#include "backends/docker/run.h"

/* Runs the runtime's program with --version, in a container like any job's. `version` is only
 * written if the configuration names none. Layers: enum al_layer bits that were in force. */
int al_docker_probe(struct al_docker_host *host, const struct al_docker_runtime *runtime,
                    char *version, size_t size, uint32_t *ret_layers, struct al_err *err);
