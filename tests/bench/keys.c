#include "tests/bench/keys.h"

#include <stdlib.h>
#include <string.h>

#include "tests/bench/die.h"

#define ANSWER_MS 10000

struct al_bench_keys {
    struct al_stream *stream;
};

/* Until so many bytes have come. */
static void await(struct al_bench_keys *keys, size_t n)
{
    while (n > 0) {
        struct al_arena *arena;
        Airlock__V1__StreamResponse *response;
        if (al_stream_next(keys->stream, ANSWER_MS, &arena, &response) != AL_STREAM_MESSAGE) {
            al_bench_die("a key stroke without an echo");
        }
        if (response->event_case == AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDOUT) {
            n -= response->stdout.len < n ? response->stdout.len : n;
        }
        al_arena_destroy(arena);
    }
}

struct al_bench_keys *al_bench_keys_create(struct al_client *client, const char *code)
{
    struct al_bench_keys *keys = calloc(1, sizeof *keys);
    Airlock__V1__RunRequest request = AIRLOCK__V1__RUN_REQUEST__INIT;
    Airlock__V1__StreamStart start = AIRLOCK__V1__STREAM_START__INIT;
    Airlock__V1__TerminalSize size = AIRLOCK__V1__TERMINAL_SIZE__INIT;
    Airlock__V1__Quotas quotas = AIRLOCK__V1__QUOTAS__INIT;
    quotas.wall_seconds = 60;
    size.rows = 24;
    size.cols = 80;
    request.code = (ProtobufCBinaryData){.data = (uint8_t *)code, .len = strlen(code)};
    request.language = (char *)"bash";
    request.backend = (char *)"native";
    request.quotas = &quotas;
    start.request = &request;
    start.terminal = &size;
    if (!keys || !(keys->stream = al_stream_create(client, NULL)) ||
        al_stream_send_start(keys->stream, &start, ANSWER_MS) < 0)
    {
        al_bench_die("Stream: cannot start");
    }
    await(keys, strlen("ready"));
    return keys;
}

void al_bench_keys_destroy(struct al_bench_keys *keys)
{
    al_stream_destroy(keys->stream);
    free(keys);
}

void al_bench_keys_type(void *arg, unsigned worker)
{
    (void)worker;
    struct al_bench_keys *keys = arg;
    if (al_stream_send_stdin(keys->stream, "x", 1, ANSWER_MS) < 0) {
        al_bench_die("cannot type");
    }
    await(keys, 1);
}
