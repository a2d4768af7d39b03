#include "backends/local/local.h"

#include "backends/process/cell_backend.h"

struct al_backend *al_local_create(struct al_launcher *launcher)
{
    return al_cell_backend_create(launcher, AL_CELL_LOCAL, "local", AL_CAP_EGRESS_UNRESTRICTED);
}
