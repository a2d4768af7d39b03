/*
 * The accounts of the tenants that matter at the moment: a hash table of fixed size, and the list
 * of those at rest (no job in flight) in the order in which they came to rest, from which the
 * oldest are dropped. Not thread-safe: guarded by the quota's lock, but for al_accounts_limits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "service/quota/hash.h"
#include "service/quota/quota.h"
#include "service/quota/window.h"

struct al_account {
    struct al_account *next; /* in its bucket */
    uint64_t hash;
    struct al_account *older, *newer; /* while at rest */
    int64_t rest_ms;                  /* since when */
    int64_t limit_us;
    int64_t reserved_us;
    uint32_t max_inflight;
    uint32_t inflight; /* 0: at rest */
    int64_t mean_ms;   /* how long a job took, moving average; 0: unknown */
    struct al_window window;
    char tenant[];
};

struct al_accounts {
    struct al_account **buckets; /* a power of two of them */
    size_t n_buckets;
    uint32_t n;
    uint32_t max;
    struct al_account *oldest, *newest; /* at rest */
    struct al_hash_key key;
    struct al_quota_limits defaults;
    struct al_quota_override *overrides; /* sorted; owned, with their names */
    size_t n_overrides;
};

/* 0, -ENOMEM or what getrandom says; nothing is to be finished then. */
int al_accounts_init(struct al_accounts *accounts, const struct al_quota_rules *rules);
void al_accounts_finish(struct al_accounts *accounts);

/* Immutable: needs no lock. */
struct al_quota_limits al_accounts_limits(const struct al_accounts *accounts, const char *tenant);

struct al_account *al_accounts_find(const struct al_accounts *accounts, const char *tenant);

/* Finds or makes it; a new one is neither at rest nor has it a job. NULL with -EDQUOT (as many as
 * may be, none of them due) or -ENOMEM in *ret_error. */
struct al_account *al_accounts_open(struct al_accounts *accounts, const char *tenant,
                                    int64_t now_ms, int *ret_error);

/* A first job is in flight. */
void al_accounts_wake(struct al_accounts *accounts, struct al_account *account);

/* The last job has ended: the account is dropped, or rests. */
void al_accounts_rest(struct al_accounts *accounts, struct al_account *account, int64_t now_ms);

/* Drops a few that have rested long enough. */
void al_accounts_sweep(struct al_accounts *accounts, int64_t now_ms);

/* When the next one is dropped; INT64_MAX: none rests. */
int64_t al_accounts_next_ms(const struct al_accounts *accounts);
