#include "service/quota/accounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Each operation makes at most one account, so two a time drain every backlog. */
#define DROPS_AT_ONCE 2

static int compare_overrides(const void *a, const void *b)
{
    const struct al_quota_override *x = a;
    const struct al_quota_override *y = b;
    return strcmp(x->tenant, y->tenant);
}

static struct al_quota_limits fill_in(struct al_quota_limits limits,
                                      struct al_quota_limits defaults)
{
    if (limits.cpu_ms_per_minute == 0) {
        limits.cpu_ms_per_minute = defaults.cpu_ms_per_minute;
    }
    if (limits.max_inflight == 0) {
        limits.max_inflight = defaults.max_inflight;
    }
    return limits;
}

static int copy_overrides(struct al_accounts *accounts, const struct al_quota_rules *rules)
{
    accounts->overrides = calloc(rules->n_overrides + 1, sizeof *accounts->overrides);
    if (!accounts->overrides) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < rules->n_overrides; i++) {
        char *tenant = strdup(rules->overrides[i].tenant);
        if (!tenant) {
            return -ENOMEM;
        }
        accounts->overrides[accounts->n_overrides++] = (struct al_quota_override){
            .tenant = tenant,
            .limits = fill_in(rules->overrides[i].limits, accounts->defaults),
        };
    }
    qsort(accounts->overrides, accounts->n_overrides, sizeof *accounts->overrides,
          compare_overrides);
    return 0;
}

static int make_buckets(struct al_accounts *accounts)
{
    accounts->n_buckets = 1;
    while (accounts->n_buckets < accounts->max) {
        accounts->n_buckets *= 2;
    }
    accounts->buckets = calloc(accounts->n_buckets, sizeof(struct al_account *));
    return accounts->buckets ? 0 : -ENOMEM;
}

int al_accounts_init(struct al_accounts *accounts, const struct al_quota_rules *rules)
{
    static const struct al_quota_limits builtin = {
        .cpu_ms_per_minute = AL_QUOTA_CPU_MS_DEFAULT,
        .max_inflight = AL_QUOTA_INFLIGHT_DEFAULT,
    };
    *accounts = (struct al_accounts){
        .max = rules->tenants_max ? rules->tenants_max : AL_QUOTA_TENANTS_MAX_DEFAULT,
        .defaults = fill_in(rules->defaults, builtin),
    };
    if (getrandom(&accounts->key, sizeof accounts->key, 0) != sizeof accounts->key) {
        return -errno;
    }
    int r = copy_overrides(accounts, rules);
    r = r == 0 ? make_buckets(accounts) : r;
    if (r < 0) {
        al_accounts_finish(accounts);
    }
    return r;
}

static void free_account(struct al_account *account)
{
    al_window_finish(&account->window);
    free(account);
}

void al_accounts_finish(struct al_accounts *accounts)
{
    for (size_t i = 0; accounts->buckets && i < accounts->n_buckets; i++) {
        struct al_account *next;
        for (struct al_account *account = accounts->buckets[i]; account; account = next) {
            next = account->next;
            free_account(account);
        }
    }
    for (size_t i = 0; i < accounts->n_overrides; i++) {
        free((char *)accounts->overrides[i].tenant);
    }
    free(accounts->overrides);
    free(accounts->buckets);
    *accounts = (struct al_accounts){0};
}

struct al_quota_limits al_accounts_limits(const struct al_accounts *accounts, const char *tenant)
{
    const struct al_quota_override key = {.tenant = tenant};
    const struct al_quota_override *override =
        bsearch(&key, accounts->overrides, accounts->n_overrides, sizeof key, compare_overrides);
    return override ? override->limits : accounts->defaults;
}

static struct al_account **bucket_of(const struct al_accounts *accounts, uint64_t hash)
{
    return &accounts->buckets[hash & (accounts->n_buckets - 1)];
}

static struct al_account *find(const struct al_accounts *accounts, const char *tenant,
                               uint64_t hash)
{
    struct al_account *account = *bucket_of(accounts, hash);
    while (account && (account->hash != hash || strcmp(account->tenant, tenant) != 0)) {
        account = account->next;
    }
    return account;
}

struct al_account *al_accounts_find(const struct al_accounts *accounts, const char *tenant)
{
    return find(accounts, tenant, al_hash(&accounts->key, tenant, strlen(tenant)));
}

static void leave_rest(struct al_accounts *accounts, struct al_account *account)
{
    *(account->older ? &account->older->newer : &accounts->oldest) = account->newer;
    *(account->newer ? &account->newer->older : &accounts->newest) = account->older;
    account->older = account->newer = NULL;
}

static void drop(struct al_accounts *accounts, struct al_account *account)
{
    struct al_account **link = bucket_of(accounts, account->hash);
    while (*link != account) {
        link = &(*link)->next;
    }
    *link = account->next;
    accounts->n--;
    free_account(account);
}

int64_t al_accounts_next_ms(const struct al_accounts *accounts)
{
    return accounts->oldest ? accounts->oldest->rest_ms + AL_QUOTA_WINDOW_MS : INT64_MAX;
}

void al_accounts_sweep(struct al_accounts *accounts, int64_t now_ms)
{
    for (int i = 0; i < DROPS_AT_ONCE && al_accounts_next_ms(accounts) <= now_ms; i++) {
        struct al_account *due = accounts->oldest;
        leave_rest(accounts, due);
        drop(accounts, due);
    }
}

static struct al_account *add(struct al_accounts *accounts, const char *tenant, uint64_t hash)
{
    size_t size = strlen(tenant) + 1;
    struct al_account *account = calloc(1, sizeof *account + size);
    if (!account) {
        return NULL;
    }
    struct al_quota_limits limits = al_accounts_limits(accounts, tenant);
    account->limit_us = limits.cpu_ms_per_minute * 1000;
    account->max_inflight = limits.max_inflight;
    account->hash = hash;
    memcpy(account->tenant, tenant, size);
    struct al_account **bucket = bucket_of(accounts, hash);
    account->next = *bucket;
    *bucket = account;
    accounts->n++;
    return account;
}

struct al_account *al_accounts_open(struct al_accounts *accounts, const char *tenant,
                                    int64_t now_ms, int *ret_error)
{
    uint64_t hash = al_hash(&accounts->key, tenant, strlen(tenant));
    struct al_account *account = find(accounts, tenant, hash);
    if (account) {
        return account;
    }
    if (accounts->n >= accounts->max) {
        al_accounts_sweep(accounts, now_ms);
    }
    if (accounts->n >= accounts->max) {
        *ret_error = -EDQUOT;
        return NULL;
    }
    account = add(accounts, tenant, hash);
    if (!account) {
        *ret_error = -ENOMEM;
    }
    return account;
}

void al_accounts_wake(struct al_accounts *accounts, struct al_account *account)
{
    if (account->older || account->newer || accounts->oldest == account) {
        leave_rest(accounts, account);
    }
}

void al_accounts_rest(struct al_accounts *accounts, struct al_account *account, int64_t now_ms)
{
    if (account->window.n == 0) {
        drop(accounts, account);
        return;
    }
    account->rest_ms = now_ms;
    account->older = accounts->newest;
    account->newer = NULL;
    *(accounts->newest ? &accounts->newest->newer : &accounts->oldest) = account;
    accounts->newest = account;
}
