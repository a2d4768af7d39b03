/*
 * The entry point of a fuzz target. Each target defines it once; libFuzzer or the replay driver
 * calls it. It must return 0, keep no state between calls, and abort on a broken invariant.
 */
#ifndef AL_TESTS_FUZZ_FUZZ_H
#define AL_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#endif
