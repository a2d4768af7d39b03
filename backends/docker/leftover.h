/* Names of containers whose removal has failed, to be tried again. Thread-safe. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define AL_LEFTOVER_MAX       256 /* what is beyond it goes at the next start */
#define AL_CONTAINER_NAME_MAX 96

struct al_leftover {
    pthread_mutex_t lock; /* guards the rest */
    char names[AL_LEFTOVER_MAX][AL_CONTAINER_NAME_MAX];
    size_t n;
};

void al_leftover_init(struct al_leftover *l);
void al_leftover_finish(struct al_leftover *l);
void al_leftover_add(struct al_leftover *l, const char *name);
/* Takes one out; false when there is none. */
bool al_leftover_take(struct al_leftover *l, char ret[AL_CONTAINER_NAME_MAX]);
