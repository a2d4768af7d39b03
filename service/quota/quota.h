/*
 * The quota enforcer. Each tenant has a budget of CPU time in every window of 60 s and a number of
 * jobs in flight. A job reserves its CPU time when it is admitted, is charged what it really uses
 * while it runs, and settles at its end.
 *
 * The window slides: at every instant, what was charged within the last 60 s plus what is reserved
 * is at most the limit (above it only by what jobs used beyond their reservations). What is charged
 * leaves the window after 60 s. To bound memory, charges of one tenant within half a second may be
 * put together and then leave with the youngest of them: a charge never leaves early, and less than
 * AL_QUOTA_MERGE_MS (1/120 of the window) late.
 *
 * Memory: a tenant takes about 300 bytes, at most 2.5 KiB (then it is charged twice a second). One
 * without a job in flight is forgotten when its last job ends with nothing used in the window,
 * otherwise 60 s after that end. There are never more than tenants_max.
 *
 * Thread-safe: one lock, under which nothing waits and nothing loops over tenants. No function
 * reads a clock: now_ms is CLOCK_MONOTONIC, and a time before one that was given already counts as
 * that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AL_QUOTA_WINDOW_MS 60000
#define AL_QUOTA_MERGE_MS  500

#define AL_QUOTA_CPU_MS_DEFAULT      600000
#define AL_QUOTA_INFLIGHT_DEFAULT    8
#define AL_QUOTA_TENANTS_MAX_DEFAULT 65536

/* A member that is 0 stands for the default: that of the rules, or AL_QUOTA_..._DEFAULT. */
struct al_quota_limits {
    int64_t cpu_ms_per_minute;
    uint32_t max_inflight;
};

struct al_quota_override {
    const char *tenant;
    struct al_quota_limits limits;
};

struct al_quota_rules {
    struct al_quota_limits defaults;
    const struct al_quota_override *overrides; /* no tenant twice */
    size_t n_overrides;
    uint32_t tenants_max; /* accounted at a time; 0: the default; 8 bytes each are taken at once */
};

struct al_quota;
struct al_account;

/* Copies the rules. NULL when memory or randomness is out. */
struct al_quota *al_quota_create(const struct al_quota_rules *rules);

/* Every lease must have been released. NULL is ignored. */
void al_quota_destroy(struct al_quota *quota);

/* What an admitted job holds. The caller's memory, used by one thread at a time; all zero: nothing
 * is held. */
struct al_lease {
    struct al_quota *quota;
    struct al_account *account;
    int64_t reserved_us; /* not yet used */
    int64_t charged_us;
    int64_t acquired_ms;
};

enum al_quota_limit {
    AL_QUOTA_NONE, /* it could not be checked: memory is out */
    AL_QUOTA_CPU_SECONDS,
    AL_QUOTA_INFLIGHT,
    AL_QUOTA_TENANTS, /* of the server, not of the tenant */
};

struct al_quota_refusal {
    enum al_quota_limit which;
    double limit;     /* CPU-seconds, jobs or tenants */
    double observed;  /* in the same unit: charged in the window and reserved; in flight; known */
    double requested; /* CPU-seconds */
    /* In how many ms the same acquire succeeds if nothing else happens, and not one earlier. 0:
     * never, more is asked for than the whole budget. With `estimated` it needs a running job to
     * end, and this is a guess from how long the tenant's jobs take. */
    int64_t retry_after_ms;
    bool estimated;
};

/* Admits a job that may use cpu_ms (>= 0) of CPU time, and reserves that. 0 with *ret_lease filled,
 * or -EDQUOT or -ENOMEM with *ret_refusal filled and *ret_lease zeroed. */
int al_quota_acquire(struct al_quota *quota, const char *tenant, int64_t cpu_ms, int64_t now_ms,
                     struct al_lease *ret_lease, struct al_quota_refusal *ret_refusal);

/* Charges what the job has used since the last call; used_us is its total so far. The reservation
 * shrinks by as much. A total below one that was given changes nothing, nor does a zeroed lease. */
void al_lease_charge(struct al_lease *lease, int64_t used_us, int64_t now_ms);

/* Charges the rest of what the job used in all, more than it reserved too, gives back what is left
 * of the reservation, and zeroes the lease. No effect on a zeroed one. */
void al_lease_release(struct al_lease *lease, int64_t used_us, int64_t now_ms);

struct al_quota_remaining {
    double cpu_seconds_remaining; /* what a job could reserve now */
    double cpu_seconds_per_minute;
    uint32_t inflight;
    uint32_t max_inflight;
};

void al_quota_get(struct al_quota *quota, const char *tenant, int64_t now_ms,
                  struct al_quota_remaining *ret_remaining);

/* The tenant's whole budget: what no single job may exceed. Takes no lock. */
int64_t al_quota_budget_ms(const struct al_quota *quota, const char *tenant);

/* How many tenants are accounted for at the moment. */
uint32_t al_quota_tenants(struct al_quota *quota);

/* One line for the caller: which limit, its value, what was observed, when to retry. `size` is at
 * least 1; 256 hold every text. */
void al_quota_explain(const struct al_quota_refusal *refusal, char *to, size_t size);
