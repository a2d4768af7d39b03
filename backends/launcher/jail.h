/*
 * Cells whose program a tool starts: bubblewrap, firejail. The launcher makes a cell with a root of
 * its own around the tool, in which the tool makes namespaces, and starts our warden (warden.h) in
 * them.
 */
#pragma once

#include <linux/filter.h>

#include "backends/base/err.h"
#include "backends/jail/version.h"
#include "backends/launcher/cell.h"

/* How many processes a tool and the warden are, besides the program's; they count in the job's
 * cgroups. Firejail is one outside and one inside. */
#define AL_JAIL_BUBBLEWRAP_PIDS 2
#define AL_JAIL_FIREJAIL_PIDS   3

/* What the launcher has found; fixed before the first job. */
struct al_jail {
    enum al_jail_tool tool;
    const char *program;
    char version[AL_JAIL_VERSION_MAX];
    uint64_t outside[7]; /* the launcher's own namespaces; see warden.h */
};

/* The kind's tool. */
enum al_jail_tool al_jail_tool_of(enum al_cell_kind kind);

/* Looks for the kind's program, asks it for its version and judges that by the configuration. */
int al_jail_find(struct al_jail *ret, enum al_cell_kind kind, const struct al_cells_config *config,
                 struct al_err *err);

/* Tries it: a cell as jobs get it, until its warden is content. Its cgroup is left to the caller to
 * remove. */
int al_jail_probe(const struct al_cell_plan *plan, struct al_err *err);

/* The first order to the warden at the other end of the link. */
int al_jail_send_check(const struct al_cell_plan *plan, int link_fd, struct al_err *err);

/* In the process that becomes the tool, as the job's user. Whatever fails, and whatever the tool
 * complains of, comes over the status pipe. */
_Noreturn void al_jail_exec(const struct al_cell_plan *plan, int link_fd, int status_fd);
