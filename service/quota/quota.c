#include "service/quota/quota.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "service/quota/accounts.h"

/* Of a guess when a running job will end. */
#define GUESS_MIN_MS     50
#define GUESS_UNKNOWN_MS 1000 /* no job of the tenant has ended yet */
#define MEAN_WEIGHT      8    /* a job's share in the moving average is 1/8 */

struct al_quota {
    pthread_mutex_t lock; /* guards the rest, but for the limits */
    int64_t now_ms;       /* the latest that was given */
    struct al_accounts accounts;
};

struct al_quota *al_quota_create(const struct al_quota_rules *rules)
{
    struct al_quota *quota = calloc(1, sizeof *quota);
    if (!quota || al_accounts_init(&quota->accounts, rules) < 0) {
        free(quota);
        return NULL;
    }
    pthread_mutex_init(&quota->lock, NULL);
    return quota;
}

void al_quota_destroy(struct al_quota *quota)
{
    if (!quota) {
        return;
    }
    al_accounts_finish(&quota->accounts);
    pthread_mutex_destroy(&quota->lock);
    free(quota);
}

/* Returns what time it is. */
static int64_t enter(struct al_quota *quota, int64_t now_ms)
{
    pthread_mutex_lock(&quota->lock);
    if (now_ms > quota->now_ms) {
        quota->now_ms = now_ms;
    }
    al_accounts_sweep(&quota->accounts, quota->now_ms);
    return quota->now_ms;
}

static double seconds(int64_t us)
{
    return (double)us / 1e6;
}

/* With n jobs in flight, one of them ends in about a n-th of the time that one takes. */
static int64_t guess_ms(int64_t mean_ms, uint32_t n)
{
    int64_t guess = mean_ms == 0 ? GUESS_UNKNOWN_MS : mean_ms / n;
    guess = guess < AL_QUOTA_WINDOW_MS ? guess : AL_QUOTA_WINDOW_MS;
    return guess > GUESS_MIN_MS ? guess : GUESS_MIN_MS;
}

static void refuse_inflight(const struct al_account *account, struct al_quota_refusal *ret)
{
    ret->which = AL_QUOTA_INFLIGHT;
    ret->limit = account->max_inflight;
    ret->observed = account->inflight;
    ret->retry_after_ms = guess_ms(account->mean_ms, account->inflight);
    ret->estimated = true;
}

static void refuse_cpu(const struct al_account *account, int64_t cpu_us, int64_t now_ms,
                       struct al_quota_refusal *ret)
{
    int64_t room_us = account->limit_us - account->reserved_us - cpu_us;
    ret->which = AL_QUOTA_CPU_SECONDS;
    ret->limit = seconds(account->limit_us);
    ret->observed = seconds(account->window.sum_us + account->reserved_us);
    ret->estimated = room_us < 0;
    ret->retry_after_ms = ret->estimated
                              ? guess_ms(account->mean_ms, account->inflight)
                              : al_window_falls_to_ms(&account->window, room_us, now_ms) - now_ms;
}

static void refuse_tenant(const struct al_accounts *accounts, int64_t now_ms,
                          struct al_quota_refusal *ret)
{
    int64_t next_ms = al_accounts_next_ms(accounts);
    ret->which = AL_QUOTA_TENANTS;
    ret->limit = accounts->max;
    ret->observed = accounts->n;
    ret->estimated = next_ms == INT64_MAX;
    ret->retry_after_ms = ret->estimated ? GUESS_UNKNOWN_MS : next_ms - now_ms;
}

static bool is_above_budget(const struct al_accounts *accounts, const char *tenant, int64_t cpu_ms,
                            struct al_quota_refusal *ret)
{
    int64_t budget_ms = al_accounts_limits(accounts, tenant).cpu_ms_per_minute;
    if (cpu_ms <= budget_ms) {
        return false;
    }
    ret->which = AL_QUOTA_CPU_SECONDS;
    ret->limit = seconds(budget_ms * 1000);
    ret->retry_after_ms = 0;
    return true;
}

static void admit(struct al_quota *quota, struct al_account *account, int64_t cpu_us,
                  int64_t now_ms, struct al_lease *ret)
{
    if (account->inflight++ == 0) {
        al_accounts_wake(&quota->accounts, account);
    }
    account->reserved_us += cpu_us;
    *ret = (struct al_lease){
        .quota = quota, .account = account, .reserved_us = cpu_us, .acquired_ms = now_ms};
}

