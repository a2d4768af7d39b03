/* Jobs that outlive their streams, through real connections. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "tests/integration/stream_client.h"

#define KILLED    AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED
#define SUCCEEDED AIRLOCK__V1__JOB_STATUS__JOB_STATUS_SUCCEEDED
#define RUNNING   AIRLOCK__V1__JOB_STATUS__JOB_STATUS_RUNNING

#define KIB ((size_t)1 << 10)

static void small_memory(struct al_config *config)
{
    config->ring_bytes = 64 * KIB;
    config->stream_keep_bytes = 256 * KIB;
}

static int setup(void **state)
{
    *state = al_fixture_create(small_memory);
    return 0;
}

static int teardown(void **state)
{
    al_fixture_destroy(*state);
    return 0;
}

/* The connection breaks: nothing of the call is left on this side. */
static void cut(struct al_test_call *call, grpc_channel *channel)
{
    grpc_call_cancel(call->call, NULL);
    (void)al_test_finish(call);
    al_test_call_free(call);
    grpc_channel_destroy(channel);
}

static void attach(struct al_fixture *f, struct al_test_call *call, struct al_heard *heard)
{
    al_stream_attach(call, f->channel, "t", heard->job_id, heard->sequence);
    al_hear_greeting(call, heard);
}

static void finish_ok(struct al_test_call *call)
{
    assert_int_equal(al_test_finish(call), GRPC_STATUS_OK);
    al_test_call_free(call);
}

static uint32_t sum_of_count(size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum = sum * 31 + al_actor_byte(i);
    }
    return sum;
}

static void test_attach__goes_on_after_a_cut(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    const size_t size = 10000000;
    grpc_channel *channel = al_fixture_connect(f);
    al_stream_start_lingering(&call, channel, "count 10000000", 60, 0);
    al_hear_until_running(&call, &heard);
    for (int cuts = 0; cuts < 10; cuts++) {
        for (int n = 0; n < cuts * 3; n++) {
            assert_true(al_hear(&call, &heard));
        }
        cut(&call, channel);
        channel = al_fixture_connect(f);
        al_stream_attach(&call, channel, "t", heard.job_id, heard.sequence);
        al_hear_greeting(&call, &heard);
    }
    al_hear_all(&call, &heard);
    finish_ok(&call);
    grpc_channel_destroy(channel);
    assert_int_equal(heard.stdout_bytes, size);
    assert_int_equal(heard.sum, sum_of_count(size));
    assert_string_equal(heard.statuses, "123");
    assert_int_equal(heard.result, SUCCEEDED);
}

static void test_attach__a_broken_connection_is_not_the_end_of_stdin(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    grpc_channel *channel = al_fixture_connect(f);
    al_stream_start_lingering(&call, channel, "cat", 60, 0);
    al_stream_send_stdin(&call, "one ", 4);
    while (heard.stdout_bytes < 4) {
        assert_true(al_hear(&call, &heard));
    }
    for (int i = 0; i < 20; i++) {
        cut(&call, channel);
        channel = al_fixture_connect(f);
        al_stream_attach(&call, channel, "t", heard.job_id, heard.sequence);
        al_hear_greeting(&call, &heard);
        assert_int_equal(heard.stdin_received, 4 + i);
        al_stream_send_stdin(&call, "x", 1);
        while (heard.stdout_bytes < (size_t)(4 + i + 1)) {
            assert_true(al_hear(&call, &heard));
        }
    }
    al_test_half_close(&call);
    al_hear_all(&call, &heard);
    finish_ok(&call);
    grpc_channel_destroy(channel);
    assert_string_equal(heard.text, "one xxxxxxxxxxxxxxxxxxxx");
    assert_int_equal(heard.result, SUCCEEDED);
}

static void test_attach__stdin_goes_on_where_the_server_stopped(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    static uint8_t data[1500000]; /* more than every buffer on the way */
    uint32_t sum = 0;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 7 >> 5);
        sum = sum * 31 + data[i];
    }
    grpc_channel *channel = al_fixture_connect(f);
    al_stream_start_lingering(&call, channel, "cat", 60, 0);
    al_stream_send_stdin(&call, data, sizeof data);
    for (int n = 0; n < 5; n++) {
        assert_true(al_hear(&call, &heard));
    }
    cut(&call, channel);
    attach(f, &call, &heard);
    assert_in_range(heard.stdin_received, 1, sizeof data - 1);
    al_stream_send_stdin(&call, data + heard.stdin_received,
                         sizeof data - (size_t)heard.stdin_received);
    al_stream_send_eof(&call, true);
    al_hear_all(&call, &heard);
    finish_ok(&call);
    assert_int_equal(heard.stdout_bytes, sizeof data);
    assert_int_equal(heard.sum, sum);
    assert_int_equal(heard.stdin_received, sizeof data);
}

