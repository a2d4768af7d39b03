/* What airlockd tells the init of a container before its program starts, as frames, piece by piece:
 * as much of it as there is room for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backends/api/job_spec.h"
#include "backends/base/buf.h"
#include "backends/docker/job.h"

struct al_sender {
    const struct al_job_spec *spec;
    size_t item; /* the next one, or the one of which `sent` bytes are gone */
    size_t sent;
    bool in_item;
    bool done;
};

struct sock_fprog;

/* Puts the JOB and FILTER frames. 0, or -EFBIG. */
int al_sender_begin(struct al_sender *s, const struct al_job_spec *spec,
                    const struct al_container_plan *plan, const struct sock_fprog *filter,
                    struct al_buf *to);

/* Puts frames until `to` holds `enough` bytes, or all is said: `done` then. 0 or -ENOBUFS. */
int al_sender_fill(struct al_sender *s, size_t enough, struct al_buf *to);
