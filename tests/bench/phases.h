/* When a native run reaches its stages, as the launcher's client sees it: where a run's time goes.
 */
#pragma once

#include "tests/bench/direct.h"

/* Runs the program `n` times and prints a line with the median of each stage, counted from the
 * start of the spawn call. */
void al_phases_print(const struct al_direct *direct, unsigned n);
