/*
 * The least that a Stream of a program's output must do: what gRPC core costs by itself, and beside
 * it, at the same time, the program and a reader of its pipe. No sandbox, no server, no hand-over
 * from one to the other.
 */
#pragma once

#include "tests/bench/floor.h"

struct al_bench_pipe {
    struct al_floor *floor;
    const char *code; /* for bash; prints `bytes` */
    size_t bytes;
};

/* al_contestant.once: ends when both have ended. */
void al_bench_pipe_and_floor(void *pipe, unsigned worker);