/* What waits for room when the sender goes is its own to send again: no more of it is taken. */
static void test_attach__stdin_that_waited_goes_with_its_sender(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    static const uint8_t zeros[1000000];
    grpc_channel *channel = al_fixture_connect(f);
    al_stream_start_lingering(&call, channel, "count-in", 60, 0);
    al_hear_until_running(&call, &heard);
    al_stream_send_stdin(&call, zeros, sizeof zeros);
    cut(&call, channel);
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL); /* the program reads meanwhile */
    attach(f, &call, &heard);
    assert_in_range(heard.stdin_received, 0, sizeof zeros);
    al_stream_send_stdin(&call, zeros, sizeof zeros - (size_t)heard.stdin_received);
    al_stream_send_eof(&call, true);
    al_hear_all(&call, &heard);
    finish_ok(&call);
    assert_string_equal(heard.text, "1000000\n");
}

static void assert_aborted(struct al_test_call *call, struct al_heard *heard)
{
    al_hear_all(call, heard);
    assert_int_equal(al_test_finish(call), GRPC_STATUS_ABORTED);
    assert_non_null(strstr(call->text, "took over"));
    al_test_call_free(call);
}

static void test_attach__takes_over(void **state)
{
    struct al_fixture *f = *state;
    static const struct {
        const char *code;
        bool reads; /* the first one is idle when it is replaced; else it is stuck in a write */
    } rows[] = {{"signals", true}, {"count 5000000", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct al_test_call first;
        struct al_test_call second;
        struct al_heard heard = {0};
        al_stream_start_lingering(&first, f->channel, rows[i].code, 60, 0);
        al_hear_until_running(&first, &heard);
        struct al_heard heard_by_first = heard;
        if (rows[i].reads) {
            assert_int_equal(al_fixture_status(f, heard.job_id), RUNNING);
        }
        grpc_channel *channel = al_fixture_connect(f);
        al_stream_attach(&second, channel, "t", heard.job_id, heard.sequence);
        al_hear_greeting(&second, &heard);
        assert_aborted(&first, &heard_by_first);
        if (rows[i].reads) {
            al_stream_send_signal(&second, SIGTERM);
            while (heard.stdout_bytes < 3) {
                assert_true(al_hear(&second, &heard));
            }
            assert_string_equal(heard.text, "15\n");
            cut(&second, channel);
            continue;
        }
        al_hear_all(&second, &heard);
        finish_ok(&second);
        grpc_channel_destroy(channel);
        assert_int_equal(heard.sum, sum_of_count(5000000));
        assert_int_equal(heard.result, SUCCEEDED);
    }
}

static void assert_attach_fails(struct al_fixture *f, const char *tenant, const char *job_id,
                                uint64_t after, grpc_status_code status, const char *part)
{
    struct al_test_call call;
    struct al_heard nothing = {0};
    al_stream_attach(&call, f->channel, tenant, job_id, after);
    assert_false(al_hear(&call, &nothing));
    assert_int_equal(al_test_finish(&call), status);
    if (!strstr(call.text, part)) {
        fail_msg("%s", call.text);
    }
    al_test_call_free(&call);
}

static void test_attach__is_refused(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_test_call other;
    struct al_heard heard = {0};
    struct al_heard mortal = {0};
    al_stream_start_lingering(&call, f->channel, "count 5000000", 60, 0);
    while (heard.stdout_bytes < 1000000) {
        assert_true(al_hear(&call, &heard));
    }
    al_stream_start(&other, f->channel, "wait", 0);
    al_hear_until_running(&other, &mortal);
    const struct {
        const char *tenant;
        const char *job_id;
        uint64_t after;
        grpc_status_code status;
        const char *part;
    } rows[] = {
        {"t", heard.job_id, 1, GRPC_STATUS_OUT_OF_RANGE, "attach.after_sequence"},
        {"t", heard.job_id, 1000000, GRPC_STATUS_OUT_OF_RANGE, "1000000"},
        {"t", heard.job_id, UINT64_MAX, GRPC_STATUS_OUT_OF_RANGE, "attach.after_sequence"},
        {"u", heard.job_id, 0, GRPC_STATUS_NOT_FOUND, "no such job"},
        {"t", "0123456789abcdef", 0, GRPC_STATUS_NOT_FOUND, "no such job"},
        {"t", mortal.job_id, 0, GRPC_STATUS_NOT_FOUND, "without linger_seconds"},
        {"t", "x", 0, GRPC_STATUS_INVALID_ARGUMENT, "attach.job_id"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_attach_fails(f, rows[i].tenant, rows[i].job_id, rows[i].after, rows[i].status,
                            rows[i].part);
    }
    al_hear_all(&call, &heard); /* and nobody has taken it over */
    finish_ok(&call);
    assert_int_equal(heard.sum, sum_of_count(5000000));
    grpc_call_cancel(other.call, NULL);
    (void)al_test_finish(&other);
    al_test_call_free(&other);
}

static void test_attach__without_a_sequence_gets_what_is_kept(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    struct al_heard heard = {0};
    al_stream_start_lingering(&call, f->channel, "count 5000000", 60, 0);
    al_hear_all(&call, &heard);
    finish_ok(&call);
    al_stream_attach(&call, f->channel, "t", heard.job_id, 0);
    al_hear_greeting(&call, &heard);
    const Airlock__V1__StreamResponse *m = (Airlock__V1__StreamResponse *)al_test_receive(
        &call, &airlock__v1__stream_response__descriptor, &arena);
    assert_non_null(m);
    assert_in_range(m->sequence, 4, heard.sequence - 3);
    cut(&call, al_fixture_connect(f));
}

static void test_attach__an_ended_job_gives_its_rest_and_its_result(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    al_stream_start_lingering(&call, f->channel, "count 50000", 60, 0);
    al_hear_until_running(&call, &heard);
    cut(&call, al_fixture_connect(f));
    AL_WAIT_UNTIL(al_fixture_status(f, heard.job_id) == SUCCEEDED);
    for (int i = 0; i < 3; i++) { /* as often as one likes: the result may get lost too */
        struct al_heard again = heard;
        attach(f, &call, &again);
        al_hear_all(&call, &again);
        finish_ok(&call);
        assert_int_equal(again.stdout_bytes, 50000);
        assert_int_equal(again.sum, sum_of_count(50000));
        assert_string_equal(again.statuses, "123");
        assert_int_equal(again.result, SUCCEEDED);
        attach(f, &call, &again); /* behind the result there is nothing, and no waiting */
        assert_false(al_hear(&call, &again));
        finish_ok(&call);
    }
}

static void test_attach__kill_ends_a_job_that_nobody_reads(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    bool killed = false;
    Airlock__V1__JobStatus status = 0;
    al_stream_start_lingering(&call, f->channel, "count 1000000000000", 60, 0);
    al_hear_until_running(&call, &heard);
    cut(&call, al_fixture_connect(f));
    assert_int_equal(al_fixture_status(f, heard.job_id), RUNNING);
    assert_int_equal(al_stream_kill(f, "t", heard.job_id, &killed, &status), GRPC_STATUS_OK);
    assert_true(killed);
    assert_int_equal(status, KILLED);
    attach(f, &call, &heard);
    al_hear_all(&call, &heard);
    finish_ok(&call);
    assert_int_equal(heard.result, KILLED);
    assert_int_equal(heard.reason, AIRLOCK__V1__REASON__REASON_CANCELLED);
}

static void test_linger__ends_a_job_that_nobody_reads_in_time(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    al_stream_start_lingering(&call, f->channel, "count 1000000000000", 0.2, 0);
    al_hear_until_running(&call, &heard);
    cut(&call, al_fixture_connect(f));
    AL_WAIT_UNTIL(al_fixture_status(f, heard.job_id) == KILLED);
    assert_attach_fails(f, "t", heard.job_id, heard.sequence, GRPC_STATUS_NOT_FOUND, "is over");
}

static void test_linger__forgets_the_output_of_an_ended_job_in_time(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    al_stream_start_lingering(&call, f->channel, "count 5", 0.1, 0);
    al_hear_all(&call, &heard);
    finish_ok(&call);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    assert_attach_fails(f, "t", heard.job_id, heard.sequence, GRPC_STATUS_NOT_FOUND, "is over");
    assert_int_equal(al_fixture_status(f, heard.job_id), SUCCEEDED);
}

/* The deadline ends the call, and neither the job nor, with a margin like this, its wall limit. */
static void test_linger__a_deadline_does_not_end_the_job(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    al_stream_start_lingering(&call, f->channel, "cat", 60, 500);
    al_hear_until_running(&call, &heard);
    al_hear_all(&call, &heard);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_DEADLINE_EXCEEDED);
    al_test_call_free(&call);
    assert_int_equal(al_fixture_status(f, heard.job_id), RUNNING);
    attach(f, &call, &heard);
    al_test_half_close(&call);
    al_hear_all(&call, &heard);
    finish_ok(&call);
    assert_int_equal(heard.result, SUCCEEDED);
}

static void test_linger__a_mistake_ends_the_call_only(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    struct al_heard heard = {0};
    al_stream_start_lingering(&call, f->channel, "cat", 60, 0);
    al_hear_until_running(&call, &heard);
    al_stream_send_signal(&call, SIGSEGV);
    al_hear_all(&call, &heard);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_INVALID_ARGUMENT);
    al_test_call_free(&call);
    attach(f, &call, &heard);
    al_test_half_close(&call);
    al_hear_all(&call, &heard);
    finish_ok(&call);
    assert_int_equal(heard.result, SUCCEEDED);
}

