#include "backends/native/native.h"

#include "backends/process/cell_backend.h"

struct al_backend *al_native_create(struct al_launcher *launcher)
{
    return al_cell_backend_create(launcher, AL_CELL_NATIVE, "native", 0);
}
