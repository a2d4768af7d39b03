/*
 * The methods of airlock.v1.ExecutionService and AdminService that this server has.
 */
#pragma once

#include "service/call.h"

extern const struct al_rpc al_rpc_run;
extern const struct al_rpc al_rpc_stream;
extern const struct al_rpc al_rpc_kill;
extern const struct al_rpc al_rpc_get_job;
extern const struct al_rpc al_rpc_list_jobs;
extern const struct al_rpc al_rpc_list_backends;
extern const struct al_rpc al_rpc_get_quota;
extern const struct al_rpc al_rpc_cache_stats;
extern const struct al_rpc al_rpc_clear_cache;
extern const struct al_rpc al_rpc_unknown; /* every other: UNIMPLEMENTED */
