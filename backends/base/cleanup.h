/*
 * Scope-bound ownership: the variable's owner releases it when the scope ends, unless it was
 * stolen. Use only for a single owner; where the order of releases matters, write a forward `goto
 * out`.
 */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void al_cleanup_freep(void *p)
{
    free(*(void **)p);
}

static inline void al_cleanup_closep(const int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

static inline void al_cleanup_fclosep(FILE **f)
{
    if (*f) {
        fclose(*f);
    }
}

static inline void al_cleanup_closedirp(DIR **d)
{
    if (*d) {
        closedir(*d);
    }
}

#define AL_CLEANUP(fn)   __attribute__((cleanup(fn)))
#define al_auto_free     AL_CLEANUP(al_cleanup_freep)
#define al_auto_close    AL_CLEANUP(al_cleanup_closep)
#define al_auto_fclose   AL_CLEANUP(al_cleanup_fclosep)
#define al_auto_closedir AL_CLEANUP(al_cleanup_closedirp)

/* Takes the pointer or fd out of its variable, which owns nothing afterwards. */
#define al_steal(p)                    \
    ({                                 \
        __typeof__(p) *slot_ = &(p);   \
        __typeof__(p) value_ = *slot_; \
        *slot_ = NULL;                 \
        value_;                        \
    })

static inline int al_steal_fd(int *fd)
{
    int value = *fd;
    *fd = -1;
    return value;
}

/* Closes the fd if there is one and leaves -1. */
static inline void al_close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}
