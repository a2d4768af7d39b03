#include "tests/bench/rpc.h"

#include <string.h>

#include "tests/bench/die.h"

/* What it is anyway, but who sets it could set another. */
static Airlock__V1__RunRequest__EnvEntry utc = {
    PROTOBUF_C_MESSAGE_INIT(&airlock__v1__run_request__env_entry__descriptor), (char *)"TZ",
    (char *)"UTC"};
static Airlock__V1__RunRequest__EnvEntry *own_interpreter = &utc;

static Airlock__V1__RunRequest request_of(const struct al_bench_rpc *rpc)
{
    Airlock__V1__RunRequest request = AIRLOCK__V1__RUN_REQUEST__INIT;
    request.code = (ProtobufCBinaryData){.data = (uint8_t *)rpc->code, .len = strlen(rpc->code)};
    request.language = (char *)rpc->language;
    request.backend = (char *)rpc->backend;
    if (rpc->own_interpreter) {
        request.env = &own_interpreter;
        request.n_env = 1;
    }
    request.cache_mode = rpc->cached ? AIRLOCK__V1__CACHE_MODE__CACHE_MODE_UNSPECIFIED
                                     : AIRLOCK__V1__CACHE_MODE__CACHE_MODE_OFF;
    return request;
}

static void check_result(const struct al_bench_rpc *rpc, const Airlock__V1__ExecutionResult *result)
{
    if (result->status != AIRLOCK__V1__JOB_STATUS__JOB_STATUS_SUCCEEDED) {
        al_bench_die("%s, %s: status %d: %s", rpc->backend, rpc->language, (int)result->status,
                     result->error);
    }
}

void al_bench_rpc_run(void *arg, unsigned worker)
{
    (void)worker;
    const struct al_bench_rpc *rpc = arg;
    Airlock__V1__RunRequest request = request_of(rpc);
    Airlock__V1__RunResponse *response;
    struct al_arena *arena;
    struct al_call_status status;
    if (al_client_run(rpc->client, &request, NULL, &arena, &response, &status) < 0) {
        al_bench_die("Run: %s: %s", al_call_status_name(status.code), status.text);
    }
    check_result(rpc, response->result);
    const ProtobufCBinaryData *output = &response->result->stdout;
    if (output->len != strlen(rpc->output) || memcmp(output->data, rpc->output, output->len) != 0) {
        al_bench_die("%s, %s: printed something else", rpc->backend, rpc->language);
    }
    al_arena_destroy(arena);
}

void al_bench_rpc_stream(void *arg, unsigned worker)
{
    (void)worker;
    const struct al_bench_rpc *rpc = arg;
    Airlock__V1__RunRequest run = request_of(rpc);
    Airlock__V1__StreamStart start = AIRLOCK__V1__STREAM_START__INIT;
    Airlock__V1__StreamRequest request = AIRLOCK__V1__STREAM_REQUEST__INIT;
    uint8_t data[1024];
    start.request = &run;
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_START;
    request.start = &start;
    if (protobuf_c_message_get_packed_size(&request.base) > sizeof data) {
        al_bench_die("Stream: the request is too large");
    }
    size_t len = protobuf_c_message_pack(&request.base, data);
    size_t got = al_floor_receive(rpc->raw, "/airlock.v1.ExecutionService/Stream", data, len);
    if (got < rpc->output_bytes) {
        al_bench_die("Stream: %zu bytes of %zu came", got, rpc->output_bytes);
    }
}
