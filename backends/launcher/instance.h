/* What belongs to one airlockd and its launcher: a name for its cgroups, and a range of host uids.
 */
#pragma once

#include "backends/base/err.h"
#include "backends/launcher/config.h"

#define AL_INSTANCE_NAME_MAX 24

/* A short name that is the same at every start with this data-dir, and another for another. */
int al_instance_name(const char *data_dir, char ret[AL_INSTANCE_NAME_MAX], struct al_err *err);

/* Moves config->uid_base to the first range that no other launcher of this machine holds. The lock
 * lives as long as the process. */
int al_instance_lock_uids(struct al_cells_config *config, struct al_err *err);
