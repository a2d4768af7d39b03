/*
 * Reads what a cell's collector sends, piece by piece as it comes, and believes none of it: a path
 * that is not relative, valid and behind the one before it, a number out of its range, more files
 * or bytes than the job may have, anything behind the last frame, all end it. What was complete by
 * then counts. Memory is taken as the frames announce it, and never more than the job reserved.
 */
#pragma once

#include "backends/api/artifact.h"
#include "backends/launcher/artifact_frame.h"

enum al_artifact_reader_state {
    AL_ARTIFACT_READER_HEAD,
    AL_ARTIFACT_READER_PATH,
    AL_ARTIFACT_READER_CONTENT,
    AL_ARTIFACT_READER_ENDED,
    AL_ARTIFACT_READER_FAILED,
};

struct al_artifact_reader {
    struct al_artifacts *to;
    enum al_artifact_reader_state state;
    size_t got;     /* bytes of the part that the state says */
    uint64_t limit; /* what further contents may have together */
    struct al_artifact_frame head;
    struct al_artifact file; /* not complete yet */
};

/* `to` is empty and borrowed until finish. `bytes_max`: of all contents together. */
void al_artifact_reader_init(struct al_artifact_reader *r, struct al_artifacts *to,
                             uint64_t bytes_max);

/* 0; -EBADMSG or -ENOMEM, and again at every later call. */
int al_artifact_reader_feed(struct al_artifact_reader *r, const uint8_t *data, size_t n);

/* Feeds it what a non-blocking pipe has for now; closes that when it has ended or is not to be read
 * any further. */
void al_artifact_reader_drain(struct al_artifact_reader *r, int *fd);

/* No more comes. Without the last frame one is counted as omitted, for however many it was. */
void al_artifact_reader_finish(struct al_artifact_reader *r);
