/* A key stroke on an interactive Stream, from the client's side, until its echo is there. */
#pragma once

#include "client/client.h"

struct al_bench_keys;

/* A Stream with a terminal, on which `code` (bash) prints "ready" when it will echo. */
struct al_bench_keys *al_bench_keys_create(struct al_client *client, const char *code);
void al_bench_keys_destroy(struct al_bench_keys *keys);

/* al_contestant.once; the argument is a struct al_bench_keys. For one worker. */
void al_bench_keys_type(void *keys, unsigned worker);
