#include "client/client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "client/call.h"
#include "proto/wire/wire.h"

#define SERVICE         "/airlock.v1.ExecutionService/"
#define ADMIN_SERVICE   "/airlock.v1.AdminService/"
#define TENANT_METADATA "airlock-tenant"

/* What may be under way to a reader that stalls: where it does not grow with the bandwidth, a
 * quarter of what a server keeps unless configured (1 MiB), beside which one message may be half
 * read; else gRPC's own beginning. */
#define RESUME_WINDOW_BYTES  (256 << 10)
#define DEFAULT_WINDOW_BYTES (64 << 10)

static const char *const method_paths[] = {
    [AL_METHOD_RUN] = SERVICE "Run",
    [AL_METHOD_STREAM] = SERVICE "Stream",
    [AL_METHOD_KILL] = SERVICE "Kill",
    [AL_METHOD_LIST_BACKENDS] = SERVICE "ListBackends",
    [AL_METHOD_GET_JOB] = SERVICE "GetJob",
    [AL_METHOD_LIST_JOBS] = SERVICE "ListJobs",
    [AL_METHOD_GET_QUOTA] = SERVICE "GetQuota",
    [AL_METHOD_GET_CACHE_STATS] = ADMIN_SERVICE "GetCacheStats",
    [AL_METHOD_CLEAR_CACHE] = ADMIN_SERVICE "ClearCache",
};

/* Each connection is its own (no shared subchannels), fails fast and is never compressed, since
 * gRPC bounds a message only after it was inflated. */
static grpc_channel *create_channel(const char *address, bool resumes)
{
    grpc_arg list[] = {
        {.key = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, .value.integer = (int)AL_CLIENT_RECEIVE_MAX},
        {.key = GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, .value.integer = 200},
        {.key = GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, .value.integer = AL_CLIENT_CONNECT_MS},
        {.key = GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, .value.integer = AL_CLIENT_CONNECT_MS},
        {.key = GRPC_ARG_DNS_ARES_QUERY_TIMEOUT_MS, .value.integer = AL_CLIENT_CONNECT_MS},
        {.key = GRPC_ARG_ENABLE_HTTP_PROXY, .value.integer = 0},
        {.key = GRPC_ARG_ENABLE_RETRIES, .value.integer = 0},
        {.key = GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, .value.integer = 1},
        {.key = GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, .value.integer = 1},
        /* A server whose machine is gone is noticed; servers allow a ping every 10 s. */
        {.key = GRPC_ARG_KEEPALIVE_TIME_MS, .value.integer = 20000},
        {.key = GRPC_ARG_KEEPALIVE_TIMEOUT_MS, .value.integer = 10000},
        {.key = GRPC_ARG_HTTP2_BDP_PROBE, .value.integer = !resumes},
        {.key = GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
         .value.integer = resumes ? RESUME_WINDOW_BYTES : DEFAULT_WINDOW_BYTES},
    };
    grpc_channel_args args = {.num_args = sizeof list / sizeof *list, .args = list};
    for (size_t i = 0; i < args.num_args; i++) {
        list[i].type = GRPC_ARG_INTEGER;
    }
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_channel *channel = grpc_channel_create(address, credentials, &args);
    grpc_channel_credentials_release(credentials);
    return channel;
}

static bool set_tenant(struct al_client *client, const char *tenant)
{
    grpc_slice value = grpc_slice_from_copied_string(tenant);
    if (!grpc_header_nonbin_value_is_legal(value)) {
        grpc_slice_unref(value);
        return false;
    }
    client->metadata[0].key = grpc_slice_from_static_string(TENANT_METADATA);
    client->metadata[0].value = value;
    client->n_metadata = 1;
    return true;
}

struct al_client *al_client_create(const struct al_client_options *options)
{
    struct al_client *client = calloc(1, sizeof *client);
    if (!client) {
        return NULL;
    }
    grpc_init();
    pthread_mutex_init(&client->lock, NULL);
    client->channel = create_channel(
        options->address ? options->address : AL_CLIENT_DEFAULT_ADDRESS, options->resumes);
    for (size_t i = 0; i < AL_METHOD_COUNT; i++) {
        client->methods[i] =
            grpc_channel_register_call(client->channel, method_paths[i], NULL, NULL);
    }
    if (options->tenant && *options->tenant && !set_tenant(client, options->tenant)) {
        al_client_destroy(client);
        return NULL;
    }
    return client;
}

