/* Stream, and Kill of what streams, through a real connection. */
#include <math.h>
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
#include "tests/integration/stream_client.h"

#define MIB ((size_t)1 << 20)

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

static void test_stream__tells_a_jobs_life_in_order(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    al_stream_start(&call, f->channel, "flood 5", 0);
    al_hear_all(&call, &heard);
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
    struct al_heard heard = {0};
    al_stream_start(&call, f->channel, "cat", 0);
    al_hear_until_running(&call, &heard);
    al_stream_send_stdin(&call, "a\xff", 2);
    while (heard.stdout_bytes < 2) { /* at once, not at the end */
        assert_true(al_hear(&call, &heard));
    }
    assert_int_equal(heard.stdin_received, 2);
    al_stream_send_stdin(&call, "b", 1);
    al_test_half_close(&call);
    al_hear_all(&call, &heard);
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
    struct al_heard heard = {0};
    const size_t size = 3 * MIB;
    uint32_t sum = 0;
    uint8_t *data = malloc(size);
    assert_non_null(data);
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)(i * 7 >> 5);
        sum = sum * 31 + data[i];
    }
    al_stream_start(&call, f->channel, "cat", 0);
    al_stream_send_stdin(&call, data, 2 * MIB);
    al_stream_send_stdin(&call, data + 2 * MIB, MIB);
    al_stream_send_eof(&call, true);
    al_hear_all(&call, &heard);
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
    struct al_heard heard = {0};
    const size_t size = 64 * MIB;
    char code[32];
    (void)snprintf(code, sizeof code, "flood %zu", size);
    uint64_t before = al_actor_printed(f->actor);
    al_stream_start(&call, f->channel, code, 0);
    uint64_t last = 0;
    for (int quiet = 0; quiet < 20;) { /* until nothing has moved for 200 ms */
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        uint64_t now = al_actor_printed(f->actor) - before;
        quiet = now == last && now > 0 ? quiet + 1 : 0;
        last = now;
    }
    assert_in_range(last, 1, 16 * MIB); /* the ring, and what the sockets hold */
    al_hear_all(&call, &heard);
    assert_int_equal(heard.stdout_bytes, size);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    al_test_call_free(&call);
}

static void test_stream__signals_reach_the_program(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    al_stream_start(&call, f->channel, "signals", 0);
    al_hear_until_running(&call, &heard);
    al_stream_send_signal(&call, SIGINT);
    while (heard.stdout_bytes < 2) {
        assert_true(al_hear(&call, &heard));
    }
    al_stream_send_signal(&call, SIGTERM);
    while (heard.stdout_bytes < 5) {
        assert_true(al_hear(&call, &heard));
    }
    assert_string_equal(heard.text, "2\n15\n");
    al_stream_send_signal(&call, SIGHUP);
    al_stream_send_signal(&call, SIGQUIT);
    al_stream_send_signal(&call, SIGKILL);
    al_stream_send_signal(&call, SIGUSR1);
    al_stream_send_signal(&call, SIGUSR2);
    al_stream_send_signal(&call, SIGCONT);
    al_stream_send_signal(&call, SIGTSTP);
    al_stream_send_signal(&call, SIGWINCH);
    while (heard.stdout_bytes < 26) {
        assert_true(al_hear(&call, &heard));
    }
    assert_string_equal(heard.text, "2\n15\n1\n3\n9\n10\n12\n18\n20\n28\n");
    grpc_call_cancel(call.call, NULL);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_CANCELLED);
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 0);
    AL_WAIT_UNTIL(al_fixture_status(f, heard.job_id) == AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
    al_test_call_free(&call);
}

static void test_stream__other_signals_are_refused(void **state)
{
    struct al_fixture *f = *state;
    static const int rows[] = {0,       -1,      SIGSEGV, SIGSTOP, SIGPIPE, SIGALRM,   SIGCHLD,
                               SIGTTIN, SIGTTOU, SIGSYS,  32,      64,      INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct al_test_call call;
        struct al_heard heard = {0};
        al_stream_start(&call, f->channel, "signals", 0);
        al_hear_until_running(&call, &heard);
        al_stream_send_signal(&call, rows[i]);
        al_hear_all(&call, &heard);
        assert_int_equal(al_test_finish(&call), GRPC_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(call.text, "signal: "));
        assert_int_equal(heard.stdout_bytes, 0);
        al_test_call_free(&call);
    }
}

static void test_stream__signals_that_nobody_takes_are_bounded(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    al_stream_start(&call, f->channel, "wait", 0);
    al_hear_until_running(&call, &heard);
    for (int i = 0; i <= AL_CTL_SIGNALS_MAX; i++) {
        al_stream_send_signal(&call, SIGUSR1);
    }
    al_hear_all(&call, &heard);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_RESOURCE_EXHAUSTED);
    al_test_call_free(&call);
}

/* --- mistakes --- */

static void say_nothing(struct al_test_call *call)
{
    Airlock__V1__StreamRequest request = al_stream_request();
    al_test_send(call, &request.base);
}

static void say_start(struct al_test_call *call)
{
    Airlock__V1__StreamRequest request = al_stream_request();
    Airlock__V1__StreamStart again;
    airlock__v1__stream_start__init(&again);
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_START;
    request.start = &again;
    al_test_send(call, &request.base);
}

