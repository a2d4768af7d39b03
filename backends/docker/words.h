/* A runtime's argv from the configuration, with the paths of one job in it. */
#pragma once

#include <stddef.h>

#include "backends/docker/job.h"

struct al_docker_words {
    char *text; /* all of them, each with its NUL; owned */
    size_t n;
    const char *word[AL_CONTAINER_WORDS_MAX];
};

/* Splits at blanks; {code} and {output} become the paths. -ENOMEM, -E2BIG. */
int al_docker_words_make(struct al_docker_words *words, const char *text, const char *code,
                         const char *output);
void al_docker_words_finish(struct al_docker_words *words);