void al_client_destroy(struct al_client *client)
{
    if (!client) {
        return;
    }
    assert(!client->calls);
    grpc_channel_destroy(client->channel);
    if (client->n_metadata > 0) {
        grpc_slice_unref(client->metadata[0].value);
    }
    pthread_mutex_destroy(&client->lock);
    free(client);
    grpc_shutdown();
}

void al_client_cancel(struct al_client *client)
{
    pthread_mutex_lock(&client->lock);
    client->cancelled = true;
    for (struct al_call *call = client->calls; call; call = call->next) {
        grpc_call_cancel(call->call, NULL);
    }
    pthread_mutex_unlock(&client->lock);
}

static grpc_byte_buffer *exchange(struct al_client *client, enum al_method method,
                                  grpc_byte_buffer *request, const struct al_call_options *options,
                                  struct al_call_status *ret_status)
{
    struct al_call call;
    grpc_byte_buffer *response = NULL;
    grpc_op ops[AL_CALL_OPS + 3];
    memset(ops, 0, sizeof ops);
    al_call_init(&call, client, method, options);
    al_call_fill_ops(&call, ops);
    ops[AL_CALL_OPS].op = GRPC_OP_SEND_MESSAGE;
    ops[AL_CALL_OPS].data.send_message.send_message = request;
    ops[AL_CALL_OPS + 1].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[AL_CALL_OPS + 2].op = GRPC_OP_RECV_MESSAGE;
    ops[AL_CALL_OPS + 2].data.recv_message.recv_message = &response;
    grpc_call_error error =
        grpc_call_start_batch(call.call, ops, sizeof ops / sizeof *ops, &call, NULL);
    if (error == GRPC_CALL_OK) {
        al_call_pluck(&call, &call, -1, NULL);
        al_call_read_status(&call, ret_status);
    } else {
        al_call_status_set(ret_status, GRPC_STATUS_INTERNAL, "gRPC: %s",
                           grpc_call_error_to_string(error));
    }
    al_call_finish(&call);
    return response;
}

static int call_unary(struct al_client *client, enum al_method method,
                      const ProtobufCMessage *request, const struct al_call_options *options,
                      const ProtobufCMessageDescriptor *desc, struct al_arena **ret_arena,
                      void *ret, struct al_call_status *ret_status)
{
    grpc_byte_buffer *sent = al_wire_pack(request);
    if (!sent) {
        al_call_status_set(ret_status, GRPC_STATUS_INVALID_ARGUMENT, "the request is too large");
        return -EREMOTEIO;
    }
    grpc_byte_buffer *received = exchange(client, method, sent, options, ret_status);
    grpc_byte_buffer_destroy(sent);
    char why[256];
    ProtobufCMessage *message;
    if (ret_status->code == GRPC_STATUS_OK) {
        if (al_wire_unpack(desc, received, &al_wire_response_limits, ret_arena, &message, why,
                           sizeof why) < 0)
        {
            al_call_status_set(ret_status, GRPC_STATUS_INTERNAL, "bad response: %s", why);
        } else {
            *(ProtobufCMessage **)ret = message;
        }
    }
    grpc_byte_buffer_destroy(received);
    return ret_status->code == GRPC_STATUS_OK ? 0 : -EREMOTEIO;
}

#define DEFINE_UNARY(name, method, Type, type)                                                   \
    int al_client_##name(struct al_client *client, const Airlock__V1__##Type##Request *request,  \
                         const struct al_call_options *options, struct al_arena **ret_arena,     \
                         Airlock__V1__##Type##Response **ret, struct al_call_status *ret_status) \
    {                                                                                            \
        return call_unary(client, method, &request->base, options,                               \
                          &airlock__v1__##type##_response__descriptor, ret_arena, ret,           \
                          ret_status);                                                           \
    }

DEFINE_UNARY(run, AL_METHOD_RUN, Run, run)
DEFINE_UNARY(kill, AL_METHOD_KILL, Kill, kill)
DEFINE_UNARY(list_backends, AL_METHOD_LIST_BACKENDS, ListBackends, list_backends)
DEFINE_UNARY(get_job, AL_METHOD_GET_JOB, GetJob, get_job)
DEFINE_UNARY(list_jobs, AL_METHOD_LIST_JOBS, ListJobs, list_jobs)
DEFINE_UNARY(get_quota, AL_METHOD_GET_QUOTA, GetQuota, get_quota)
DEFINE_UNARY(get_cache_stats, AL_METHOD_GET_CACHE_STATS, GetCacheStats, get_cache_stats)
DEFINE_UNARY(clear_cache, AL_METHOD_CLEAR_CACHE, ClearCache, clear_cache)
