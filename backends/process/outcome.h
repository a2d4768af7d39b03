/* Turns what the launcher measured into a result: which status, which reason, which limit. Pure. */
#pragma once

#include "backends/api/backend.h"
#include "backends/launcher/message.h"

void al_outcome_compiled(const struct al_msg_compiled *compiled, struct al_result *result);

/* `cancelled`: a caller wanted the job dead before it met its output limit; `over_output`: it met
 * that. failed/BACKEND, with the reason in result->error, when the cell could not be set up. */
void al_outcome_exit(const struct al_job_spec *spec, const struct al_msg_exit *exit, bool cancelled,
                     bool over_output, struct al_result *result);
