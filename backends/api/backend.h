/*
 * The backend contract. A backend is data (what it is called, what it can do) and one entry, run.
 * Everything but `run` is fixed before the server starts and read from any thread without a lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/ctl.h"
#include "backends/api/job_spec.h"
#include "backends/api/result.h"
#include "backends/api/sink.h"
#include "backends/base/err.h"

/* What a request may need. Asking a backend for what it lacks is refused, never ignored. */
enum al_capability {
    AL_CAP_STREAM = 1u << 0,
    AL_CAP_STDIN = 1u << 1,
    AL_CAP_SIGNALS = 1u << 2,
    AL_CAP_PTY = 1u << 3,
    AL_CAP_FILES = 1u << 4,
    AL_CAP_ENV = 1u << 5,
    AL_CAP_ARGS = 1u << 6,
    AL_CAP_INPUTS = 1u << 7,
    AL_CAP_WORKDIR = 1u << 8,
    AL_CAP_ARTIFACTS = 1u << 9,
    AL_CAP_EGRESS_ALLOWLIST = 1u << 10,
    AL_CAP_EGRESS_UNRESTRICTED = 1u << 11,
    AL_CAP_MEMORY_ACCOUNTING = 1u << 12,
    AL_CAP_CPU_ACCOUNTING = 1u << 13,
};
#define AL_CAP_COUNT 14

/* Isolation layers; a result names those that were really in force. */
enum al_layer {
    AL_LAYER_USERNS = 1u << 0,
    AL_LAYER_PIDNS = 1u << 1,
    AL_LAYER_MOUNTNS = 1u << 2,
    AL_LAYER_NETNS = 1u << 3,
    AL_LAYER_IPCNS = 1u << 4,
    AL_LAYER_UTSNS = 1u << 5,
    AL_LAYER_CGROUPNS = 1u << 6,
    AL_LAYER_PIVOT_ROOT = 1u << 7,
    AL_LAYER_OWN_UID = 1u << 8,
    AL_LAYER_NO_CAPABILITIES = 1u << 9,
    AL_LAYER_NO_NEW_PRIVS = 1u << 10,
    AL_LAYER_SECCOMP = 1u << 11,
    AL_LAYER_CGROUP_MEMORY = 1u << 12,
    AL_LAYER_CGROUP_PIDS = 1u << 13,
    AL_LAYER_CGROUP_CPU = 1u << 14,
    AL_LAYER_RLIMITS = 1u << 15,
};
#define AL_LAYER_COUNT   16
#define AL_LAYERS_ALL    ((1u << AL_LAYER_COUNT) - 1)
#define AL_LAYERS_CGROUP (AL_LAYER_CGROUP_MEMORY | AL_LAYER_CGROUP_PIDS | AL_LAYER_CGROUP_CPU)

/* The public name of the single bit `1u << index` ("stdin", "userns"), NULL beyond the last. */
const char *al_capability_name(unsigned index);
const char *al_layer_name(unsigned index);

#define AL_LANGUAGE_ALIASES_MAX 4

/* One runtime. All strings outlive the backend; `version` is never empty. */
struct al_language {
    const char *name;
    const char *version;
    const char *aliases[AL_LANGUAGE_ALIASES_MAX + 1]; /* NULL-terminated */
    const char *code_file;   /* where the code is put, relative to the workdir: "main.py" */
    const char *output_file; /* what a compile step writes there ("main.js"), or NULL */
    const char *unavailable; /* for a human: why it cannot be run here; NULL: it can */
};

struct al_backend;

struct al_backend_ops {
    /* Runs one job to its end. Called from any thread, many at once. Returns 0 and a result, which
     * the caller has initialised and finishes, once everything of the job is dead and reaped; what
     * the program does is a result, never an error. A negative errno and `err` mean that the
     * backend itself failed; the caller makes failed/BACKEND of it. A cancelled job returns 0 with
     * killed/CANCELLED. Never NULL. */
    int (*run)(struct al_backend *backend, const struct al_job_spec *spec, struct al_ctl *ctl,
               struct al_sink *sink, struct al_result *result, struct al_err *err);
    /* Frees the backend. Never NULL; no job runs any more. */
    void (*destroy)(struct al_backend *backend);
};

#define AL_UNAVAILABLE_MAX 256

struct al_backend {
    const struct al_backend_ops *ops;
    const char *name;
    const char *version;
    const struct al_language *languages;
    size_t n_languages;
    uint32_t capabilities;
    uint32_t isolation; /* layers in force for every job */
    bool available;
    char unavailable_reason[AL_UNAVAILABLE_MAX]; /* for a human; "" when available */
};

static inline int al_backend_run(struct al_backend *backend, const struct al_job_spec *spec,
                                 struct al_ctl *ctl, struct al_sink *sink, struct al_result *result,
                                 struct al_err *err)
{
    return backend->ops->run(backend, spec, ctl, sink, result, err);
}

static inline void al_backend_destroy(struct al_backend *backend)
{
    if (backend) {
        backend->ops->destroy(backend);
    }
}

/* The runtime that `wanted` selects: "python", an alias, or "name@version", where a version matches
 * itself and every version below it ("3" and "3.11" select 3.11.2). The first of several wins; one
 * that is unavailable only when there is no other. NULL: none. */
const struct al_language *al_backend_find_language(const struct al_backend *backend,
                                                   const char *wanted);

/* What the spec needs of a backend, as al_capability bits (stream and PTY are the caller's to add).
 */
uint32_t al_job_spec_needs(const struct al_job_spec *spec);

/* The plain array of backends that main made; the first one is the default unless main chose
 * another. */
struct al_registry {
    struct al_backend *const *backends;
    size_t n;
    struct al_backend *default_backend;
};

/* By name, "" is the default. NULL: none of that name. */
struct al_backend *al_registry_find(const struct al_registry *registry, const char *name);
