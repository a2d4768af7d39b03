/*
 * What makes a process an instance of airlockd: its data-dir, the lock on it, and the user it
 * becomes. Called by main before any thread.
 */
#pragma once

#include "backends/base/err.h"

/* Makes the data-dir if it is not there (0700; as root it is given to `user`) and locks it for the
 * life of the returned fd. UNAVAILABLE when another airlockd has it. */
int al_instance_lock(const char *data_dir, const char *user, int *ret_fd, struct al_err *err);

/* As root: becomes `user` for good, without groups, and proves that there is no way back. In any
 * case: no new privileges by exec, no core dump or ptrace by others of that user. Then checks that
 * the data-dir can be written. */
int al_instance_drop_privileges(const char *data_dir, const char *user, struct al_err *err);
