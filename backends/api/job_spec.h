/*
 * What is to be run: a request after validation, with every default filled in. Plain data; every
 * pointer is borrowed from the owner of the spec (the request's arena) and lives until the run has
 * returned. Immutable and therefore shared between threads freely.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AL_JOB_ID_LEN 16 /* lower-case hex digits, from 64 unguessable bits */

/* A request cannot go above these, whatever the configuration says; the launcher bounds by them
 * again. */
#define AL_FILES_MAX          4096
#define AL_ARGS_MAX           4096
#define AL_ENV_MAX            4096
#define AL_PATH_MAX           4096 /* bytes of a path in the sandbox, terminator included */
#define AL_PATH_COMPONENT_MAX 255
#define AL_BUNDLE_BYTES_MAX                                               \
    (256u << 20) /* code, files, inputs, env and args of one job together \
                  */

/* Where a program finds its inputs, in /tmp. */
#define AL_INPUTS_NAME "airlock-inputs.json"

struct al_bytes {
    const uint8_t *data; /* NULL only when len is 0 */
    size_t len;
};

struct al_file {
    const char *path; /* relative to the workdir; no "..", ".", empty component */
    struct al_bytes content;
    uint32_t mode; /* permission bits only; never 0 */
};

struct al_env {
    const char *name;
    const char *value;
};

/* Requested limits, none of them 0 except where said. */
struct al_quotas {
    int64_t cpu_ms;
    int64_t wall_ms;
    uint32_t memory_mb; /* MiB; the tmpfs counts in it */
    uint32_t pids;
    uint32_t file_size_mb;
    uint32_t open_files;
    uint32_t disk_mb;
    uint64_t output_bytes; /* stdout and stderr each; 0: no limit (Stream) */
    uint64_t artifact_bytes;
};

/* Initialisers: what a job has that asks for nothing, and the most that it may ask for, unless the
 * configuration says otherwise. */
#define AL_QUOTAS_DEFAULTS                                                                  \
    {                                                                                       \
        .cpu_ms = 5000, .wall_ms = 10000, .memory_mb = 256, .pids = 64, .file_size_mb = 32, \
        .open_files = 64, .disk_mb = 64, .output_bytes = 1 << 20, .artifact_bytes = 1 << 20 \
    }
#define AL_QUOTAS_MAXIMA                                                                     \
    {                                                                                        \
        .cpu_ms = 300000, .wall_ms = 3600000, .memory_mb = 4096, .pids = 1024,               \
        .file_size_mb = 4096, .open_files = 1024, .disk_mb = 4096, .output_bytes = 16 << 20, \
        .artifact_bytes = 16 << 20                                                           \
    }

/* In characters. */
struct al_terminal_size {
    uint16_t rows; /* 0: no terminal */
    uint16_t cols;
};

enum al_network_policy {
    AL_NETWORK_NONE = 1, /* values as in the proto */
    AL_NETWORK_ALLOWLIST,
    AL_NETWORK_UNRESTRICTED,
};

struct al_language;

struct al_job_spec {
    char job_id[AL_JOB_ID_LEN + 1];
    const char *tenant_id;
    const char *user_id;                /* "" when none was given */
    const struct al_language *language; /* of the backend that runs it: exact name and version */
    struct al_bytes code;
    const struct al_file *files;
    size_t n_files;
    const char *const *args;
    size_t n_args;
    const struct al_env *env;
    size_t n_env;
    const char *inputs_json; /* canonical JSON object, or NULL when none was given */
    const char *workdir;     /* absolute, normalised: /sandbox or below it, /tmp or below it */
    struct al_bytes stdin_bytes;
    bool stdin_open; /* more stdin comes through the job's ctl, after stdin_bytes */
    struct al_terminal_size terminal; /* the program's stdin, stdout and stderr are one */
    int64_t linger_ms;                /* a reader may be away for so long */
    struct al_quotas quotas;
    enum al_network_policy network;
    const char *const *hosts; /* the allowlist's patterns */
    size_t n_hosts;
    const char *const *artifacts; /* globs below the workdir, see backends/launcher/glob.h */
    size_t n_artifacts;
};
