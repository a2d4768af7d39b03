/*
 * What the host has that no cell may get at: files, a process's sockets, shared memory, a message
 * queue. One a test process; names and bounds go to the attacks in their environment.
 */
#pragma once

#include <stddef.h>

#include "backends/api/job_spec.h"

#define WORLD_ENV 10

struct world {
    char dir[64]; /* secret, conf, and shared, which the cells see */
    struct al_env env[WORLD_ENV];
    size_t n_env;
    int abstract_fd;
    int loopback_fd;
    int leak_fd; /* of secret, and not CLOEXEC */
    int queue;
    int shm;
    char texts[WORLD_ENV][64];
};

/* The bounds of every job here: small, so that meeting them is quick, but not too small for an
 * interpreter that was started ahead. */
extern const struct al_quotas world_quotas;

/* Both fail the test's set-up when something cannot be had. */
void world_open(struct world *w);
void world_close(struct world *w);

/* Makes the setuid programs in shared belong to what is root in the cell of each of a launcher's
 * next jobs; `uid`: root's in the cell of its first. */
void world_own_setuid(const struct world *w, unsigned uid);
