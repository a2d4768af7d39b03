/*
 * For development: a temporary folder, limits, and a process tree that dies as one, but the host's
 * files and network. Off unless the configuration says [local] allow_unsafe = yes.
 */
#pragma once

#include "backends/api/backend.h"
#include "backends/launcher/client.h"

/* Borrows the launcher. NULL when memory is out. */
struct al_backend *al_local_create(struct al_launcher *launcher);
