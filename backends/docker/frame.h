/*
 * What airlockd and the init of a container say to each other over the container's standard input
 * and output: a head, then `len` bytes. Both ends are of one build, and of one kind of machine.
 * airlockd takes all of what comes for hostile bytes.
 *
 *   down   JOB and FILTER, then for each part of the job ITEM and its DATA, then GO; while the
 * program runs STDIN (never more than AL_FRAME_STDIN_WINDOW that was not yet TAKEN, so that nothing
 *          behind it has to wait), STDIN_END, SIGNAL, RESIZE, KILL. The end of it all kills the
 * job. up     CONTROL (a message of backends/launcher/message.h: STARTED, COMPILED, USAGE, EXIT),
 *          output, TAKEN, STDIN_CLOSED, perhaps ROOM (and ROOM_MADE down), ARTIFACTS; END is the
 *          last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/buf.h"

enum al_frame_type {
    AL_FRAME_JOB = 1, /* struct al_container_job and its strings, see job.h */
    AL_FRAME_FILTER,  /* struct sock_filter, many: what every program gets */
    AL_FRAME_ITEM,    /* struct al_frame_item and a name */
    AL_FRAME_DATA,    /* more of the item's content */
    AL_FRAME_GO,
    AL_FRAME_STDIN,
    AL_FRAME_STDIN_END,
    AL_FRAME_SIGNAL, /* a message of that name */
    AL_FRAME_RESIZE, /* struct al_terminal_size */
    AL_FRAME_KILL,
    AL_FRAME_ROOM_MADE, /* as much as there will be */

    AL_FRAME_CONTROL,
    AL_FRAME_STDOUT,
    AL_FRAME_STDERR,
    AL_FRAME_COMPILE,      /* what a compile step prints */
    AL_FRAME_ARTIFACTS,    /* see backends/launcher/artifact_frame.h */
    AL_FRAME_TAKEN,        /* uint32_t: so many bytes of stdin were written */
    AL_FRAME_STDIN_CLOSED, /* the program does not listen */
    AL_FRAME_ROOM,         /* the program's files leave no memory to collect artifacts in */
    AL_FRAME_END,
};
#define AL_FRAME_TYPES (AL_FRAME_END + 1)

#define AL_FRAME_PIECE_MAX    (64u << 10) /* bytes of a frame of content */
#define AL_FRAME_WHOLE_MAX    (16u << 10) /* bytes of any other */
#define AL_FRAME_STDIN_WINDOW (64u << 10)

struct al_frame_head {
    uint32_t type;
    uint32_t len;
};

struct al_frame_item {
    uint32_t type; /* enum al_bundle_type */
    uint32_t mode;
};

/* Frames of content are handed out as they come; of others the whole. */
struct al_frame {
    enum al_frame_type type;
    const uint8_t *data; /* in what was fed, or in the reader */
    size_t len;
};

struct al_frame_reader {
    bool up; /* which direction is read; the other's frames are refused */
    size_t head_got;
    struct al_frame_head head;
    uint32_t left; /* of the payload */
    uint8_t whole[AL_FRAME_WHOLE_MAX];
};

void al_frame_reader_init(struct al_frame_reader *r, bool up);

/* Takes bytes until a frame, or a piece of one, is there: 1 and *ret. 0 when more bytes are needed,
 * -EBADMSG when they are no frames, after which the reader is of no use. *ret_used: how many bytes
 * were taken. */
int al_frame_next(struct al_frame_reader *r, const uint8_t *data, size_t n, size_t *ret_used,
                  struct al_frame *ret);

/* Appends a frame; for content n is at most AL_FRAME_PIECE_MAX, and not 0. As al_buf_append. */
int al_frame_put(struct al_buf *to, enum al_frame_type type, const void *data, size_t n);