static void say_resize(struct al_test_call *call)
{
    Airlock__V1__StreamRequest request = al_stream_request();
    Airlock__V1__TerminalSize size;
    airlock__v1__terminal_size__init(&size);
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_RESIZE;
    request.resize = &size;
    al_test_send(call, &request.base);
}

static void say_stdin_after_eof(struct al_test_call *call)
{
    al_stream_send_eof(call, true);
    al_stream_send_stdin(call, "x", 1);
}

static void say_false_eof(struct al_test_call *call)
{
    al_stream_send_eof(call, false);
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
        {say_garbage, GRPC_STATUS_INVALID_ARGUMENT, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct al_test_call call;
        struct al_heard heard = {0};
        al_stream_start(&call, f->channel, "wait", 0);
        al_hear_until_running(&call, &heard);
        rows[i].say(&call);
        al_hear_all(&call, &heard);
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
    assert_null(al_test_receive(&call, &airlock__v1__stream_response__descriptor, &arena));
    assert_int_equal(al_test_finish(&call), status);
    assert_non_null(strstr(call.text, part));
    al_test_call_free(&call);
}

static void test_stream__the_first_message_must_start_it(void **state)
{
    struct al_fixture *f = *state;
    Airlock__V1__StreamRequest request = al_stream_request();
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
    static const double lingers[] = {-1, 300.5, (double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < sizeof lingers / sizeof lingers[0]; i++) {
        first.linger_seconds = lingers[i];
        assert_first_fails(f, &request, GRPC_STATUS_INVALID_ARGUMENT, "(0 to 300;");
    }
    first.linger_seconds = 0;
    Airlock__V1__TerminalSize size;
    airlock__v1__terminal_size__init(&size);
    first.terminal = &size;
    assert_first_fails(f, &request, GRPC_STATUS_FAILED_PRECONDITION, "pty");

    Airlock__V1__Attach attach;
    airlock__v1__attach__init(&attach);
    request.event_case = AIRLOCK__V1__STREAM_REQUEST__EVENT_ATTACH;
    request.attach = &attach;
    assert_first_fails(f, &request, GRPC_STATUS_INVALID_ARGUMENT, "attach.job_id");
}

/* --- leaving and killing --- */

static void test_stream__a_client_that_leaves_in_mid_flood_is_forgotten(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    grpc_channel *channel = al_fixture_connect(f);
    al_stream_start(&call, channel, "flood 1000000000000", 0);
    al_hear_until_running(&call, &heard);
    assert_true(al_hear(&call, &heard));
    grpc_call_cancel(call.call, NULL);
    (void)al_test_finish(&call);
    al_test_call_free(&call);
    grpc_channel_destroy(channel);
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 0);
    AL_WAIT_UNTIL(al_fixture_status(f, heard.job_id) == AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
}

static void test_kill__ends_the_stream_as_killed(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    bool killed = false;
    Airlock__V1__JobStatus status = 0;
    al_stream_start(&call, f->channel, "wait", 0);
    al_hear_until_running(&call, &heard);
    assert_int_equal(al_stream_kill(f, "u", heard.job_id, &killed, &status), GRPC_STATUS_NOT_FOUND);
    assert_int_equal(al_stream_kill(f, "t", "0123456789abcdef", &killed, &status),
                     GRPC_STATUS_NOT_FOUND);
    assert_int_equal(al_stream_kill(f, "t", "xyz", &killed, &status), GRPC_STATUS_INVALID_ARGUMENT);
    assert_int_equal(al_stream_kill(f, "t", heard.job_id, &killed, &status), GRPC_STATUS_OK);
    assert_true(killed);
    assert_int_equal(status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
    al_hear_all(&call, &heard);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    assert_int_equal(heard.result, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
    assert_int_equal(heard.reason, AIRLOCK__V1__REASON__REASON_CANCELLED);
    assert_string_equal(heard.statuses, "126");
    al_test_call_free(&call);
    assert_int_equal(al_stream_kill(f, "t", heard.job_id, &killed, &status), GRPC_STATUS_OK);
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
    struct al_heard heard = {0};
    struct al_heard other = {0};
    bool killed = false;
    Airlock__V1__JobStatus status = 0;
    al_stream_start(&running, f->channel, "wait", 0);
    al_hear_until_running(&running, &other);
    al_stream_start(&waiting, f->channel, "wait", 0);
    assert_true(al_hear(&waiting, &heard));
    assert_int_equal(al_fixture_status(f, heard.job_id),
                     AIRLOCK__V1__JOB_STATUS__JOB_STATUS_PENDING);
    assert_int_equal(al_stream_kill(f, "t", heard.job_id, &killed, &status), GRPC_STATUS_OK);
    assert_true(killed);
    al_hear_all(&waiting, &heard);
    assert_int_equal(al_test_finish(&waiting), GRPC_STATUS_OK);
    assert_string_equal(heard.statuses, "16");
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 1);
    al_test_call_free(&waiting);
    assert_int_equal(al_stream_kill(f, "t", other.job_id, &killed, &status), GRPC_STATUS_OK);
    al_hear_all(&running, &other);
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
    struct al_heard heard = {0};
    al_stream_start(&call, f->channel, "wait", 5500);
    al_hear_all(&call, &heard);
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
    struct al_heard heard = {0};
    al_stream_start(&call, f->channel, "flood 1000000000000", 0);
    al_hear_until_running(&call, &heard);
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
        cmocka_unit_test(test_stream__other_signals_are_refused),
        cmocka_unit_test(test_stream__signals_that_nobody_takes_are_bounded),
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
