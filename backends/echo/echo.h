/*
 * A backend that runs nothing and returns the code as standard output: for tests and dry runs. It
 * takes part in everything that is not a program's own doing: the output limit, cancel, a sink
 * without room.
 */
#pragma once

#include "backends/api/backend.h"

/* The caller destroys it with al_backend_destroy. NULL when memory is out. */
struct al_backend *al_echo_create(void);
