/*
 * What one al_gate_scan() call holds, and the report as it grows. Not thread-safe.
 */
#pragma once

#include "service/gate/gate.h"

struct gate_scan {
    const struct al_job_spec *spec;
    struct al_arena *arena;
    const char *file;                 /* being read */
    struct al_gate_finding *findings; /* NULL until the first */
    size_t n;
    size_t n_weak;
    const struct al_gate_finding *block;
    size_t comparisons;
    bool truncated;
    bool out_of_memory;
};

enum gate_rule { GATE_URL, GATE_ADDRESS, GATE_HOST_PORT, GATE_BARE_NAME };

/* A host as the finder saw it. */
struct gate_sighting {
    const char *host;
    bool loopback;
    uint16_t port;         /* as written */
    uint16_t implied_port; /* what the allowlist is asked for when none was written */
    uint32_t line;
    enum gate_rule rule;
};

/* Judges and keeps it. When the report is full only the first that blocks is still kept, in place
 * of the last one; bare names fill at most half of it. */
void gate_report(struct gate_scan *scan, const struct gate_sighting *sighting);

/* Nothing that may still come can change the report. */
static inline bool gate_is_settled(const struct gate_scan *scan)
{
    return (scan->truncated && scan->block) || scan->out_of_memory;
}
