/*
 * From a job to the wire's messages. The results point into the given storage and into the job;
 * every string in them is valid UTF-8. Thread-safe: no state outside of the arguments.
 */
#pragma once

#include "backends/api/backend.h"
#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/arena.h"
#include "service/job.h"

#define AL_LANGUAGE_TEXT_MAX 192 /* name@version, terminator included; longer ones are cut */

/* Further findings of the egress gate are not sent. */
#define AL_ENCODE_FINDINGS_MAX 256

/* One ExecutionResult with all that hangs on it. It must not be moved. */
struct al_result_message {
    Airlock__V1__ExecutionResult result;
    Airlock__V1__Quotas quotas;
    Airlock__V1__CompileResult compile;
    char *isolation[AL_LAYER_COUNT];
    Google__Protobuf__Timestamp cached_at;
    char fingerprint[2 * AL_SHA256_LEN + 1];
    Airlock__V1__EgressFinding findings[AL_ENCODE_FINDINGS_MAX];
    Airlock__V1__EgressFinding *finding_list[AL_ENCODE_FINDINGS_MAX];
    char language[AL_LANGUAGE_TEXT_MAX];
    char error[4 * AL_RESULT_ERROR_MAX];
};

/* Room for the artifacts of one result. */
struct al_artifact_messages {
    Airlock__V1__Artifact items[AL_ARTIFACTS_MAX];
    Airlock__V1__Artifact *list[AL_ARTIFACTS_MAX];
};

/* Adds them to a result. They are borrowed. */
void al_encode_artifacts(const struct al_artifacts *artifacts, struct al_artifact_messages *room,
                         Airlock__V1__ExecutionResult *result);

/* The result of a job that has ended, without output bytes and artifacts. */
void al_encode_result(const struct al_job_info *info, struct al_result_message *ret);

/* The job's record, allocated in the arena; NULL when that is exhausted. */
Airlock__V1__Job *al_encode_job(const struct al_job_info *info, struct al_arena *arena);

/* What one backend can do, allocated in the arena; NULL when that is exhausted. */
Airlock__V1__BackendInfo *al_encode_backend(const struct al_backend *backend, bool is_default,
                                            struct al_arena *arena);

void al_encode_timestamp(int64_t wall_ns, Google__Protobuf__Timestamp *ret);

/* Puts any bytes up to a NUL into `to` as a string: what is not UTF-8 becomes \xNN. Cut, between
 * characters, to `size`. */
void al_encode_text(const char *from, char *to, size_t size);
