/* The texts of --help and --version. */
#pragma once

#include "client/options.h"

/* For AL_COMMAND_NONE: the overview. Ends with a newline. */
const char *al_help_text(enum al_command command);

const char *al_version_text(void);
