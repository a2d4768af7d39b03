#include "tests/integration/stream_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define DESC &airlock__v1__stream_response__descriptor

Airlock__V1__StreamRequest al_stream_request(void)
{
    Airlock__V1__StreamRequest request;
    airlock__v1__stream_request__init(&request);
    return request;
}

void al_stream_start_lingering(struct al_test_call *call, grpc_channel *channel, const char *code,
                               double linger_seconds, int deadline_ms)
{
    Airlock__V1__StreamRequest request = al_stream_request();
    Airlock__V1__StreamStart stream_start;
    Airlock__V1__RunRequest run = al_run_request("actor", code);
    Airlock__V1__Quotas quotas;
    airlock__v1__quotas__init(&quotas);
    airlock__v1__stream_start__init(&stream_start);
    quotas.wall_seconds = 60;
    run.quotas = &quotas;
    stream_start.request = &run;
    stream_start.linger_seconds = linger_seconds;
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_START;
    request.start = &stream_start;
    al_test_begin(call, channel, "Stream", "t", deadline_ms);
    al_test_send(call, &request.base);
}

void al_stream_start(struct al_test_call *call, grpc_channel *channel, const char *code,
                     int deadline_ms)
{
    al_stream_start_lingering(call, channel, code, 0, deadline_ms);
}

void al_stream_attach(struct al_test_call *call, grpc_channel *channel, const char *tenant,
                      const char *job_id, uint64_t after_sequence)
{
    Airlock__V1__StreamRequest request = al_stream_request();
    Airlock__V1__Attach attach;
    airlock__v1__attach__init(&attach);
    attach.job_id = (char *)job_id;
    attach.after_sequence = after_sequence;
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_ATTACH;
    request.attach = &attach;
    al_test_begin(call, channel, "Stream", tenant, 0);
    al_test_send(call, &request.base);
}

void al_stream_send_stdin(struct al_test_call *call, const void *data, size_t len)
{
    Airlock__V1__StreamRequest request = al_stream_request();
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_STDIN;
    request.stdin = (ProtobufCBinaryData){len, (uint8_t *)data};
    al_test_send(call, &request.base);
}

void al_stream_send_eof(struct al_test_call *call, bool value)
{
    Airlock__V1__StreamRequest request = al_stream_request();
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_STDIN_EOF;
    request.stdin_eof = value;
    al_test_send(call, &request.base);
}

void al_stream_send_signal(struct al_test_call *call, int signo)
{
    Airlock__V1__StreamRequest request = al_stream_request();
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_SIGNAL;
    request.signal = signo;
    al_test_send(call, &request.base);
}

static void hear_output(struct al_heard *heard, ProtobufCBinaryData bytes)
{
    assert_int_equal(heard->result, 0); /* output comes strictly first */
    assert_true(heard->n_statuses < 3); /* pending, running, and how it ended */
    assert_true(bytes.len > 0);
    for (size_t i = 0; i < bytes.len; i++) {
        heard->sum = heard->sum * 31 + bytes.data[i];
        if (heard->stdout_bytes + i < sizeof heard->text - 1) {
            heard->text[heard->stdout_bytes + i] = (char)bytes.data[i];
        }
    }
    heard->stdout_bytes += bytes.len;
}

bool al_hear(struct al_test_call *call, struct al_heard *heard)
{
    al_auto_arena struct al_arena *arena = NULL;
    const Airlock__V1__StreamResponse *m =
        (Airlock__V1__StreamResponse *)al_test_receive(call, DESC, &arena);
    if (!m) {
        return false;
    }
    assert_int_equal(m->sequence, heard->sequence + 1);
    heard->sequence = m->sequence;
    assert_true(m->stdin_received >= heard->stdin_received);
    heard->stdin_received = m->stdin_received;
    assert_int_equal(strlen(m->job_id), 16);
    memcpy(heard->job_id, m->job_id, 17);
    assert_true(m->timestamp && m->timestamp->seconds > 0);
    int64_t wall_ns = m->timestamp->seconds * 1000000000 + m->timestamp->nanos;
    assert_true(wall_ns >= heard->wall_ns);
    heard->wall_ns = wall_ns;
    switch (m->event_case) {
    case AIRLOCK__V1__STREAM_RESPONSE__EVENT_STATUS:
        heard->statuses[heard->n_statuses++] = (char)('0' + m->status);
        break;
    case AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDOUT:
        hear_output(heard, m->stdout);
        break;
    case AIRLOCK__V1__STREAM_RESPONSE__EVENT_RESULT:
        assert_int_equal(heard->result, 0);
        assert_int_equal(m->result->stdout.len, 0);
        heard->result = m->result->status;
        heard->reason = m->result->reason;
        break;
    default:
        fail_msg("event %d", m->event_case);
    }
    return true;
}

void al_hear_all(struct al_test_call *call, struct al_heard *heard)
{
    while (al_hear(call, heard)) {
    }
}

void al_hear_greeting(struct al_test_call *call, struct al_heard *heard)
{
    al_auto_arena struct al_arena *arena = NULL;
    const Airlock__V1__StreamResponse *m =
        (Airlock__V1__StreamResponse *)al_test_receive(call, DESC, &arena);
    assert_non_null(m);
    assert_int_equal(m->sequence, 0);
    assert_int_equal(m->event_case, AIRLOCK__V1__STREAM_RESPONSE__EVENT__NOT_SET);
    assert_string_equal(m->job_id, heard->job_id);
    assert_true(m->timestamp && m->timestamp->seconds > 0);
    heard->stdin_received = m->stdin_received;
}

void al_hear_until_running(struct al_test_call *call, struct al_heard *heard)
{
    while (heard->n_statuses < 2) {
        assert_true(al_hear(call, heard));
    }
}

grpc_status_code al_stream_kill(struct al_fixture *f, const char *tenant, const char *job_id,
                                bool *ret_killed, Airlock__V1__JobStatus *ret_status)
{
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__KillRequest request;
    airlock__v1__kill_request__init(&request);
    request.job_id = (char *)job_id;
    Airlock__V1__KillResponse *response =
        (Airlock__V1__KillResponse *)al_test_unary(&call, f->channel, "Kill", tenant, &request.base,
                                                   &airlock__v1__kill_response__descriptor, &arena);
    if (response) {
        *ret_killed = response->killed;
        *ret_status = response->status;
    }
    al_test_call_free(&call);
    return call.status;
}
