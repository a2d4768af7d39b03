/*
 * Turns Ctrl-C and its like into a cancelled connection, so that the server kills the job. A thread
 * waits for the signals, which every other thread has blocked.
 */
#pragma once

#include "client/client.h"

struct al_interrupt;

/* Blocks SIGINT, SIGTERM and, unless it is ignored, SIGHUP in the calling thread; call it before
 * any other thread exists, al_client_create()'s included. NULL when memory or fds are out. */
struct al_interrupt *al_interrupt_create(void);

/* Starts the thread. After the first signal the connection is cancelled, and the process ends by
 * force if it still runs a second later: its output may be stuck. 0 or -errno; once only. */
int al_interrupt_start(struct al_interrupt *interrupt, struct al_client *client);

/* To be destroyed before the connection. NULL is ignored. */
void al_interrupt_destroy(struct al_interrupt *interrupt);

/* The signal that came, or 0. From any thread. */
int al_interrupt_signal(const struct al_interrupt *interrupt);
