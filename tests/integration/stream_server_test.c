/* Stream, and Kill of what streams, through a real connection. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "tests/integration/fixture.h"

#define MIB ((size_t)1 << 20)

#define DESC &airlock__v1__stream_response__descriptor

static int setup(void **state)
{
    *state = al_fixture_create(NULL);
    return 0;
}

static int teardown(void **state)
{
    al_fixture_destroy(*state);
    return 0;
}

static Airlock__V1__StreamRequest empty_request(void)
{
    Airlock__V1__StreamRequest request;
    airlock__v1__stream_request__init(&request);
    return request;
}

/* Begins a Stream of tenant t that does `code`. */
static void start_stream(struct al_test_call *call, grpc_channel *channel, const char *code,
                         int deadline_ms)
{
    Airlock__V1__StreamRequest request = empty_request();
    Airlock__V1__StreamStart stream_start;
    Airlock__V1__RunRequest run = al_run_request("actor", code);
    Airlock__V1__Quotas quotas;
    airlock__v1__quotas__init(&quotas);
    airlock__v1__stream_start__init(&stream_start);
    quotas.wall_seconds = 60;
    run.quotas = &quotas;
    stream_start.request = &run;
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_START;
    request.start = &stream_start;
    al_test_begin(call, channel, "Stream", "t", deadline_ms);
    al_test_send(call, &request.base);
}

static void send_stdin(struct al_test_call *call, const void *data, size_t len)
{
    Airlock__V1__StreamRequest request = empty_request();
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_STDIN;
    request.stdin = (ProtobufCBinaryData){len, (uint8_t *)data};
    al_test_send(call, &request.base);
}

static void send_eof(struct al_test_call *call, bool value)
{
    Airlock__V1__StreamRequest request = empty_request();
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_STDIN_EOF;
    request.stdin_eof = value;
    al_test_send(call, &request.base);
}

static void send_signal(struct al_test_call *call, int signo)
{
    Airlock__V1__StreamRequest request = empty_request();
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_SIGNAL;
    request.signal = signo;
    al_test_send(call, &request.base);
}

/* What a stream has said so far. */
struct heard {
    char job_id[32];
    uint64_t sequence;
    uint64_t stdin_received;
    char statuses[16]; /* a digit each */
    size_t n_statuses;
    size_t stdout_bytes;
    uint32_t sum; /* of the bytes */
    char text[64];
    Airlock__V1__JobStatus result; /* 0: none yet */
    Airlock__V1__Reason reason;
};

static void hear_output(struct heard *heard, ProtobufCBinaryData bytes)
{
    assert_int_equal(heard->result, 0); /* output comes strictly first */
    assert_true(bytes.len > 0);
    for (size_t i = 0; i < bytes.len; i++) {
        heard->sum = heard->sum * 31 + bytes.data[i];
        if (heard->stdout_bytes + i < sizeof heard->text - 1) {
            heard->text[heard->stdout_bytes + i] = (char)bytes.data[i];
        }
    }
    heard->stdout_bytes += bytes.len;
}

