/*
 * What became of a job. Numbers of the enums equal those of the proto.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/artifact.h"
#include "backends/base/buf.h"

enum al_status {
    AL_STATUS_PENDING = 1,
    AL_STATUS_RUNNING,
    AL_STATUS_SUCCEEDED,
    AL_STATUS_FAILED,
    AL_STATUS_TIMEOUT,
    AL_STATUS_KILLED,
    AL_STATUS_QUOTA_EXCEEDED,
    AL_STATUS_EGRESS_BLOCKED,
};

enum al_reason {
    AL_REASON_NONE = 0,
    AL_REASON_EXIT,
    AL_REASON_SIGNAL,
    AL_REASON_LIMIT,
    AL_REASON_COMPILE,
    AL_REASON_BACKEND,
    AL_REASON_CANCELLED,
    AL_REASON_QUOTA,
    AL_REASON_EGRESS,
    AL_REASON_INTERRUPTED,
};

enum al_limit {
    AL_LIMIT_NONE = 0,
    AL_LIMIT_CPU,
    AL_LIMIT_WALL,
    AL_LIMIT_MEMORY,
    AL_LIMIT_PIDS,
    AL_LIMIT_OUTPUT,
};

enum al_exit_kind {
    AL_EXIT_NONE = 0, /* the program never ran, or how it ended is not known */
    AL_EXIT_CODE,
    AL_EXIT_SIGNAL,
};

#define AL_COMPILE_OUTPUT_MAX \
    (64u << 10) /* bytes kept of what a compiler prints; the rest is dropped */

struct al_compile {
    bool present;  /* the language has a compile step and it ran */
    int exit_code; /* 128+n when it died of signal n */
    int64_t duration_us;
    struct al_buf output; /* stdout and stderr in the order written */
};

#define AL_RESULT_ERROR_MAX 256

struct al_result {
    enum al_status status;
    enum al_reason reason;
    enum al_limit limit_hit;
    enum al_exit_kind exit_kind;
    int exit_value;      /* exit code or signal number, by exit_kind */
    int64_t duration_us; /* the program only: from exec to its end */
    int64_t
        cpu_us; /* user and system time of every process of the job, the compile step's included */
    uint64_t memory_peak_bytes;
    uint32_t pids_peak; /* 0: not measured */
    bool prestarted;    /* the program had an interpreter that was started ahead of it */
    bool stdout_truncated;
    bool stderr_truncated;
    uint32_t isolation; /* enum al_layer bits really enforced */
    struct al_compile compile;
    struct al_artifacts artifacts;
    char error[AL_RESULT_ERROR_MAX]; /* for a human; "" when there is nothing to say */
};

void al_result_init(struct al_result *r);
void al_result_finish(struct al_result *r);

/* True for the statuses that a job never leaves. */
static inline bool al_status_is_terminal(enum al_status s)
{
    return s > AL_STATUS_RUNNING;
}
