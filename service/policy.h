/* What a request and the operator want of the gate and of the cache. */
#pragma once

#include <stdint.h>

/* What the egress gate does with a program that names a host which its allowlist does not admit. */
enum al_gate_mode {
    AL_GATE_ENFORCE, /* the job ends as egress_blocked */
    AL_GATE_WARN,    /* it runs; the result lists what was found */
    AL_GATE_OFF,     /* nobody looks */
};

/* Values as in the proto. */
enum al_cache_mode {
    AL_CACHE_USE,
    AL_CACHE_OFF,
    AL_CACHE_REFRESH, /* run, then store */
};

struct al_run_policy {
    enum al_gate_mode gate;
    enum al_cache_mode cache; /* AL_CACHE_OFF for a Stream */
    int64_t cache_max_age_ms; /* 0: the cache's own limit */
};