static int acquire(struct al_quota *quota, const char *tenant, int64_t cpu_us, int64_t now_ms,
                   struct al_lease *ret_lease, struct al_quota_refusal *refusal)
{
    int error = 0;
    /* A new account is always admitted to: a budget is never below one job's, nor max_inflight 0.
     */
    struct al_account *account = al_accounts_open(&quota->accounts, tenant, now_ms, &error);
    if (!account) {
        if (error == -EDQUOT) {
            refuse_tenant(&quota->accounts, now_ms, refusal);
        }
        return error;
    }
    al_window_expire(&account->window, now_ms);
    if (account->inflight >= account->max_inflight) {
        refuse_inflight(account, refusal);
        return -EDQUOT;
    }
    if (account->window.sum_us + account->reserved_us + cpu_us > account->limit_us) {
        refuse_cpu(account, cpu_us, now_ms, refusal);
        return -EDQUOT;
    }
    admit(quota, account, cpu_us, now_ms, ret_lease);
    return 0;
}

int al_quota_acquire(struct al_quota *quota, const char *tenant, int64_t cpu_ms, int64_t now_ms,
                     struct al_lease *ret_lease, struct al_quota_refusal *ret_refusal)
{
    assert(cpu_ms >= 0);
    struct al_quota_refusal refusal = {
        .requested = (double)cpu_ms / 1e3,
        .retry_after_ms = GUESS_UNKNOWN_MS,
    };
    *ret_lease = (struct al_lease){0};
    int r = -EDQUOT;
    if (!is_above_budget(&quota->accounts, tenant, cpu_ms, &refusal)) {
        now_ms = enter(quota, now_ms);
        r = acquire(quota, tenant, cpu_ms * 1000, now_ms, ret_lease, &refusal);
        pthread_mutex_unlock(&quota->lock);
    }
    if (r < 0) {
        *ret_refusal = refusal;
    }
    return r;
}

static void charge(struct al_lease *lease, int64_t used_us, int64_t now_ms)
{
    struct al_account *account = lease->account;
    int64_t more_us = used_us - lease->charged_us;
    if (more_us <= 0) {
        return;
    }
    int64_t reserved_us = more_us < lease->reserved_us ? more_us : lease->reserved_us;
    lease->charged_us = used_us;
    lease->reserved_us -= reserved_us;
    account->reserved_us -= reserved_us;
    al_window_add(&account->window, more_us, now_ms);
}

void al_lease_charge(struct al_lease *lease, int64_t used_us, int64_t now_ms)
{
    struct al_quota *quota = lease->quota;
    if (!quota) {
        return;
    }
    now_ms = enter(quota, now_ms);
    charge(lease, used_us, now_ms);
    pthread_mutex_unlock(&quota->lock);
}

static void note_duration(struct al_account *account, int64_t took_ms)
{
    took_ms = took_ms > 0 ? took_ms : 1;
    account->mean_ms +=
        account->mean_ms == 0 ? took_ms : (took_ms - account->mean_ms) / MEAN_WEIGHT;
}

void al_lease_release(struct al_lease *lease, int64_t used_us, int64_t now_ms)
{
    struct al_quota *quota = lease->quota;
    struct al_account *account = lease->account;
    if (!quota) {
        return;
    }
    now_ms = enter(quota, now_ms);
    charge(lease, used_us, now_ms);
    account->reserved_us -= lease->reserved_us;
    note_duration(account, now_ms - lease->acquired_ms);
    if (--account->inflight == 0) {
        al_window_expire(&account->window, now_ms);
        al_accounts_rest(&quota->accounts, account, now_ms);
    }
    pthread_mutex_unlock(&quota->lock);
    *lease = (struct al_lease){0};
}

void al_quota_get(struct al_quota *quota, const char *tenant, int64_t now_ms,
                  struct al_quota_remaining *ret_remaining)
{
    struct al_quota_limits limits = al_accounts_limits(&quota->accounts, tenant);
    int64_t left_us = limits.cpu_ms_per_minute * 1000;
    uint32_t inflight = 0;
    now_ms = enter(quota, now_ms);
    struct al_account *account = al_accounts_find(&quota->accounts, tenant);
    if (account) {
        al_window_expire(&account->window, now_ms);
        left_us -= account->window.sum_us + account->reserved_us;
        inflight = account->inflight;
    }
    pthread_mutex_unlock(&quota->lock);
    *ret_remaining = (struct al_quota_remaining){
        .cpu_seconds_remaining = seconds(left_us > 0 ? left_us : 0),
        .cpu_seconds_per_minute = (double)limits.cpu_ms_per_minute / 1e3,
        .inflight = inflight,
        .max_inflight = limits.max_inflight,
    };
}

int64_t al_quota_budget_ms(const struct al_quota *quota, const char *tenant)
{
    return al_accounts_limits(&quota->accounts, tenant).cpu_ms_per_minute;
}

uint32_t al_quota_tenants(struct al_quota *quota)
{
    pthread_mutex_lock(&quota->lock);
    uint32_t n = quota->accounts.n;
    pthread_mutex_unlock(&quota->lock);
    return n;
}
