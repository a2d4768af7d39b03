/* Whether a job can have an interpreter that was started before it came. */
#pragma once

#include <stdint.h>

#include "backends/api/job_spec.h"

/* A started interpreter has read its environment, looked for its files and made its threads under
 * the limits of another job. A job that changes any of what it looked at, or whose limits an
 * interpreter could have met while it started, starts its own. Returns the kinds of interpreters
 * that the job can have, each as 1 << enum al_prestart. */
uint32_t al_job_may_prestart(const struct al_job_spec *spec);
