/*
 * Following a job to its end: prints what it says, forwards standard input, and, when the job
 * lingers and the connection breaks, attaches again where it stopped.
 */
#pragma once

#include <stdatomic.h>

#include "client/cli.h"
#include "client/feed.h"
#include "client/progress.h"

#define AL_FOLLOW_ID_BYTES 17

struct al_follow {
    /* Set by the caller. */
    const struct al_cli *cli;
    const Airlock__V1__StreamStart *start; /* NULL: attach from the beginning */
    char job_id[AL_FOLLOW_ID_BYTES];       /* with a start: "" until the server has told it */
    uint64_t sequence;                     /* of the last event seen; 0: none */
    int64_t patience_ms; /* for how long a broken connection is tried again; 0: not at all */
    struct al_feed_options feed_options;
    int folder;          /* for artifacts; -1: none */
    bool shows_progress; /* on a terminal */

    /* Its own. */
    struct al_feed *feed;
    struct al_stream *stream;
    atomic_bool has_left; /* the user, by the keys for it */
    struct al_progress progress;
    bool has_greeted;  /* this attached stream */
    bool is_connected; /* there was a message at all */
    int64_t heard_ms;  /* when the last one came; CLOCK_MONOTONIC */
    struct al_arena *arena;
    const Airlock__V1__ExecutionResult *result; /* in the arena */
    struct al_program_output output;
};

/* Returns the exit code. The user's terminal is raw meanwhile, if a tty is asked for. */
int al_follow_job(struct al_follow *follow);
