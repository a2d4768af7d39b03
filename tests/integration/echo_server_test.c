/* Run, Kill, GetJob, ListBackends and what every call may meet, through a real connection. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <grpc/compression.h>
#include <grpc/grpc_security.h>

#include "backends/base/clock.h"
#include "tests/integration/fixture.h"

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

/* A Run that fails as a call; its text must contain `part`. */
static void assert_run_fails(struct al_fixture *f, const Airlock__V1__RunRequest *request,
                             grpc_status_code status, const char *part)
{
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    assert_null(al_test_unary(&call, f->channel, "Run", "t", &request->base,
                              &airlock__v1__run_response__descriptor, &arena));
    assert_int_equal(call.status, status);
    if (!strstr(call.text, part)) {
        fail_msg("\"%s\" has no \"%s\"", call.text, part);
    }
    al_test_call_free(&call);
}

static void test_run__echo_returns_the_code(void **state)
{
    struct al_fixture *f = *state;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__RunRequest request = al_run_request(NULL, "print(1)\xff");
    Airlock__V1__ExecutionResult *result = al_fixture_run(f, &request, &arena);
    assert_int_equal(result->status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_SUCCEEDED);
    assert_int_equal(result->exit_case, AIRLOCK__V1__EXECUTION_RESULT__EXIT_EXIT_CODE);
    assert_int_equal(result->exit_code, 0);
    assert_int_equal(result->stdout.len, 9);
    assert_memory_equal(result->stdout.data, "print(1)\xff", 9);
    assert_int_equal(result->stderr.len, 0);
    assert_string_equal(result->language, "python@0");
    assert_string_equal(result->backend, "echo");
    assert_int_equal(al_fixture_status(f, result->job_id), result->status);
}

static void test_run__a_long_reply_is_whole(void **state)
{
    struct al_fixture *f = *state;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__RunRequest request = al_run_request(NULL, "");
    uint8_t *code = malloc(MIB);
    assert_non_null(code);
    for (size_t i = 0; i < MIB; i++) {
        code[i] = (uint8_t)(i * 31 >> 4);
    }
    request.code = (ProtobufCBinaryData){MIB, code};
    Airlock__V1__ExecutionResult *result = al_fixture_run(f, &request, &arena);
    assert_int_equal(result->stdout.len, MIB);
    assert_memory_equal(result->stdout.data, code, MIB);
    free(code);
}

static void test_run__cuts_output_at_its_limit(void **state)
{
    struct al_fixture *f = *state;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__Quotas quotas;
    airlock__v1__quotas__init(&quotas);
    quotas.output_bytes = 3;
    Airlock__V1__RunRequest request = al_run_request(NULL, "12345");
    request.quotas = &quotas;
    Airlock__V1__ExecutionResult *result = al_fixture_run(f, &request, &arena);
    assert_int_equal(result->status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_FAILED);
    assert_int_equal(result->reason, AIRLOCK__V1__REASON__REASON_LIMIT);
    assert_int_equal(result->limit_hit, AIRLOCK__V1__LIMIT__LIMIT_OUTPUT);
    assert_true(result->stdout_truncated);
    assert_int_equal(result->stdout.len, 3);
    assert_int_equal(result->effective_quotas->output_bytes, 3);
}

static void test_run__a_backends_error_is_a_result(void **state)
{
    struct al_fixture *f = *state;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__RunRequest request = al_run_request("actor", "fail");
    Airlock__V1__ExecutionResult *result = al_fixture_run(f, &request, &arena);
    assert_int_equal(result->status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_FAILED);
    assert_int_equal(result->reason, AIRLOCK__V1__REASON__REASON_BACKEND);
    assert_string_equal(result->error, "the actor fell");
}

static void test_run__malformed_requests_name_the_field(void **state)
{
    struct al_fixture *f = *state;
    Airlock__V1__Quotas quotas;
    airlock__v1__quotas__init(&quotas);
    quotas.wall_seconds = -1;
    Airlock__V1__RunRequest request = al_run_request(NULL, "x");
    request.quotas = &quotas;
    assert_run_fails(f, &request, GRPC_STATUS_INVALID_ARGUMENT, "wall_seconds");

    request = al_run_request("no-such", "x");
    assert_run_fails(f, &request, GRPC_STATUS_NOT_FOUND, "no-such");

    request = al_run_request("actor", "x");
    request.language = (char *)"cobol";
    assert_run_fails(f, &request, GRPC_STATUS_FAILED_PRECONDITION, "cobol");

    request = al_run_request(NULL, "x");
    request.tenant_id = (char *)"other"; /* than the metadata says */
    assert_run_fails(f, &request, GRPC_STATUS_INVALID_ARGUMENT, "tenant");
}

