/* A backend that is a kind of cell and nothing more: what native and local have in common. */
#pragma once

#include "backends/api/backend.h"
#include "backends/launcher/client.h"

/* Borrows the launcher, which outlives it. NULL when memory is out. `capabilities`: beyond those
 * that every cell has. */
struct al_backend *al_cell_backend_create(struct al_launcher *launcher, enum al_cell_kind kind,
                                          const char *name, uint32_t capabilities);
