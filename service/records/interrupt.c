#include "service/records/interrupt.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/arena.h"
#include "proto/wire/wire.h"
#include "service/records/records.h"

static const struct al_wire_limits limits = {
    .message_bytes = AL_RECORDS_JOB_MAX,
    .memory_bytes = 4u << 20,
    .depth = 8,
    .items = 20000,
    .unknown_bytes = AL_RECORDS_JOB_MAX, /* of a later version's record */
};

int al_interrupt_job(const uint8_t *job, size_t len, int64_t finished_wall_ns, uint8_t **ret,
                     size_t *ret_len)
{
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *unpacked;
    int r = al_wire_unpack_bytes(&airlock__v1__job__descriptor, job, len, &limits, &arena,
                                 &unpacked, NULL, 0);
    if (r < 0) {
        return r == -ENOMEM ? r : -EBADMSG;
    }
    Airlock__V1__Job *message = (Airlock__V1__Job *)unpacked;
    Airlock__V1__ExecutionResult result = AIRLOCK__V1__EXECUTION_RESULT__INIT;
    Google__Protobuf__Timestamp finished = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    finished.seconds = finished_wall_ns / 1000000000;
    finished.nanos = (int32_t)(finished_wall_ns % 1000000000);
    result.job_id = message->job_id;
    result.backend = message->backend;
    result.language = message->language;
    result.status = AIRLOCK__V1__JOB_STATUS__JOB_STATUS_FAILED;
    result.reason = AIRLOCK__V1__REASON__REASON_INTERRUPTED;
    result.error = "the server stopped before the job had ended";
    message->status = result.status;
    message->finished_at = &finished;
    message->result = &result;
    *ret_len = protobuf_c_message_get_packed_size(unpacked);
    *ret = malloc(*ret_len);
    if (!*ret) {
        return -ENOMEM;
    }
    (void)protobuf_c_message_pack(unpacked, *ret);
    return 0;
}
