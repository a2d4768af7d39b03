/* What init and the program's process share between clone and exec. One thread, no return to the
 * launcher. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backends/base/err.h"

/* Closes every fd that is not listed (-1 entries are ignored; the list is sorted in place). */
void al_child_keep_fds(int *fds, size_t n);

/* Reports and exits. */
_Noreturn void al_child_fail(int status_fd, const struct al_err *err);

/* Empties the bounding set; needs CAP_SETPCAP, so it comes before a change of id that takes it
 * away. */
int al_child_drop_bounding_set(struct al_err *err);

/* Makes all permitted capabilities effective again, which a change of the effective id takes away.
 * 0 or -errno. */
int al_child_raise_capabilities(void);

/* Empties every capability set but for this one (below 32), or for none; sets no_new_privs. */
int al_child_keep_capability(int cap, struct al_err *err);
int al_child_drop_capabilities(struct al_err *err);

/* Whether any set has one, the bounding set too; true also when that cannot be told. */
bool al_child_has_capabilities(void);

/* Every signal at its default, none blocked: nothing of whoever started us reaches a job. */
void al_child_reset_signals(void);

/* A command line can be read in /proc/PID/cmdline: the host's paths go out of it. `argv` is not to
 * be used any more. */
void al_child_hide_arguments(int argc, char **argv);

/* All three ids of both kinds, no supplementary groups. */
int al_child_become(unsigned uid, bool keep_groups, struct al_err *err);
