#include "service/transport.h"

static grpc_arg int_arg(const char *key, int value)
{
    return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value};
}

grpc_server *al_transport_create(const struct al_service *service)
{
    grpc_arg args[] = {
        int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)service->run_limits.message_bytes),
        /* Size limits are checked after inflation, so a few bytes could cost gigabytes. */
        int_arg(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1),
        /* Two servers on one port must not share it silently. */
        int_arg(GRPC_ARG_ALLOW_REUSEPORT, 0),
        int_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS, (int)service->calls_max),
        int_arg(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10),
        /* A client whose machine is gone is noticed within 40 s; clients may ask every 10 s. */
        int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, 30000),
        int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000),
        int_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10000),
        int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        int_arg(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 20000),
        int_arg(GRPC_ARG_ENABLE_CHANNELZ, 0),
    };
    const grpc_channel_args all = {.num_args = sizeof args / sizeof args[0], .args = args};
    return grpc_server_create(&all, NULL);
}
