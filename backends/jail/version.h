/* Which versions of bubblewrap and firejail are known to let programs out. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define AL_JAIL_VERSION_MAX 32

enum al_jail_tool {
    AL_JAIL_BUBBLEWRAP,
    AL_JAIL_FIREJAIL,
};
#define AL_JAIL_TOOLS 2

/* "bubblewrap", "firejail". */
const char *al_jail_tool_name(enum al_jail_tool tool);

/* Finds the version in what `--version` printed ("bubblewrap 0.8.0", "firejail version 0.9.72");
 * false when there is none behind the tool's own name. */
bool al_jail_version_find(enum al_jail_tool tool, const char *text, char ret[AL_JAIL_VERSION_MAX]);

/* An advisory that concerns that version, "CVE-...", NULL: none is known. A distribution may have
 * mended its own without a new version, which cannot be told from here. */
const char *al_jail_version_flaw(enum al_jail_tool tool, const char *version);
