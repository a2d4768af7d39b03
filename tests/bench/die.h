/* A measurement that cannot be made ends the bench: half a table is worth nothing. */
#pragma once

/* Prints "bench: …" to stderr and exits with 1; what was started is stopped at exit. */
_Noreturn void al_bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
