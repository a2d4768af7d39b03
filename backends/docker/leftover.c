#include "backends/docker/leftover.h"

#include <stdio.h>
#include <string.h>

void al_leftover_init(struct al_leftover *l)
{
    pthread_mutex_init(&l->lock, NULL);
    l->n = 0;
}

void al_leftover_finish(struct al_leftover *l)
{
    pthread_mutex_destroy(&l->lock);
}

void al_leftover_add(struct al_leftover *l, const char *name)
{
    pthread_mutex_lock(&l->lock);
    if (l->n < AL_LEFTOVER_MAX) {
        snprintf(l->names[l->n++], AL_CONTAINER_NAME_MAX, "%s", name);
    }
    pthread_mutex_unlock(&l->lock);
}

bool al_leftover_take(struct al_leftover *l, char ret[AL_CONTAINER_NAME_MAX])
{
    pthread_mutex_lock(&l->lock);
    bool some = l->n > 0;
    if (some) {
        memcpy(ret, l->names[--l->n], AL_CONTAINER_NAME_MAX);
    }
    pthread_mutex_unlock(&l->lock);
    return some;
}
