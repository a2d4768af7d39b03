/* The pipeline's first step. */
#pragma once

#include <stdbool.h>

#include "service/job.h"

/* Looks at the job's program as its policy says. False: it is not to run, and the result says why.
 * What was seen and let pass goes into the job's notes. */
bool al_pipeline_pass_gate(struct al_job *job, struct al_result *result);
