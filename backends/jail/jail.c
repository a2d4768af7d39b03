#include "backends/jail/jail.h"

#include "backends/process/cell_backend.h"

struct al_backend *al_bubblewrap_create(struct al_launcher *launcher)
{
    return al_cell_backend_create(launcher, AL_CELL_BUBBLEWRAP, "bubblewrap", 0);
}

struct al_backend *al_firejail_create(struct al_launcher *launcher)
{
    return al_cell_backend_create(launcher, AL_CELL_FIREJAIL, "firejail", 0);
}