static void assert_bytes_fail(struct al_fixture *f, const char *method, const void *data,
                              size_t len, grpc_status_code status)
{
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    al_test_begin(&call, f->channel, method, NULL, 0);
    if (data) {
        al_test_send_bytes(&call, data, len);
    }
    al_test_half_close(&call);
    assert_null(al_test_receive(&call, &airlock__v1__run_response__descriptor, &arena));
    assert_int_equal(al_test_finish(&call), status);
    al_test_call_free(&call);
}

static void test_calls__bytes_that_are_no_message_are_invalid(void **state)
{
    static const char *const methods[] = {"Run",          "Stream",   "Kill",    "GetJob",
                                          "ListBackends", "ListJobs", "GetQuota"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        assert_bytes_fail(*state, methods[i], "\xff\xff\xff", 3, GRPC_STATUS_INVALID_ARGUMENT);
        assert_bytes_fail(*state, methods[i], NULL, 0, GRPC_STATUS_INVALID_ARGUMENT);
    }
}

static void test_calls__what_is_not_there_is_unimplemented(void **state)
{
    static const char *const methods[] = {"listJobs", "NoSuch", ""};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        assert_bytes_fail(*state, methods[i], "", 0, GRPC_STATUS_UNIMPLEMENTED);
    }
}

static void test_calls__a_message_beyond_all_limits_is_refused(void **state)
{
    struct al_fixture *f = *state;
    uint8_t *zeros = calloc(1, 40 * MIB);
    assert_non_null(zeros);
    assert_bytes_fail(f, "Run", zeros, 40 * MIB, GRPC_STATUS_RESOURCE_EXHAUSTED);
    free(zeros);
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__RunRequest request = al_run_request(NULL, "still there");
    assert_int_equal(al_fixture_run(f, &request, &arena)->exit_code, 0);
}

/* Limits are checked after inflation: a few bytes could cost gigabytes. */
static void test_calls__compressed_messages_are_refused(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    grpc_arg arg = {
        .type = GRPC_ARG_INTEGER,
        .key = (char *)GRPC_COMPRESSION_CHANNEL_DEFAULT_ALGORITHM,
        .value.integer = GRPC_COMPRESS_GZIP,
    };
    const grpc_channel_args args = {.num_args = 1, .args = &arg};
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_channel *channel = grpc_channel_create(f->address, credentials, &args);
    grpc_channel_credentials_release(credentials);
    static const char zeros[100000];
    Airlock__V1__RunRequest request = al_run_request(NULL, "");
    request.code = (ProtobufCBinaryData){sizeof zeros, (uint8_t *)zeros};
    assert_null(al_test_unary(&call, channel, "Run", NULL, &request.base,
                              &airlock__v1__run_response__descriptor, &arena));
    assert_int_equal(call.status, GRPC_STATUS_UNIMPLEMENTED);
    al_test_call_free(&call);
    grpc_channel_destroy(channel);
}

static void test_calls__a_malformed_tenant_is_invalid(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    char tenant[1001];
    memset(tenant, 'a', 1000);
    tenant[1000] = '\0';
    Airlock__V1__RunRequest request = al_run_request(NULL, "x");
    assert_null(al_test_unary(&call, f->channel, "Run", tenant, &request.base,
                              &airlock__v1__run_response__descriptor, &arena));
    assert_int_equal(call.status, GRPC_STATUS_INVALID_ARGUMENT);
    al_test_call_free(&call);
}

/* So that the answer arrives in time on the busiest machine. */
static void margin_of_5s(struct al_config *config)
{
    config->limits.deadline_margin_ms = 5000;
}