static void one_of_each(struct al_config *config)
{
    config->stream_slots = 1;
    config->quota.max_inflight = 1;
}

static void test_linger__an_ended_job_takes_no_slot_and_no_quota(void **state)
{
    (void)state;
    struct al_fixture *f = al_fixture_create(one_of_each);
    struct al_heard first = {0};
    for (int i = 0; i < 3; i++) {
        struct al_test_call call;
        struct al_heard heard = {0};
        al_stream_start_lingering(&call, f->channel, "count 5", 60, 0);
        al_hear_all(&call, &heard);
        finish_ok(&call);
        assert_int_equal(heard.result, SUCCEEDED);
        if (i == 0) {
            first = heard;
        }
    }
    /* One slot: of what has ended one job at a time waits for a reader. */
    assert_attach_fails(f, "t", first.job_id, first.sequence, GRPC_STATUS_NOT_FOUND, "is over");
    al_fixture_destroy(f);
}

static void test_drain__gives_lingering_jobs_their_time(void **state)
{
    (void)state;
    struct al_fixture *f = al_fixture_create(NULL);
    struct al_test_call call;
    struct al_heard running = {0};
    struct al_heard ended = {0};
    al_stream_start_lingering(&call, f->channel, "wait", 60, 0);
    al_hear_until_running(&call, &running);
    cut(&call, al_fixture_connect(f));
    al_stream_start_lingering(&call, f->channel, "count 5", 60, 0);
    al_hear_all(&call, &ended);
    finish_ok(&call);
    al_server_drain(f->server);
    struct pollfd idle = {.fd = al_server_idle_fd(f->server), .events = POLLIN};
    assert_int_equal(poll(&idle, 1, 200), 0);
    assert_int_equal(al_fixture_status(f, running.job_id), RUNNING);
    al_server_cancel_jobs(f->server);
    assert_int_equal(poll(&idle, 1, 10000), 1);
    assert_int_equal(al_fixture_status(f, running.job_id), KILLED);
    al_fixture_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attach__goes_on_after_a_cut),
        cmocka_unit_test(test_attach__a_broken_connection_is_not_the_end_of_stdin),
        cmocka_unit_test(test_attach__stdin_goes_on_where_the_server_stopped),
        cmocka_unit_test(test_attach__stdin_that_waited_goes_with_its_sender),
        cmocka_unit_test(test_attach__takes_over),
        cmocka_unit_test(test_attach__is_refused),
        cmocka_unit_test(test_attach__without_a_sequence_gets_what_is_kept),
        cmocka_unit_test(test_attach__an_ended_job_gives_its_rest_and_its_result),
        cmocka_unit_test(test_attach__kill_ends_a_job_that_nobody_reads),
        cmocka_unit_test(test_linger__ends_a_job_that_nobody_reads_in_time),
        cmocka_unit_test(test_linger__forgets_the_output_of_an_ended_job_in_time),
        cmocka_unit_test(test_linger__a_deadline_does_not_end_the_job),
        cmocka_unit_test(test_linger__a_mistake_ends_the_call_only),
        cmocka_unit_test(test_linger__an_ended_job_takes_no_slot_and_no_quota),
        cmocka_unit_test(test_drain__gives_lingering_jobs_their_time),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
