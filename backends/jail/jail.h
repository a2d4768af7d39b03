/*
 * The backends bubblewrap and firejail: each job in a cell of the launcher's whose program the tool
 * starts. Same uid, cgroups, files and filter as native has; the namespaces and what goes with them
 * are the tool's. Not available where the program is missing or its version is known to let
 * programs out; see [bubblewrap] and [firejail] of the configuration.
 */
#pragma once

#include "backends/api/backend.h"
#include "backends/launcher/client.h"

/* Borrows the launcher. NULL when memory is out. */
struct al_backend *al_bubblewrap_create(struct al_launcher *launcher);
struct al_backend *al_firejail_create(struct al_launcher *launcher);