/* The next message; false when there is none any more. */
static bool hear(struct al_test_call *call, struct heard *heard)
{
    al_auto_arena struct al_arena *arena = NULL;
    const Airlock__V1__StreamResponse *m =
        (Airlock__V1__StreamResponse *)al_test_receive(call, DESC, &arena);
    if (!m) {
        return false;
    }
    assert_int_equal(m->sequence, heard->sequence + 1);
    heard->sequence = m->sequence;
    heard->stdin_received = m->stdin_received;
    assert_int_equal(strlen(m->job_id), 16);
    memcpy(heard->job_id, m->job_id, 17);
    assert_true(m->timestamp && m->timestamp->seconds > 0);
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

static void hear_all(struct al_test_call *call, struct heard *heard)
{
    while (hear(call, heard)) {
    }
}

static void hear_until_running(struct al_test_call *call, struct heard *heard)
{
    while (heard->n_statuses < 2) {
        assert_true(hear(call, heard));
    }
}

static void test_stream__tells_a_jobs_life_in_order(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct heard heard = {0};
    start_stream(&call, f->channel, "flood 5", 0);
    hear_all(&call, &heard);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    assert_string_equal(heard.statuses, "123");
    assert_int_equal(heard.stdout_bytes, 5);
    assert_int_equal(heard.result, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_SUCCEEDED);
    assert_int_equal(al_fixture_status(f, heard.job_id), heard.result);
    al_test_call_free(&call);
}

static void test_stream__half_close_is_the_end_of_stdin(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct heard heard = {0};
    start_stream(&call, f->channel, "cat", 0);
    hear_until_running(&call, &heard);
    send_stdin(&call, "a\xff", 2);
    while (heard.stdout_bytes < 2) { /* at once, not at the end */
        assert_true(hear(&call, &heard));
    }
    assert_int_equal(heard.stdin_received, 2);
    send_stdin(&call, "b", 1);
    al_test_half_close(&call);
    hear_all(&call, &heard);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    assert_string_equal(heard.text, "a\xff"
                                    "b");
    assert_int_equal(heard.stdin_received, 3);
    assert_int_equal(heard.result, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_SUCCEEDED);
    al_test_call_free(&call);
}

static void test_stream__stdin_beyond_every_buffer_arrives_whole(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct heard heard = {0};
    const size_t size = 3 * MIB;
    uint32_t sum = 0;
    uint8_t *data = malloc(size);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)(i * 7 >> 5);
        sum = sum * 31 + data[i];
    }
    start_stream(&call, f->channel, "cat", 0);
    send_stdin(&call, data, 2 * MIB);
    send_stdin(&call, data + 2 * MIB, MIB);
    send_eof(&call, true);
    hear_all(&call, &heard);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    assert_int_equal(heard.stdout_bytes, size);
    assert_int_equal(heard.sum, sum);
    assert_int_equal(heard.stdin_received, size);
    free(data);
    al_test_call_free(&call);
}

static void test_stream__a_client_that_does_not_read_stops_the_program(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct heard heard = {0};
    const size_t size = 64 * MIB;
    char code[32];
    (void)snprintf(code, sizeof code, "flood %zu", size);
    uint64_t before = al_actor_printed(f->actor);
    start_stream(&call, f->channel, code, 0);
    uint64_t last = 0;
    for (int quiet = 0; quiet < 20;) { /* until nothing has moved for 200 ms */
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        uint64_t now = al_actor_printed(f->actor) - before;
        quiet = now == last && now > 0 ? quiet + 1 : 0;
        last = now;
    }
    assert_in_range(last, 1, 16 * MIB); /* the ring, and what the sockets hold */
    hear_all(&call, &heard);
    assert_int_equal(heard.stdout_bytes, size);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    al_test_call_free(&call);
}

static void test_stream__signals_reach_the_program(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct heard heard = {0};
    start_stream(&call, f->channel, "signals", 0);
    hear_until_running(&call, &heard);
    send_signal(&call, SIGINT);
    while (heard.stdout_bytes < 2) {
        assert_true(hear(&call, &heard));
    }
    send_signal(&call, SIGTERM);
    while (heard.stdout_bytes < 5) {
        assert_true(hear(&call, &heard));
    }
    assert_string_equal(heard.text, "2\n15\n");
    grpc_call_cancel(call.call, NULL);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_CANCELLED);
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 0);
    assert_int_equal(al_fixture_status(f, heard.job_id),
                     AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
    al_test_call_free(&call);
}

/* --- mistakes --- */

static void say_nothing(struct al_test_call *call)
{
    Airlock__V1__StreamRequest request = empty_request();
    al_test_send(call, &request.base);
}

static void say_start(struct al_test_call *call)
{
    Airlock__V1__StreamRequest request = empty_request();
    Airlock__V1__StreamStart again;
    airlock__v1__stream_start__init(&again);
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_START;
    request.start = &again;
    al_test_send(call, &request.base);
}

static void say_resize(struct al_test_call *call)
{
    Airlock__V1__StreamRequest request = empty_request();
    Airlock__V1__TerminalSize size;
    airlock__v1__terminal_size__init(&size);
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_RESIZE;
    request.resize = &size;
    al_test_send(call, &request.base);
}

static void say_stdin_after_eof(struct al_test_call *call)
{
    send_eof(call, true);
    send_stdin(call, "x", 1);
}

static void say_false_eof(struct al_test_call *call)
{
    send_eof(call, false);
}

static void say_bad_signal(struct al_test_call *call)
{
    send_signal(call, SIGSEGV);
}

static void say_garbage(struct al_test_call *call)
{
    al_test_send_bytes(call, "\xff", 1);
}

