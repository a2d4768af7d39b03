/* The programs that are run: one that prints 1, in each language. */
#pragma once

#include <stddef.h>

#define AL_BENCH_OUTPUT "1\n"

struct al_bench_program {
    const char *language;
    const char *code;
    const char *code_file;
    /* As the launcher's built-in runtimes have them; "{code}" and "{output}" are paths. */
    const char *const *compile; /* NULL: no compile step */
    const char *const *argv;
};

#define AL_BENCH_PROGRAMS 4
extern const struct al_bench_program al_bench_programs[AL_BENCH_PROGRAMS];
