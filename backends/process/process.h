/*
 * Runs a job whose process the launcher starts: sends it, moves bytes between its pipes, the job's
 * ctl and its sink until all has ended, and says what became of it. Shared by the backends that
 * differ only in the kind of cell.
 */
#pragma once

#include "backends/api/backend.h"
#include "backends/launcher/client.h"

/* As al_backend_ops.run. Thread-safe. */
int al_process_run(struct al_launcher *launcher, enum al_cell_kind kind,
                   const struct al_job_spec *spec, struct al_ctl *ctl, struct al_sink *sink,
                   struct al_result *result, struct al_err *err);
