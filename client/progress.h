/*
 * A line on a terminal that says how a job fares while its output is awaited. It stands below the
 * output: it is taken away before more of that is written, and not shown while the output is in the
 * middle of a line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/airlock/v1/execution.pb-c.h"

struct al_progress {
    bool is_wanted;
    bool is_shown;
    int64_t begun_ms; /* CLOCK_MONOTONIC, as the next one */
    int64_t next_ms;  /* when to show it again */
    uint64_t bytes;   /* of output, so far */
    Airlock__V1__JobStatus status;
};

/* Where standard error is not a terminal that can do it, nothing is ever shown. The first line
 * comes after a moment, so that a quick job has none. */
void al_progress_start(struct al_progress *progress);

/* Takes note of what the message tells. */
void al_progress_note(struct al_progress *progress, const Airlock__V1__StreamResponse *message);

/* How long to wait for a message before the line is to be shown again; -1: for ever. */
int64_t al_progress_wait_ms(const struct al_progress *progress);

/* Shows the line when its time has come. */
void al_progress_show(struct al_progress *progress, bool mid_line);

/* Takes the line away, if there is one. */
void al_progress_clear(struct al_progress *progress);
