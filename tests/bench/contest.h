/*
 * Things that are measured against each other, turn about: A B A B …, so that whatever else the
 * machine does meets all of them alike. Who begins changes from round to round.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define AL_CONTEST_THREADS_MAX 16

struct al_contestant {
    const char *name;
    /* One repetition; ends the bench when it fails. `worker` is below the contest's threads, and at
     * most one call runs for a worker at a time. */
    void (*once)(void *arg, unsigned worker);
    void *arg;

    int64_t *ns; /* the measured times; al_contest_run allocates and sorts them */
    atomic_size_t n;
    int64_t busy_ns; /* elapsed in its turns */
};

struct al_contest {
    unsigned threads;  /* calls at a time */
    unsigned rounds;   /* turns of each contestant; one more before them is not counted */
    unsigned turn;     /* calls in a turn */
    unsigned pause_ms; /* before each call, so that what is made ahead is there again; 0: none */
};

void al_contest_run(const struct al_contest *contest, struct al_contestant *who, size_t n);

/* After al_contest_run; `p` from 0 to 1. */
int64_t al_contestant_percentile(const struct al_contestant *who, double p);
double al_contestant_per_second(const struct al_contestant *who);

void al_contestant_finish(struct al_contestant *who);
