/*
 * What the configuration says of docker: [docker], and a section [image NAME] for each runtime.
 * Plain data, filled by airlockd's reader and never changed afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/err.h"

#define AL_DOCKER_IMAGES_MAX 16
#define AL_DOCKER_NAME_MAX   64
#define AL_DOCKER_TEXT_MAX   512

/* A runtime. argv, compile and aliases are words with single blanks between. */
struct al_docker_image {
    char name[AL_DOCKER_NAME_MAX];
    char image[256];                  /* as docker run takes it */
    char argv[AL_DOCKER_TEXT_MAX];    /* "{code}" and "{output}" stand for those files' paths */
    char compile[AL_DOCKER_TEXT_MAX]; /* "": no compile step */
    char aliases[AL_DOCKER_NAME_MAX * 2];
    char code_file[AL_DOCKER_NAME_MAX];
    char output_file[AL_DOCKER_NAME_MAX];
    char version[AL_DOCKER_NAME_MAX]; /* "": the program is asked */
    uint32_t seen;                    /* keys that were given */
};

struct al_docker_config {
    char host[256]; /* "": the backend is off; unix:///PATH or tcp://HOST:PORT */
    char tls_ca[256];
    char tls_cert[256];
    char tls_key[256];
    char user[AL_DOCKER_NAME_MAX];        /* "UID:GID" within a container; 65534:65534 */
    char oci_runtime[AL_DOCKER_NAME_MAX]; /* "": the daemon's default */
    uint32_t require;                     /* enum al_layer bits; all but userns and own_uid */
    struct al_docker_image images[AL_DOCKER_IMAGES_MAX];
    size_t n_images;
    uint32_t seen;
};

void al_docker_config_defaults(struct al_docker_config *config);

/* Whether the section is one of these. */
bool al_docker_config_has(const char *section);

/* A section begins: makes the image of an [image NAME]. INVALID_ARGUMENT. */
int al_docker_config_open(struct al_docker_config *config, const char *section, struct al_err *err);

/* One key of such a section; `continues`: an indented line below it. INVALID_ARGUMENT, the text
 * names neither section nor key. */
int al_docker_config_set(struct al_docker_config *config, const char *section, const char *key,
                         bool continues, const char *text, struct al_err *err);

/* What no single key can check. */
int al_docker_config_check(const struct al_docker_config *config, struct al_err *err);
