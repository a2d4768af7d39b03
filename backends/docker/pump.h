/*
 * The conversation with the init of a container, over the connection that is attached to it: the
 * job goes down, its output and its end come up, and every byte that comes is taken for hostile.
 */
#pragma once

#include "backends/api/backend.h"
#include "backends/docker/engine.h"
#include "backends/docker/frame.h"
#include "backends/docker/mux.h"
#include "backends/docker/sender.h"
#include "backends/launcher/message.h"
#include "backends/process/artifact_reader.h"

#define AL_PUMP_IN_BYTES  (128u << 10)
#define AL_PUMP_WORDS_MAX 256 /* bytes kept of what init says on its standard error */

struct al_pump {
    const struct al_job_spec *spec;
    struct al_ctl *ctl;
    struct al_sink *sink;
    struct al_result *result;
    struct al_hijack *hijack;
    void (*make_room)(void *arg); /* the container is to have AL_CONTAINER_ROOM_MB more memory */
    void *arg;

    /* down */
    struct al_sender sender;
    struct al_buf out;
    size_t stdin_window; /* bytes of stdin that may still be sent */
    size_t stdin_sent;   /* of spec->stdin_bytes */
    bool stdin_ended;

    /* up */
    uint8_t *in;
    size_t in_start, in_end;
    struct al_mux mux;
    struct al_mux_piece piece; /* of `in`, not yet read as frames */
    struct al_frame_reader reader;
    struct al_frame pending; /* output that the sink has not taken */
    struct al_artifact_reader artifacts;
    uint64_t total[2]; /* by channel: taken, or dropped by the limit */
    bool truncated[2];
    char words[AL_PUMP_WORDS_MAX];

    bool started, exited, ended;
    bool cancelled, over_output;
    bool room_made;
    bool dying; /* nobody waits for a reader any more */
    int64_t begun_ms, started_ms, moved_ms, heard_ms, killed_ms;
    struct al_msg_exit exit;
};

/* How a conversation ends. */
enum al_pump_end {
    AL_PUMP_ENDED,  /* as it should: all was said */
    AL_PUMP_LOST,   /* the connection ended before that */
    AL_PUMP_HANGS,  /* init does not do what it was told, or should: it must be killed */
    AL_PUMP_FAILED, /* see err */
};

/* `plan` and `filter` are needed for the call only; the rest is borrowed for the pump's life.
 * -ENOMEM, -EFBIG; finish it in any case. */
int al_pump_init(struct al_pump *p, const struct al_job_spec *spec,
                 const struct al_container_plan *plan, const struct sock_fprog *filter,
                 struct al_ctl *ctl, struct al_sink *sink, struct al_result *result);
void al_pump_finish(struct al_pump *p);

/* Sends what there is room for; before the container is started too. 0 or -errno. */
int al_pump_send(struct al_pump *p);

/* Until the end. May be called again after HANGS. */
enum al_pump_end al_pump_run(struct al_pump *p, struct al_err *err);