static void test_run__a_deadline_without_time_to_run_is_a_timeout(void **state)
{
    (void)state;
    struct al_fixture *f = al_fixture_create(margin_of_5s);
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__RunRequest request = al_run_request("actor", "wait");
    al_test_begin(&call, f->channel, "Run", NULL, 4900);
    al_test_send(&call, &request.base);
    al_test_half_close(&call);
    Airlock__V1__RunResponse *response = (Airlock__V1__RunResponse *)al_test_receive(
        &call, &airlock__v1__run_response__descriptor, &arena);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    assert_int_equal(response->result->status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_TIMEOUT);
    assert_int_equal(response->result->limit_hit, AIRLOCK__V1__LIMIT__LIMIT_WALL);
    al_test_call_free(&call);
    al_fixture_destroy(f);
}

static void test_run__a_deadline_shortens_the_wall_limit(void **state)
{
    (void)state;
    struct al_fixture *f = al_fixture_create(margin_of_5s);
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__RunRequest request = al_run_request("actor", "wait");
    al_test_begin(&call, f->channel, "Run", NULL, 5500);
    al_test_send(&call, &request.base);
    al_test_half_close(&call);
    Airlock__V1__RunResponse *response = (Airlock__V1__RunResponse *)al_test_receive(
        &call, &airlock__v1__run_response__descriptor, &arena);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    assert_int_equal(response->result->status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_TIMEOUT);
    assert_true(response->result->effective_quotas->wall_seconds <= 0.6); /* gRPC rounds up */
    al_test_call_free(&call);
    al_fixture_destroy(f);
}

static void test_run__a_cancelled_call_kills_its_job(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    Airlock__V1__RunRequest request = al_run_request("actor", "wait");
    al_test_begin(&call, f->channel, "Run", NULL, 0);
    al_test_send(&call, &request.base);
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 1);
    grpc_call_cancel(call.call, NULL);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_CANCELLED);
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 0);
    al_test_call_free(&call);
}

static void test_get_job__knows_the_tenants_jobs_only(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    al_auto_arena struct al_arena *none = NULL;
    Airlock__V1__RunRequest run = al_run_request(NULL, "x");
    Airlock__V1__ExecutionResult *result = al_fixture_run(f, &run, &arena);
    Airlock__V1__GetJobRequest request;
    airlock__v1__get_job_request__init(&request);
    request.job_id = result->job_id;
    assert_null(al_test_unary(&call, f->channel, "GetJob", "u", &request.base,
                              &airlock__v1__get_job_response__descriptor, &none));
    assert_int_equal(call.status, GRPC_STATUS_NOT_FOUND);
    al_test_call_free(&call);
    request.job_id = (char *)"0123";
    assert_null(al_test_unary(&call, f->channel, "GetJob", "t", &request.base,
                              &airlock__v1__get_job_response__descriptor, &none));
    assert_int_equal(call.status, GRPC_STATUS_INVALID_ARGUMENT);
    al_test_call_free(&call);
}

static void test_list_backends__lists_them(void **state)
{
    struct al_fixture *f = *state;
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__ListBackendsRequest request;
    airlock__v1__list_backends_request__init(&request);
    Airlock__V1__ListBackendsResponse *response =
        (Airlock__V1__ListBackendsResponse *)al_test_unary(
            &call, f->channel, "ListBackends", NULL, &request.base,
            &airlock__v1__list_backends_response__descriptor, &arena);
    assert_non_null(response);
    assert_int_equal(response->n_backends, 2);
    assert_string_equal(response->backends[0]->name, "echo");
    assert_true(response->backends[0]->is_default && response->backends[0]->available);
    assert_int_equal(response->backends[0]->n_languages, 4);
    assert_string_equal(response->backends[0]->capabilities[0], "stream");
    assert_false(response->backends[1]->is_default);
    al_test_call_free(&call);
}

#define N_AT_ONCE 200

static void test_run__many_at_once(void **state)
{
    struct al_fixture *f = *state;
    static struct al_test_call calls[N_AT_ONCE];
    Airlock__V1__RunRequest request = al_run_request(NULL, "x");
    for (int i = 0; i < N_AT_ONCE; i++) {
        al_test_begin(&calls[i], f->channel, "Run", NULL, 0);
        al_test_send(&calls[i], &request.base);
        al_test_half_close(&calls[i]);
    }
    for (int i = 0; i < N_AT_ONCE; i++) {
        al_auto_arena struct al_arena *arena = NULL;
        assert_non_null(al_test_receive(&calls[i], &airlock__v1__run_response__descriptor, &arena));
        assert_int_equal(al_test_finish(&calls[i]), GRPC_STATUS_OK);
        al_test_call_free(&calls[i]);
    }
}

