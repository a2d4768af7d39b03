/*
 * A backend for tests of the server. The code of a job is what it does:
 *
 *   wait          nothing, until it is cancelled or its wall limit is over
 *   cat           returns its standard input until that ends
 *   count-in      waits for 0.2 s, then says how many bytes its standard input has, once that ends
 *   flood N       prints N bytes, waiting for room
 *   count N       prints N bytes that al_actor_byte tells, a few at a time, waiting for room
 *   signals       prints the number of each signal that comes, until it is cancelled
 *   fail          the backend fails
 */
#pragma once

#include <stdint.h>

#include "backends/api/backend.h"

/* Named "actor". NULL when memory is out. */
struct al_backend *al_actor_create(void);

/* The byte of `count` at that place. */
uint8_t al_actor_byte(uint64_t at);

/* Jobs that run at the moment, and bytes that all of them printed so far. */
unsigned al_actor_running(const struct al_backend *backend);
uint64_t al_actor_printed(const struct al_backend *backend);
