/*
 * What a cell's collector writes into the job's artifacts pipe: a frame for each file, sorted by
 * path, and a last one. Without the last one the collector was cut short. airlockd takes all of it
 * for hostile. Native byte order: both ends are on one machine and of one build.
 */
#pragma once

#include <stdint.h>

enum al_artifact_frame_type {
    AL_ARTIFACT_FRAME_FILE = 1, /* path_len bytes of path and len of content follow */
    AL_ARTIFACT_FRAME_END,      /* nothing follows */
};

struct al_artifact_frame {
    uint32_t type;
    uint32_t mode;
    uint32_t path_len;
    uint32_t truncated; /* 0 or 1 */
    uint64_t len;       /* of END: how many matching files were omitted */
};
