/*
 * The way from a job's callers to the backend that runs it: cancel, stdin, signals, "the sink has
 * room again". One eventfd wakes the backend's poll loop. The service's side may be called from any
 * thread; the backend's side from the thread that runs the job only. Created and destroyed by the
 * job, which outlives the run. The lock inside is never held across a callback.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/job_spec.h"

#define AL_CTL_STDIN_MAX   (256u << 10) /* bytes of stdin held for a program that does not read */
#define AL_CTL_SIGNALS_MAX 32 /* signals waiting to be delivered; further ones are refused */

struct al_ctl;

/* NULL when memory or fds are out. */
struct al_ctl *al_ctl_create(void);
void al_ctl_destroy(struct al_ctl *ctl);

/* --- the service's side --- */

/* The job is to die. Idempotent. Kill, a client that left, a cancelled call: all the same to a
 * backend. */
void al_ctl_cancel(struct al_ctl *ctl);

/* The sink can take bytes again. */
void al_ctl_room(struct al_ctl *ctl);

/* Takes up to n bytes of stdin; returns how many. After al_ctl_stdin_eof, or once the program has
 * closed its stdin, bytes are taken and dropped: writing to a program that does not listen is
 * harmless. */
size_t al_ctl_stdin_push(struct al_ctl *ctl, const uint8_t *data, size_t n);
void al_ctl_stdin_eof(struct al_ctl *ctl);

/* Called (from the backend's thread, without locks) each time a full stdin buffer has room again.
 * Set before the run starts; NULL: nobody cares. */
void al_ctl_on_stdin_room(struct al_ctl *ctl, void (*fn)(void *arg), void *arg);

/* False when too many signals wait already. */
bool al_ctl_signal(struct al_ctl *ctl, int signo);

/* The terminal has another size. The latest one counts. */
void al_ctl_resize(struct al_ctl *ctl, struct al_terminal_size size);

/* --- the backend's side --- */

/* Readable when something below may have changed. Borrowed. */
int al_ctl_fd(const struct al_ctl *ctl);

/* Clears the eventfd; call before looking at the rest, so that nothing is missed. */
void al_ctl_clear(struct al_ctl *ctl);

bool al_ctl_cancelled(struct al_ctl *ctl);

/* Copies up to n bytes of waiting stdin without removing them; *ret_eof says that none will follow
 * those that wait. al_ctl_stdin_drop then removes what could be written. */
size_t al_ctl_stdin_peek(struct al_ctl *ctl, uint8_t *data, size_t n, bool *ret_eof);
void al_ctl_stdin_drop(struct al_ctl *ctl, size_t n);

/* The program has closed its stdin, or ended: what waits and what comes is dropped. */
void al_ctl_stdin_closed(struct al_ctl *ctl);

/* The next waiting signal, or 0. */
int al_ctl_take_signal(struct al_ctl *ctl);

/* A size that was not taken yet; rows 0: none. */
struct al_terminal_size al_ctl_take_size(struct al_ctl *ctl);
