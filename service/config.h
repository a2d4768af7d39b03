/*
 * airlockd's configuration: defaults, then the INI file, then the command line. Filled by main
 * before any thread starts and never changed afterwards. The launcher reads its own sections
 * ([cells], [local], [runtime NAME]) of the same file itself; here they are passed over. An unknown
 * section or key, or a value out of its range, is an error that names file, line, key and the
 * allowed range.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/job_spec.h"
#include "backends/base/err.h"
#include "backends/docker/config.h"
#include "service/policy.h"
#include "service/quota/quota.h"

#define AL_LISTEN_MAX        8
#define AL_CONFIG_STRING_MAX 256

/* The length of a section's name is bounded: a tenant with a longer id cannot have a section. */
#define AL_CONFIG_TENANT_NAME_MAX 42
#define AL_CONFIG_TENANTS_MAX     1024

/* Bounds of a request; api.md's numbers are the defaults. */
struct al_request_limits {
    size_t code_bytes;
    size_t files_bytes; /* contents, in all */
    size_t files;
    size_t stdin_bytes;
    size_t inputs_bytes;
    size_t metadata_bytes; /* names and values in all */
    size_t env_bytes;
    size_t args;
    size_t args_bytes;         /* in all, a terminator each included; 256 KiB */
    struct al_quotas defaults; /* of a Run; Stream's output_bytes default is 0 (no limit) */
    struct al_quotas maxima;
    int64_t deadline_margin_ms; /* the wall limit is the call's deadline less this; 250 */
};

/* One [tenant NAME]. */
struct al_config_tenant {
    char name[AL_CONFIG_TENANT_NAME_MAX + 1];
    struct al_quota_limits quota; /* 0: as in [quota] */
};

struct al_config {
    char listen[AL_LISTEN_MAX]
               [AL_CONFIG_STRING_MAX]; /* gRPC addresses: "127.0.0.1:50051", "unix:/path" */
    size_t n_listen;
    char data_dir[AL_CONFIG_STRING_MAX]; /* /var/lib/airlock */
    char user[AL_CONFIG_STRING_MAX];     /* whom to become when started as root; "nobody" */
    char launcher[AL_CONFIG_STRING_MAX]; /* path; "" = look beside the binary and in the build */
    char default_backend[AL_CONFIG_STRING_MAX]; /* "native" */
    uint32_t run_slots;                         /* Runs at once; 0 = 4 a core */
    uint32_t stream_slots;                      /* Streams at once; 1000 */
    uint32_t queue_max;                         /* jobs waiting for a slot, all tenants; 1024 */
    uint32_t queue_tenant_max;                  /* of one tenant; 256 */
    uint64_t ring_bytes;                        /* a Stream's ring; 1 MiB */
    uint64_t stream_keep_bytes; /* sent events that a job which lingers keeps; 1 MiB */
    int64_t linger_max_ms;      /* the most that a job may linger; 300 s; 0: none may */
    uint64_t output_memory_mb;  /* the rings of all jobs together; 1024 */
    uint32_t job_history;       /* ended jobs kept for GetJob; 1000 */
    int64_t drain_ms;           /* how long SIGTERM waits for jobs; 30 s */
    struct al_request_limits limits;
    struct al_quota_limits quota; /* of a tenant without a section of its own; 600 s, 8 */
    uint32_t tenants_max;         /* that quotas are kept for at a time; 65536 */
    enum al_gate_mode gate_mode;  /* ENFORCE */
    bool gate_warn_allowed;       /* a request may ask for WARN; no */
    uint64_t cache_max_mb;        /* of results on disk; 256; 0: no cache */
    uint64_t cache_entry_max_kb;  /* 4096 */
    int64_t cache_max_age_ms;     /* 1 day */
    uint64_t records_max_count;   /* 100000 */
    uint64_t records_max_mb;      /* 512 */
    int64_t records_max_age_ms;   /* 7 days */
    struct al_docker_config docker;
    struct al_config_tenant tenants[AL_CONFIG_TENANTS_MAX];
    size_t n_tenants;
};

void al_config_defaults(struct al_config *config);

/* Adds one address to listen on. One from the command line replaces those of the file: set n_listen
 * to 0 first. INVALID_ARGUMENT when it is neither HOST:PORT nor unix:PATH, or one too many. */
int al_config_add_listen(struct al_config *config, const char *address, struct al_err *err);

/* Reads the file on top of what is there; its `listen` keys replace all addresses. 0 or
 * AL_ERR_INVALID_ARGUMENT with "FILE:LINE: [section] key: ...", after which the configuration is
 * half filled. Not thread-safe. */
int al_config_read(struct al_config *config, const char *path, struct al_err *err);

/* An enforcer of the quotas that are configured; owned by the caller, borrows nothing. NULL when
 * memory or randomness is out. */
struct al_quota *al_config_quota_create(const struct al_config *config);
