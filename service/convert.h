/*
 * From the wire's messages to a job spec: everything a request says is checked here, and nowhere
 * later, and every default is filled in. Pure: no I/O, no clock. Errors are AL_ERR_INVALID_ARGUMENT
 * (or NOT_FOUND for an unknown backend, FAILED_PRECONDITION for what the backend lacks,
 * PERMISSION_DENIED never here) and name the field, what is wrong with its value and the allowed
 * range. Texts are valid UTF-8 whatever came in.
 */
#pragma once

#include "backends/api/backend.h"
#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/arena.h"
#include "service/config.h"
#include "service/policy.h"

/* A validated request: where it runs and what. Allocated in the arena, as is all that it points to
 * (parts of the message are borrowed: it lives in the same arena). */
struct al_request {
    struct al_backend *backend;
    struct al_job_spec spec; /* job_id is left empty: the job fills it in */
    enum al_cache_mode cache_mode;
    int64_t cache_max_age_ms;      /* 0: no limit */
    const struct al_env *metadata; /* sorted by name, each name once */
    size_t n_metadata;
    const Airlock__V1__RunRequest *message; /* for what has no field here, as gate_mode */
};

struct al_convert_env {
    const struct al_registry *registry;
    const struct al_request_limits *limits;
    const char *tenant_metadata; /* value of the call's airlock-tenant metadata; NULL or "": none */
    bool stream; /* Stream: no output limit by default, AL_CAP_STREAM and STDIN needed */
    struct al_terminal_size terminal; /* rows 0: none */
};

/* All or nothing; `ret` is untouched on failure. The limits are those of a configuration that was
 * read: no default is above its maximum. INVALID_ARGUMENT too when the arena has no room left. */
int al_convert_run(const struct al_convert_env *env, const Airlock__V1__RunRequest *message,
                   struct al_arena *arena, struct al_request **ret, struct al_err *err);

/* The caller's tenant: metadata, else the request's tenant_id, else "_default"; checked for form,
 * and for agreement where both are given. Borrowed from its source. */
int al_convert_tenant(const char *metadata, const char *tenant_id, const char **ret,
                      struct al_err *err);

/* A message's size with its defaults, or INVALID_ARGUMENT naming the part of `field`. */
int al_convert_terminal(const char *field, const Airlock__V1__TerminalSize *size,
                        struct al_terminal_size *ret, struct al_err *err);

/* StreamStart's linger_seconds: 0 to the server's maximum. */
int al_convert_linger(double seconds, int64_t max_ms, int64_t *ret_ms, struct al_err *err);

/* 16 lower-case hex digits, or INVALID_ARGUMENT naming `field`. */
int al_convert_job_id(const char *field, const char *job_id, struct al_err *err);
