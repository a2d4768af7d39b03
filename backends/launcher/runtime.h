/* Finds out which of the configured runtimes are there, and in which version. */
#pragma once

#include "backends/launcher/config.h"

/* Runs `interpreter --version` of each runtime (as nobody, at most five seconds each) where the
 * configuration gives no version, and leaves out those whose programs are missing; each of them is
 * logged. */
void al_runtimes_probe(struct al_cells_config *config);
