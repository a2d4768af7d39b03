#include "tests/integration/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <grpc/grpc_security.h>

#include "backends/echo/echo.h"

grpc_channel *al_fixture_connect(const struct al_fixture *f)
{
    /* A pool of its own: else channels to one address share a connection. */
    grpc_arg args[] = {
        {.type = GRPC_ARG_INTEGER,
         .key = (char *)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
         .value.integer = 1},
        {.type = GRPC_ARG_INTEGER,
         .key = (char *)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
         .value.integer = -1},
        /* Little is on its way to a reader that stalls: what is lost with a cut is still kept. */
        {.type = GRPC_ARG_INTEGER, .key = (char *)GRPC_ARG_HTTP2_BDP_PROBE, .value.integer = 0},
    };
    const grpc_channel_args all = {.num_args = sizeof args / sizeof args[0], .args = args};
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_channel *channel = grpc_channel_create(f->address, credentials, &all);
    grpc_channel_credentials_release(credentials);
    assert_non_null(channel);
    return channel;
}

struct al_fixture *al_fixture_create(void (*change)(struct al_config *config))
{
    struct al_fixture *f = calloc(1, sizeof *f);
    struct al_err err = {0};
    int port = 0;
    assert_non_null(f);
    grpc_init();
    al_config_defaults(&f->config);
    f->config.data_dir[0] = '\0'; /* no cache, no records */
    f->config.quota.max_inflight = 1000;
    if (change) {
        change(&f->config);
    }
    f->backends[0] = al_echo_create();
    f->backends[1] = f->actor = al_actor_create();
    assert_true(f->backends[0] && f->backends[1]);
    f->registry = (struct al_registry){f->backends, 2, f->backends[0]};
    if (al_server_create(&f->config, &f->registry, &f->server, &err) < 0 ||
        al_server_listen(f->server, "127.0.0.1:0", &port, &err) < 0 ||
        al_server_start(f->server, &err) < 0)
    {
        fail_msg("%s", err.text);
    }
    (void)snprintf(f->address, sizeof f->address, "127.0.0.1:%d", port);
    f->channel = al_fixture_connect(f);
    return f;
}

void al_fixture_destroy(struct al_fixture *f)
{
    grpc_channel_destroy(f->channel);
    al_server_destroy(f->server);
    al_backend_destroy(f->backends[0]);
    al_backend_destroy(f->backends[1]);
    free(f);
    grpc_shutdown();
}

Airlock__V1__RunRequest al_run_request(const char *backend, const char *code)
{
    Airlock__V1__RunRequest request;
    airlock__v1__run_request__init(&request);
    request.code = (ProtobufCBinaryData){strlen(code), (uint8_t *)code};
    if (backend) {
        request.backend = (char *)backend;
    }
    return request;
}

Airlock__V1__ExecutionResult *al_fixture_run(struct al_fixture *f,
                                             const Airlock__V1__RunRequest *request,
                                             struct al_arena **ret_arena)
{
    struct al_test_call call;
    Airlock__V1__RunResponse *response = (Airlock__V1__RunResponse *)al_test_unary(
        &call, f->channel, "Run", "t", &request->base, &airlock__v1__run_response__descriptor,
        ret_arena);
    if (call.status != GRPC_STATUS_OK) {
        fail_msg("Run: status %d: %s", call.status, call.text);
    }
    assert_non_null(response);
    assert_non_null(response->result);
    al_test_call_free(&call);
    return response->result;
}

Airlock__V1__JobStatus al_fixture_status(struct al_fixture *f, const char *job_id)
{
    struct al_test_call call;
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__GetJobRequest request;
    airlock__v1__get_job_request__init(&request);
    request.job_id = (char *)job_id;
    Airlock__V1__GetJobResponse *response = (Airlock__V1__GetJobResponse *)al_test_unary(
        &call, f->channel, "GetJob", "t", &request.base, &airlock__v1__get_job_response__descriptor,
        &arena);
    assert_int_equal(call.status, GRPC_STATUS_OK);
    Airlock__V1__JobStatus status = response->job->status;
    al_test_call_free(&call);
    return status;
}