static void test_stream__a_mistake_ends_the_call_and_kills_the_job(void **state)
{
    struct al_fixture *f = *state;
    static const struct {
        void (*say)(struct al_test_call *call);
        grpc_status_code status;
        const char *part;
    } rows[] = {
        {say_nothing, GRPC_STATUS_INVALID_ARGUMENT, "event"},
        {say_start, GRPC_STATUS_INVALID_ARGUMENT, "start"},
        {say_resize, GRPC_STATUS_FAILED_PRECONDITION, "resize"},
        {say_stdin_after_eof, GRPC_STATUS_INVALID_ARGUMENT, "stdin"},
        {say_false_eof, GRPC_STATUS_INVALID_ARGUMENT, "stdin_eof"},
        {say_bad_signal, GRPC_STATUS_INVALID_ARGUMENT, "signal"},
        {say_garbage, GRPC_STATUS_INVALID_ARGUMENT, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct al_test_call call;
        struct heard heard = {0};
        start_stream(&call, f->channel, "wait", 0);
        hear_until_running(&call, &heard);
        rows[i].say(&call);
        hear_all(&call, &heard);
        assert_int_equal(heard.result, 0);
        assert_int_equal(al_test_finish(&call), rows[i].status);
        assert_non_null(strstr(call.text, rows[i].part));
        AL_WAIT_UNTIL(al_fixture_status(f, heard.job_id) ==
                      AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
        al_test_call_free(&call);
    }
}

static void assert_first_fails(struct al_fixture *f, const Airlock__V1__StreamRequest *request,
                               grpc_status_code status, const char *part)
{
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    al_test_begin(&call, f->channel, "Stream", "t", 0);
    al_test_send(&call, &request->base);
    assert_null(al_test_receive(&call, DESC, &arena));
    assert_int_equal(al_test_finish(&call), status);
    assert_non_null(strstr(call.text, part));
    al_test_call_free(&call);
}

static void test_stream__the_first_message_must_start_it(void **state)
{
    struct al_fixture *f = *state;
    Airlock__V1__StreamRequest request = empty_request();
    assert_first_fails(f, &request, GRPC_STATUS_INVALID_ARGUMENT, "event");
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_STDIN;
    request.stdin = (ProtobufCBinaryData){1, (uint8_t *)"x"};
    assert_first_fails(f, &request, GRPC_STATUS_INVALID_ARGUMENT, "start");

    Airlock__V1__StreamStart first;
    Airlock__V1__RunRequest run = al_run_request("actor", "wait");
    airlock__v1__stream_start__init(&first);
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_START;
    request.start = &first;
    assert_first_fails(f, &request, GRPC_STATUS_INVALID_ARGUMENT, "request");
    first.request = &run;
    first.linger_seconds = 1;
    assert_first_fails(f, &request, GRPC_STATUS_UNIMPLEMENTED, "linger_seconds");
    first.linger_seconds = 0;
    Airlock__V1__TerminalSize size;
    airlock__v1__terminal_size__init(&size);
    first.terminal = &size;
    assert_first_fails(f, &request, GRPC_STATUS_FAILED_PRECONDITION, "pty");

    Airlock__V1__Attach attach;
    airlock__v1__attach__init(&attach);
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_ATTACH;
    request.attach = &attach;
    assert_first_fails(f, &request, GRPC_STATUS_UNIMPLEMENTED, "attach");
}

/* --- leaving and killing --- */

static void test_stream__a_client_that_leaves_in_mid_flood_is_forgotten(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct heard heard = {0};
    grpc_channel *channel = al_fixture_connect(f);
    start_stream(&call, channel, "flood 1000000000000", 0);
    hear_until_running(&call, &heard);
    assert_true(hear(&call, &heard));
    grpc_call_cancel(call.call, NULL);
    (void)al_test_finish(&call);
    al_test_call_free(&call);
    grpc_channel_destroy(channel);
    int64_t start_ms = al_now_ms();
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 0);
    assert_in_range(al_now_ms() - start_ms, 0, 1000);
    assert_int_equal(al_fixture_status(f, heard.job_id),
                     AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
}

static grpc_status_code kill_job(struct al_fixture *f, const char *tenant, const char *job_id,
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

static void test_kill__ends_the_stream_as_killed(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct heard heard = {0};
    bool killed = false;
    Airlock__V1__JobStatus status = 0;
    start_stream(&call, f->channel, "wait", 0);
    hear_until_running(&call, &heard);
    assert_int_equal(kill_job(f, "u", heard.job_id, &killed, &status), GRPC_STATUS_NOT_FOUND);
    assert_int_equal(kill_job(f, "t", "0123456789abcdef", &killed, &status), GRPC_STATUS_NOT_FOUND);
    assert_int_equal(kill_job(f, "t", "xyz", &killed, &status), GRPC_STATUS_INVALID_ARGUMENT);
    assert_int_equal(kill_job(f, "t", heard.job_id, &killed, &status), GRPC_STATUS_OK);
    assert_true(killed);
    assert_int_equal(status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
    hear_all(&call, &heard);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    assert_int_equal(heard.result, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
    assert_int_equal(heard.reason, AIRLOCK__V1__REASON__REASON_CANCELLED);
    assert_string_equal(heard.statuses, "126");
    al_test_call_free(&call);
    assert_int_equal(kill_job(f, "t", heard.job_id, &killed, &status), GRPC_STATUS_OK);
    assert_false(killed);
    assert_int_equal(status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
}

static void one_stream_slot(struct al_config *config)
{
    config->stream_slots = 1;
}

static void test_kill__takes_a_waiting_job_out_of_the_queue(void **state)
{
    (void)state;
    struct al_fixture *f = al_fixture_create(one_stream_slot);
    struct al_test_call running;
    struct al_test_call waiting;
    struct heard heard = {0};
    struct heard other = {0};
    bool killed = false;
    Airlock__V1__JobStatus status = 0;
    start_stream(&running, f->channel, "wait", 0);
    hear_until_running(&running, &other);
    start_stream(&waiting, f->channel, "wait", 0);
    assert_true(hear(&waiting, &heard));
    assert_int_equal(al_fixture_status(f, heard.job_id),
                     AIRLOCK__V1__JOB_STATUS__JOB_STATUS_PENDING);
    assert_int_equal(kill_job(f, "t", heard.job_id, &killed, &status), GRPC_STATUS_OK);
    assert_true(killed);
    hear_all(&waiting, &heard);
    assert_int_equal(al_test_finish(&waiting), GRPC_STATUS_OK);
    assert_string_equal(heard.statuses, "16");
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 1);
    al_test_call_free(&waiting);
    assert_int_equal(kill_job(f, "t", other.job_id, &killed, &status), GRPC_STATUS_OK);
    hear_all(&running, &other);
    (void)al_test_finish(&running);
    al_test_call_free(&running);
    al_fixture_destroy(f);
}

/* So that the answer arrives in time on the busiest machine. */
static void margin_of_5s(struct al_config *config)
{
    config->limits.deadline_margin_ms = 5000;
}

static void test_stream__its_deadline_is_a_wall_limit(void **state)
{
    (void)state;
    struct al_fixture *f = al_fixture_create(margin_of_5s);
    struct al_test_call call;
    struct heard heard = {0};
    start_stream(&call, f->channel, "wait", 5500);
    hear_all(&call, &heard);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    assert_int_equal(heard.result, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_TIMEOUT);
    al_test_call_free(&call);
    al_fixture_destroy(f);
}

static void test_destroy__ends_streams_that_nobody_reads(void **state)
{
    (void)state;
    struct al_fixture *f = al_fixture_create(NULL);
    struct al_test_call call;
    struct heard heard = {0};
    start_stream(&call, f->channel, "flood 1000000000000", 0);
    hear_until_running(&call, &heard);
    al_server_drain(f->server);
    int64_t start_ms = al_now_ms();
    al_server_destroy(f->server);
    f->server = NULL;
    assert_in_range(al_now_ms() - start_ms, 0, 3000);
    grpc_call_cancel(call.call, NULL);
    (void)al_test_finish(&call);
    al_test_call_free(&call);
    al_fixture_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream__tells_a_jobs_life_in_order),
        cmocka_unit_test(test_stream__half_close_is_the_end_of_stdin),
        cmocka_unit_test(test_stream__stdin_beyond_every_buffer_arrives_whole),
        cmocka_unit_test(test_stream__a_client_that_does_not_read_stops_the_program),
        cmocka_unit_test(test_stream__signals_reach_the_program),
        cmocka_unit_test(test_stream__a_mistake_ends_the_call_and_kills_the_job),
        cmocka_unit_test(test_stream__the_first_message_must_start_it),
        cmocka_unit_test(test_stream__a_client_that_leaves_in_mid_flood_is_forgotten),
        cmocka_unit_test(test_kill__ends_the_stream_as_killed),
        cmocka_unit_test(test_kill__takes_a_waiting_job_out_of_the_queue),
        cmocka_unit_test(test_stream__its_deadline_is_a_wall_limit),
        cmocka_unit_test(test_destroy__ends_streams_that_nobody_reads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