static void make_small(struct al_config *config)
{
    config->run_slots = 1;
    config->queue_max = 2;
    config->queue_tenant_max = 2;
}

static void test_run__a_full_queue_pushes_back(void **state)
{
    (void)state;
    struct al_fixture *f = al_fixture_create(make_small);
    struct al_test_call calls[4];
    struct al_test_call *last = &calls[3];
    Airlock__V1__RunRequest request = al_run_request("actor", "wait");
    for (int i = 0; i < 4; i++) {
        al_test_begin(&calls[i], f->channel, "Run", NULL, 0);
        al_test_send(&calls[i], &request.base);
        al_test_half_close(&calls[i]);
        AL_WAIT_UNTIL(al_actor_running(f->actor) == 1);
    }
    assert_int_equal(al_test_finish(last), GRPC_STATUS_RESOURCE_EXHAUSTED);
    assert_true(last->pushback_ms > 0);
    al_test_call_free(last);
    for (int i = 2; i >= 0; i--) { /* those that wait first: they never run */
        grpc_call_cancel(calls[i].call, NULL);
        assert_int_equal(al_test_finish(&calls[i]), GRPC_STATUS_CANCELLED);
        al_test_call_free(&calls[i]);
    }
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 0);
    al_fixture_destroy(f);
}

static void test_drain__refuses_the_new_and_lets_the_old_end(void **state)
{
    (void)state;
    struct al_fixture *f = al_fixture_create(NULL);
    struct al_test_call call;
    struct al_test_call refused;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__RunRequest wait = al_run_request("actor", "wait");
    al_test_begin(&call, f->channel, "Run", "t", 0);
    al_test_send(&call, &wait.base);
    al_test_half_close(&call);
    AL_WAIT_UNTIL(al_actor_running(f->actor) == 1);
    al_server_drain(f->server);
    struct pollfd idle = {.fd = al_server_idle_fd(f->server), .events = POLLIN};
    assert_int_equal(poll(&idle, 1, 0), 0);

    assert_null(al_test_unary(&refused, f->channel, "Run", NULL, &wait.base,
                              &airlock__v1__run_response__descriptor, &arena));
    assert_int_equal(refused.status, GRPC_STATUS_UNAVAILABLE);
    assert_true(refused.pushback_ms > 0);
    al_test_call_free(&refused);

    al_server_cancel_jobs(f->server);
    Airlock__V1__RunResponse *response = (Airlock__V1__RunResponse *)al_test_receive(
        &call, &airlock__v1__run_response__descriptor, &arena);
    assert_non_null(response);
    assert_int_equal(response->result->status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED);
    assert_int_equal(al_test_finish(&call), GRPC_STATUS_OK);
    al_test_call_free(&call);
    assert_int_equal(poll(&idle, 1, 5000), 1);
    al_fixture_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run__echo_returns_the_code),
        cmocka_unit_test(test_run__a_long_reply_is_whole),
        cmocka_unit_test(test_run__cuts_output_at_its_limit),
        cmocka_unit_test(test_run__a_backends_error_is_a_result),
        cmocka_unit_test(test_run__malformed_requests_name_the_field),
        cmocka_unit_test(test_calls__bytes_that_are_no_message_are_invalid),
        cmocka_unit_test(test_calls__what_is_not_there_is_unimplemented),
        cmocka_unit_test(test_calls__a_message_beyond_all_limits_is_refused),
        cmocka_unit_test(test_calls__compressed_messages_are_refused),
        cmocka_unit_test(test_calls__a_malformed_tenant_is_invalid),
        cmocka_unit_test(test_run__a_deadline_without_time_to_run_is_a_timeout),
        cmocka_unit_test(test_run__a_deadline_shortens_the_wall_limit),
        cmocka_unit_test(test_run__a_cancelled_call_kills_its_job),
        cmocka_unit_test(test_get_job__knows_the_tenants_jobs_only),
        cmocka_unit_test(test_list_backends__lists_them),
        cmocka_unit_test(test_run__many_at_once),
        cmocka_unit_test(test_run__a_full_queue_pushes_back),
        cmocka_unit_test(test_drain__refuses_the_new_and_lets_the_old_end),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
