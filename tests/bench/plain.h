/*
 * The yardstick: posix_spawn of the interpreter, read of what it prints, wait. Same argv as in a
 * cell and the same clean environment, in a folder on a tmpfs where the code lies ready.
 */
#pragma once

#include "tests/bench/contest.h"
#include "tests/bench/program.h"

struct al_plain;

/* `folder` is on a tmpfs; a folder for each worker is made in it. */
struct al_plain *al_plain_create(const struct al_bench_program *program, const char *folder);

/* The same with another program's command line before the interpreter's; "{dir}" in it is the
 * folder where the code lies. For a program without a compile step. */
struct al_plain *al_plain_create_in(const struct al_bench_program *program, const char *folder,
                                    const char *const *before);
void al_plain_destroy(struct al_plain *plain);

/* al_contestant.once. */
void al_plain_run(void *plain, unsigned worker);
