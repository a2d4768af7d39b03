/*
 * A launcher that an ordinary user has started. It begins again as root of a user namespace of its
 * own that has one id, the user's: enough to make cells, but all of them with that one id outside.
 */
#pragma once

#include "backends/base/err.h"

/* Enters the namespace and executes itself with `--rootless` added to its arguments (`argc` of
 * them). Returns only when it cannot. */
int al_rootless_enter(int argc, char **argv, struct al_err *err);

/* In there: a /run of its own, where the launcher's folders can be made. */
int al_rootless_prepare(struct al_err *err);
