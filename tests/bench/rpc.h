/* Run and Stream of a server, through the client that everybody uses. */
#pragma once

#include <stdbool.h>

#include "client/client.h"
#include "tests/bench/contest.h"
#include "tests/bench/floor.h"

struct al_bench_rpc {
    struct al_client *client; /* one connection for all workers */
    const char *backend;
    const char *language;
    const char *code;
    const char *output;   /* of a Run: what it must print */
    size_t output_bytes;  /* of a Stream: how much must come */
    bool cached;          /* a Run may come from the cache */
    bool own_interpreter; /* none that was started ahead */
    struct al_floor *raw; /* of a Stream: a connection that does not decode what comes */
};

/* al_contestant.once; the argument is a struct al_bench_rpc. */
void al_bench_rpc_run(void *rpc, unsigned worker);

/* By way of `raw`, which takes messages as the floor's client does: what the server costs. */
void al_bench_rpc_stream(void *rpc, unsigned worker);
