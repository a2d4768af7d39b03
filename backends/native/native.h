/* The default backend: each job in a cell of its own, with every isolation layer that Airlock has.
 */
#pragma once

#include "backends/api/backend.h"
#include "backends/launcher/client.h"

/* Borrows the launcher. NULL when memory is out. */
struct al_backend *al_native_create(struct al_launcher *launcher);
