/* What is measured against what. Each prints its rows. */
#pragma once

#include <stdbool.h>

#include "client/client.h"
#include "tests/bench/direct.h"
#include "tests/bench/floor.h"
#include "tests/bench/table.h"

#define AL_BENCH_AIMS_MAX 32

/* Undecoding connections. */
struct al_bench_raw {
    struct al_floor *floor;
    struct al_floor *server;
};

struct al_bench {
    struct al_direct_env direct;
    struct al_client *client; /* NULL: no server, only plain spawn and the backend itself */
    struct al_bench_raw raw;
    struct al_bench_raw raw_fixed; /* the same with windows that do not grow */
    const char *folder;            /* on a tmpfs */
    bool quick;
    struct al_aim aims[AL_BENCH_AIMS_MAX];
    size_t n_aims;
};

/* A language: plain spawn, the native backend without RPC, Run; at 1, 4 and 16 at a time. */
void al_cases_program(struct al_bench *bench, const struct al_bench_program *program);

/* Run by a tool's backend ("bubblewrap", "firejail") beside the bare tool, at 1 and 4 at a time. */
void al_cases_tool(struct al_bench *bench, const char *backend);

/* Echo-backend Run beside the unary floor, at 1 and 16 at a time. */
void al_cases_echo(struct al_bench *bench);

/* A key stroke and its echo beside the unary floor. */
void al_cases_keys(struct al_bench *bench);

/* Native Stream beside the streaming floor, with both kinds of window. */
void al_cases_stream(struct al_bench *bench);
