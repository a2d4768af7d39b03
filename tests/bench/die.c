#include "tests/bench/die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void al_bench_die(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("bench: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(EXIT_FAILURE);
}
