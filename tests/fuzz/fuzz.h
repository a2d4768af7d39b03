/*
 * The entry point of a fuzz target. Each target defines it once; libFuzzer or the replay driver
 * calls it. It must return 0, keep no state between calls, and abort on a broken invariant.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
