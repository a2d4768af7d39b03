/* Images with our init in them, made of the operator's ones; and what an earlier run has left. */
#pragma once

#include "backends/docker/run.h"

#define AL_DOCKER_INIT_PATH "/airlock-container-init"

/* The init's program, read once. */
struct al_docker_init_file {
    uint8_t *data; /* owned */
    size_t len;
    char digest[65]; /* SHA-256 in hex */
};

/* SHA-256 in hex; 0 or -EIO. */
int al_docker_digest(const void *data, size_t n, char ret[65]);

int al_docker_init_file_read(struct al_docker_init_file *file, const char *path,
                             struct al_err *err);
void al_docker_init_file_finish(struct al_docker_init_file *file);

/* Makes sure that there is an image with init for runtime->image, and names it in
 * runtime->derived; its content's digest, for the cache's key, goes to `ret_digest`. NOT_FOUND when
 * the daemon has no such image. */
int al_docker_image_derive(struct al_docker_host *host, const struct al_docker_init_file *init,
                           struct al_docker_runtime *runtime, char ret_digest[65],
                           struct al_err *err);

/* Removes the instance's images that none of the runtimes uses: those of an earlier init, or of
 * what had the same name before. Best effort. */
void al_docker_images_sweep(struct al_docker_host *host, const struct al_docker_runtime *runtimes,
                            size_t n);

/* Removes every container of the instance. */
int al_docker_reap(struct al_docker_host *host, struct al_err *err);
