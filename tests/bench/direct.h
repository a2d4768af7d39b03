/*
 * The native backend in the bench's own process: a launcher and a cell for each run, but no gRPC,
 * so that the two costs can be told apart.
 */
#pragma once

#include "backends/launcher/client.h"
#include "tests/bench/program.h"

struct al_direct_env {
    struct al_launcher *launcher;
    struct al_backend *native;
};

/* Starts a launcher; before any thread. `folder` becomes its data-dir. */
void al_direct_start(struct al_direct_env *env, const char *launcher_path, const char *folder);
void al_direct_stop(struct al_direct_env *env);

struct al_direct {
    const struct al_direct_env *env;
    const struct al_bench_program *program;
};

/* al_contestant.once; `direct` is a struct al_direct. */
void al_direct_run(void *direct, unsigned worker);

/* The spec that Run would make of the program with default quotas; the caller gives the job id. */
struct al_job_spec al_direct_spec(const struct al_direct *direct);
