/*
 * Jobs in containers of a docker daemon. Off until it is configured: whoever may talk to the daemon
 * is root on its machine.
 */
#pragma once

#include "backends/api/backend.h"
#include "backends/docker/config.h"

/* Asks the daemon what it can, makes the images that jobs run in, removes what an earlier run of
 * the instance has left. Takes up to a few seconds, and minutes with a daemon that does not answer.
 * Without a daemon the backend is there and says why it is unavailable. Borrows the configuration;
 * `data_dir` keeps the instance's name, `init_path` is the program airlock-container-init. NULL
 * when memory is out. */
struct al_backend *al_docker_create(const struct al_docker_config *config, const char *data_dir,
                                    const char *init_path);
