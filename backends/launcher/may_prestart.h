/* Whether a job can have an interpreter that was started before it came. */
#pragma once

#include <stdbool.h>

#include "backends/api/job_spec.h"

/* A started interpreter has read its environment, looked for its files and made its threads under
 * the limits of another job. False for a job that changes any of what it looked at, and for one
 * whose limits an interpreter could have met while it started: such a job starts its own. */
bool al_job_may_be_prestarted(const struct al_job_spec *spec);
