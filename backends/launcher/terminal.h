/* A job's terminal, from the program's process: its own devpts makes it, and the master goes out
 * over a socket that airlockd holds the other end of. */
#pragma once

#include "backends/api/job_spec.h"
#include "backends/base/err.h"

/* In a session leader without a terminal: opens one of that size, sends its master over `sock`, and
 * makes it the controlling terminal and fds 0, 1 and 2. */
int al_terminal_open(int sock, struct al_terminal_size size, struct al_err *err);
