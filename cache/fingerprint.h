/*
 * What identifies a run: equal fingerprints mean that nothing which the program can see differs.
 *
 * SHA-256 over a versioned encoding in which every value carries its tag and its length, every list
 * its count, so that no two specs have the same encoding. In it: backend and its version, tenant,
 * language and runtime version, code, args (in order), stdin and whether more of it comes, inputs,
 * files (by path: path, mode, content), env (by name), workdir, artifacts asked for (sorted),
 * network policy and hosts (sorted), and the requested quotas that a program can observe: cpu,
 * memory, pids, file size, open files, disk. Not in it: job and user id, and what a hit is measured
 * against when it is looked up (wall time, output and artifact bytes).
 */
#pragma once

#include <stdint.h>

#include "backends/api/job_spec.h"

#define AL_FINGERPRINT_LEN 32

/* Raised when the encoding or its meaning changes: old keys are never met again then. */
#define AL_FINGERPRINT_VERSION 1

/* Thread-safe. `backend_version` may be "". 0 or -ENOMEM. */
int al_fingerprint(const struct al_job_spec *spec, const char *backend, const char *backend_version,
                   uint8_t ret[AL_FINGERPRINT_LEN]);
