/* How a test tells airlock-launcher-weakened what to leave out. */
#pragma once

#include "backends/launcher/barrier.h"

/* The bit of a barrier, by its short name. */
#define OFF(barrier) (1u << AL_BARRIER_##barrier)

#define AL_BARRIERS_OFF_ENV "AIRLOCK_ESCAPE_SUITE_BARRIERS_OFF"
