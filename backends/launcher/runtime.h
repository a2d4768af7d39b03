/* Finds out which of the configured runtimes are there, and in which version. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "backends/launcher/config.h"

/* Runs a program as nobody (without root, as the user that there is), for at most five seconds, and
 * returns how many bytes of what it prints, to either stream, are in `ret`: at most size-1, a NUL
 * behind them. -errno when it cannot be run at all. */
ssize_t al_runtime_ask(const struct al_cells_config *config, char *const argv[], char *ret,
                       size_t size);

/* The same as root, in a mount namespace with another /run: for a program that has the set-user-id
 * bit and is root anyway. */
ssize_t al_runtime_ask_as_root(char *const argv[], char *ret, size_t size);

/* Runs `interpreter --version` of each runtime (as nobody, at most five seconds each) where the
 * configuration gives no version, and leaves out those whose programs are missing; each of them is
 * logged. */
void al_runtimes_probe(struct al_cells_config *config);
