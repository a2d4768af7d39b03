#include "service/quota/quota.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/*
 * Each row is a schedule under these rules: 10 CPU-seconds a minute and 2 jobs in flight, "big" has
 * 100 and 3, "wide" 10 and 3, and 3 tenants are accounted for.
 */
static const struct al_quota_override overrides[] = {
    {"wide", {.max_inflight = 3}},
    {"big", {.cpu_ms_per_minute = 100000, .max_inflight = 3}},
};

static const struct al_quota_rules rules = {
    .defaults = {.cpu_ms_per_minute = 10000, .max_inflight = 2},
    .overrides = overrides,
    .n_overrides = sizeof overrides / sizeof overrides[0],
    .tenants_max = 3,
};

enum op { END, ACQUIRE, REFUSE, CHARGE, RELEASE, REMAIN, TENANTS };

struct step {
    enum op op;
    int64_t at_ms;
    const char *tenant;
    size_t lease;
    int64_t ms; /* CPU time: asked for, used in all, or remaining */
    uint32_t n; /* in flight, or tenants */
    struct al_quota_refusal refusal;
};

#define STEPS_MAX  16
#define LEASES_MAX 6

struct row {
    const char *name;
    struct step steps[STEPS_MAX];
};

/* `l` numbers the job, `cpu` is in ms. */
#define ACQUIRE(at, who, l, cpu)                                           \
    {                                                                      \
        ACQUIRE, .at_ms = (at), .tenant = (who), .lease = (l), .ms = (cpu) \
    }
#define CHARGE(at, l, used)                               \
    {                                                     \
        CHARGE, .at_ms = (at), .lease = (l), .ms = (used) \
    }
#define RELEASE(at, l, used)                               \
    {                                                      \
        RELEASE, .at_ms = (at), .lease = (l), .ms = (used) \
    }
#define REMAIN(at, who, cpu, inflight)                                       \
    {                                                                        \
        REMAIN, .at_ms = (at), .tenant = (who), .ms = (cpu), .n = (inflight) \
    }
#define TENANTS(count)        \
    {                         \
        TENANTS, .n = (count) \
    }
#define REFUSE(at, who, cpu, which_limit, value, seen, retry, guess)      \
    {                                                                     \
        REFUSE, .at_ms = (at), .tenant = (who), .ms = (cpu), .refusal = { \
            .which = AL_QUOTA_##which_limit,                              \
            .limit = (value),                                             \
            .observed = (seen),                                           \
            .requested = (double)(cpu) / 1000,                            \
            .retry_after_ms = (retry),                                    \
            .estimated = (guess)                                          \
        }                                                                 \
    }

/* clang-format off */
static const struct row rows[] = {
    {"an unknown tenant has all", {REMAIN(0, "a", 10000, 0), TENANTS(0)}},
    {"an override has its own", {REMAIN(0, "big", 100000, 0)}},
    {"an override takes what it leaves out from the defaults", {REMAIN(0, "wide", 10000, 0)}},
    {"acquire reserves", {
        ACQUIRE(0, "a", 0, 4000), REMAIN(0, "a", 6000, 1),
        ACQUIRE(0, "a", 1, 6000), REMAIN(0, "a", 0, 2)}},
    {"release gives back what was not used", {
        ACQUIRE(0, "a", 0, 10000), RELEASE(5, 0, 1), REMAIN(5, "a", 9999, 0)}},
    {"use beyond the reservation is charged", {
        ACQUIRE(0, "a", 0, 1000), RELEASE(5, 0, 1500), REMAIN(5, "a", 8500, 0)}},
    {"use beyond the limit is charged", {
        ACQUIRE(0, "a", 0, 10000), RELEASE(5, 0, 12000), REMAIN(5, "a", 0, 0),
        REFUSE(5, "a", 0, CPU_SECONDS, 10, 12, 60000, false),
        REMAIN(60004, "a", 0, 0), REMAIN(60005, "a", 10000, 0)}},
    {"a charge moves from the reservation into the window", {
        ACQUIRE(0, "a", 0, 5000), CHARGE(1000, 0, 900), REMAIN(1000, "a", 5000, 1),
        CHARGE(2000, 0, 1900), REMAIN(2000, "a", 5000, 1),
        RELEASE(3000, 0, 2000), REMAIN(3000, "a", 8000, 0)}},
    {"a charge beyond the reservation counts at once", {
        ACQUIRE(0, "a", 0, 1000), CHARGE(10, 0, 3000), REMAIN(10, "a", 7000, 1),
        RELEASE(20, 0, 3000), REMAIN(20, "a", 7000, 0)}},
    {"a total that falls changes nothing", {
        ACQUIRE(0, "a", 0, 5000), CHARGE(10, 0, 2000), CHARGE(20, 0, 1000),
        REMAIN(20, "a", 5000, 1), RELEASE(30, 0, 500), REMAIN(30, "a", 8000, 0)}},
    {"a negative total counts as none", {
        ACQUIRE(0, "a", 0, 5000), RELEASE(10, 0, -1), REMAIN(10, "a", 10000, 0), TENANTS(0)}},
    {"a charge leaves 60 s after it was made", {
        ACQUIRE(0, "a", 0, 5000), RELEASE(700, 0, 5000),
        REMAIN(60699, "a", 5000, 0), REMAIN(60700, "a", 10000, 0)}},
    {"charges half a second apart leave one by one", {
        ACQUIRE(0, "a", 0, 5000), CHARGE(1000, 0, 1000), CHARGE(1500, 0, 3000),
        RELEASE(2000, 0, 3000), REMAIN(60999, "a", 7000, 0), REMAIN(61000, "a", 8000, 0),
        REMAIN(61499, "a", 8000, 0), REMAIN(61500, "a", 10000, 0)}},
    {"closer ones leave with the youngest", {
        ACQUIRE(0, "a", 0, 5000), CHARGE(1000, 0, 1000), CHARGE(1499, 0, 3000),
        RELEASE(2000, 0, 3000), REMAIN(61498, "a", 7000, 0), REMAIN(61499, "a", 10000, 0)}},
    {"no burst at a minute's boundary", {
        ACQUIRE(59000, "a", 0, 10000), RELEASE(59990, 0, 10000),
        REFUSE(60000, "a", 10000, CPU_SECONDS, 10, 10, 59990, false),
        REFUSE(119989, "a", 10000, CPU_SECONDS, 10, 10, 1, false),
        ACQUIRE(119990, "a", 0, 10000)}},
    {"retry names the slice that makes room", {
        ACQUIRE(0, "a", 0, 9000), CHARGE(1000, 0, 3000), CHARGE(2000, 0, 6000),
        RELEASE(3000, 0, 9000),
        REFUSE(4000, "a", 1001, CPU_SECONDS, 10, 9, 57000, false),
        REFUSE(4000, "a", 4001, CPU_SECONDS, 10, 9, 58000, false),
        REFUSE(4000, "a", 10000, CPU_SECONDS, 10, 9, 59000, false),
        ACQUIRE(4000, "a", 1, 1000)}},
    {"retry counts what is reserved", {
        ACQUIRE(0, "a", 0, 5000), RELEASE(0, 0, 5000), ACQUIRE(1000, "a", 1, 3000),
        REFUSE(2000, "a", 7000, CPU_SECONDS, 10, 8, 58000, false),
        REFUSE(59999, "a", 7000, CPU_SECONDS, 10, 8, 1, false), ACQUIRE(60000, "a", 2, 7000)}},
    {"retry is a guess when reservations stand in the way", {
        ACQUIRE(0, "a", 0, 8000), REFUSE(0, "a", 3000, CPU_SECONDS, 10, 8, 1000, true)}},
    {"more than the whole budget never runs", {
        REFUSE(0, "a", 10001, CPU_SECONDS, 10, 0, 0, false), TENANTS(0),
        ACQUIRE(0, "big", 0, 10001)}},
    {"the whole budget runs", {ACQUIRE(0, "a", 0, 10000)}},
    {"jobs in flight", {
        ACQUIRE(0, "a", 0, 1), ACQUIRE(0, "a", 1, 1), REFUSE(0, "a", 1, INFLIGHT, 2, 2, 1000, true),
        RELEASE(0, 1, 0), ACQUIRE(0, "a", 1, 1)}},
    {"jobs in flight come before CPU time", {
        ACQUIRE(0, "a", 0, 9000), ACQUIRE(0, "a", 1, 1000),
        REFUSE(0, "a", 1, INFLIGHT, 2, 2, 1000, true)}},
    {"the guess is how long a job takes, shared by those that run", {
        ACQUIRE(0, "a", 0, 1), RELEASE(3000, 0, 1), ACQUIRE(3000, "a", 0, 1),
        ACQUIRE(3000, "a", 1, 1), REFUSE(3000, "a", 1, INFLIGHT, 2, 2, 1500, true)}},
    {"a refusal holds nothing", {
        ACQUIRE(0, "a", 0, 8000), REFUSE(0, "a", 3000, CPU_SECONDS, 10, 8, 1000, true),
        REMAIN(0, "a", 2000, 1), ACQUIRE(0, "a", 1, 2000)}},
    {"tenants do not touch each other", {
        ACQUIRE(0, "a", 0, 10000), ACQUIRE(0, "b", 1, 10000), REMAIN(0, "a", 0, 1),
        REMAIN(0, "b", 0, 1), REMAIN(0, "c", 10000, 0)}},
    {"a tenant that used nothing is forgotten at once", {
        ACQUIRE(0, "a", 0, 10), TENANTS(1), RELEASE(9, 0, 0), TENANTS(0)}},
    {"one that did 60 s after its last job", {
        ACQUIRE(0, "a", 0, 10), RELEASE(9, 0, 1), REMAIN(60008, "b", 10000, 0), TENANTS(1),
        REMAIN(60009, "b", 10000, 0), TENANTS(0)}},
    {"one with a job in flight never", {
        ACQUIRE(0, "a", 0, 10), RELEASE(9, 0, 1), ACQUIRE(10, "a", 0, 10),
        REMAIN(600000, "a", 9990, 1), TENANTS(1)}},
    {"a tenant too many waits for the first that is forgotten", {
        ACQUIRE(0, "a", 0, 1), ACQUIRE(0, "b", 1, 1), ACQUIRE(0, "c", 2, 1),
        RELEASE(500, 1, 1), RELEASE(600, 0, 1),
        REFUSE(1000, "d", 1, TENANTS, 3, 3, 59500, false), ACQUIRE(1000, "a", 0, 1),
        REFUSE(60499, "d", 1, TENANTS, 3, 3, 1, false), ACQUIRE(60500, "d", 3, 1)}},
    {"or for a job when all have one", {
        ACQUIRE(0, "a", 0, 1), ACQUIRE(0, "b", 1, 1), ACQUIRE(0, "c", 2, 1),
        REFUSE(0, "d", 1, TENANTS, 3, 3, 1000, true), RELEASE(0, 1, 0), ACQUIRE(0, "d", 1, 1)}},
    {"known tenants are admitted when the table is full", {
        ACQUIRE(0, "a", 0, 1), ACQUIRE(0, "b", 1, 1), ACQUIRE(0, "c", 2, 1),
        ACQUIRE(0, "a", 3, 1)}},
    {"time that goes back counts as the latest", {
        ACQUIRE(5000, "a", 0, 1000), RELEASE(1000, 0, 1000), REMAIN(64999, "a", 9000, 0),
        REMAIN(65000, "a", 10000, 0)}},
    {"a job of no CPU time needs room too", {
        ACQUIRE(0, "a", 0, 10000), ACQUIRE(0, "a", 1, 0), RELEASE(0, 1, 1),
        REFUSE(0, "a", 0, CPU_SECONDS, 10, 10.001, 60000, false)}},
};
/* clang-format on */

#define N_ROWS (sizeof rows / sizeof rows[0])

static void assert_refusal_equal(const struct al_quota_refusal *got,
                                 const struct al_quota_refusal *wanted)
{
    assert_int_equal(got->which, wanted->which);
    assert_float_equal(got->limit, wanted->limit, 1e-9);
    assert_float_equal(got->observed, wanted->observed, 1e-9);
    assert_float_equal(got->requested, wanted->requested, 1e-9);
    assert_int_equal(got->retry_after_ms, wanted->retry_after_ms);
    assert_int_equal(got->estimated, wanted->estimated);
}

static void refuse(struct al_quota *quota, const struct step *step)
{
    struct al_lease lease;
    struct al_quota_refusal refusal;
    memset(&lease, 0xff, sizeof lease);
    assert_int_equal(al_quota_acquire(quota, step->tenant, step->ms, step->at_ms, &lease, &refusal),
                     -EDQUOT);
    assert_refusal_equal(&refusal, &step->refusal);
    assert_null(lease.quota);
}

static void remain(struct al_quota *quota, const struct step *step)
{
    struct al_quota_remaining left;
    al_quota_get(quota, step->tenant, step->at_ms, &left);
    assert_float_equal(left.cpu_seconds_remaining, (double)step->ms / 1000, 1e-9);
    assert_int_equal(left.inflight, step->n);
    assert_float_equal(left.cpu_seconds_per_minute,
                       (double)al_quota_budget_ms(quota, step->tenant) / 1000, 1e-9);
}

static void take_step(struct al_quota *quota, struct al_lease *leases, const struct step *step)
{
    struct al_quota_refusal refusal;
    switch (step->op) {
    case ACQUIRE:
        assert_int_equal(al_quota_acquire(quota, step->tenant, step->ms, step->at_ms,
                                          &leases[step->lease], &refusal),
                         0);
        break;
    case REFUSE:
        refuse(quota, step);
        break;
    case CHARGE:
        al_lease_charge(&leases[step->lease], step->ms * 1000, step->at_ms);
        break;
    case RELEASE:
        al_lease_release(&leases[step->lease], step->ms * 1000, step->at_ms);
        break;
    case REMAIN:
        remain(quota, step);
        break;
    case TENANTS:
        assert_int_equal(al_quota_tenants(quota), step->n);
        break;
    case END:
        break;
    }
}

static void test_quota__row(void **state)
{
    const struct row *row = *state;
    struct al_lease leases[LEASES_MAX] = {0};
    struct al_quota *quota = al_quota_create(&rules);
    assert_non_null(quota);
    for (size_t i = 0; i < STEPS_MAX && row->steps[i].op != END; i++) {
        take_step(quota, leases, &row->steps[i]);
    }
    for (size_t i = 0; i < LEASES_MAX; i++) {
        al_lease_release(&leases[i], 0, 0);
        assert_null(leases[i].quota);
    }
    al_quota_destroy(quota);
}

static void test_quota_create__fills_in_defaults(void **state)
{
    (void)state;
    struct al_quota_remaining left;
    struct al_quota *quota = al_quota_create(&(struct al_quota_rules){0});
    assert_non_null(quota);
    al_quota_get(quota, "a", 0, &left);
    assert_float_equal(left.cpu_seconds_remaining, 600, 0);
    assert_int_equal(left.max_inflight, 8);
    al_quota_destroy(quota);
    al_quota_destroy(NULL);
}

static void test_quota_budget__is_the_override_or_the_default(void **state)
{
    (void)state;
    struct al_quota *quota = al_quota_create(&rules);
    assert_non_null(quota);
    assert_int_equal(al_quota_budget_ms(quota, "a"), 10000);
    assert_int_equal(al_quota_budget_ms(quota, "big"), 100000);
    assert_int_equal(al_quota_budget_ms(quota, "bi"), 10000);
    al_quota_destroy(quota);
}

static void test_lease__zeroed_has_no_effect(void **state)
{
    (void)state;
    struct al_lease lease = {0};
    al_lease_charge(&lease, 5, 5);
    al_lease_release(&lease, 5, 5);
    al_lease_release(&lease, 5, 5);
}

static void test_quota__many_tenants_come_and_go(void **state)
{
    (void)state;
    struct al_quota *quota = al_quota_create(&(struct al_quota_rules){0});
    assert_non_null(quota);
    for (int i = 0; i < 30000; i++) {
        struct al_lease lease;
        struct al_quota_refusal refusal;
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%d", i);
        assert_int_equal(al_quota_acquire(quota, tenant, 1, i * 10, &lease, &refusal), 0);
        al_lease_release(&lease, 1, i * 10);
        assert_true(al_quota_tenants(quota) <= 6001);
    }
    al_quota_destroy(quota);
}

static void assert_explains(const struct al_quota_refusal *refusal, const char *wanted)
{
    char text[256];
    al_quota_explain(refusal, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void test_quota_explain__names_limit_value_and_retry(void **state)
{
    (void)state;
    assert_explains(&(struct al_quota_refusal){AL_QUOTA_CPU_SECONDS, 600, 598.25, 5, 1250, false},
                    "over the tenant's limit cpu_seconds_per_minute of 600: 598.25 are used or "
                    "reserved in the last 60 s, 5 more are asked for; retry in 1.250 s");
    assert_explains(&(struct al_quota_refusal){AL_QUOTA_CPU_SECONDS, 600, 0, 601, 0, false},
                    "over the tenant's limit cpu_seconds_per_minute of 600: 0 are used or reserved "
                    "in the last 60 s, 601 more are asked for; it can never run");
    assert_explains(&(struct al_quota_refusal){AL_QUOTA_INFLIGHT, 8, 8, 5, 400, true},
                    "over the tenant's limit max_inflight of 8: 8 jobs run; retry in about 0.400 s "
                    "(it depends on running jobs)");
    assert_explains(&(struct al_quota_refusal){AL_QUOTA_TENANTS, 65536, 65536, 5, 60000, false},
                    "over the server's limit tenants_max of 65536: 65536 tenants are active; retry "
                    "in 60.000 s");
    assert_explains(&(struct al_quota_refusal){AL_QUOTA_NONE, 0, 0, 5, 1000, false},
                    "the quota could not be checked: out of memory; retry in 1.000 s");
}

int main(void)
{
    static const struct CMUnitTest single[] = {
        cmocka_unit_test(test_quota_create__fills_in_defaults),
        cmocka_unit_test(test_quota_budget__is_the_override_or_the_default),
        cmocka_unit_test(test_lease__zeroed_has_no_effect),
        cmocka_unit_test(test_quota__many_tenants_come_and_go),
        cmocka_unit_test(test_quota_explain__names_limit_value_and_retry),
    };
    static struct CMUnitTest table[N_ROWS];
    for (size_t i = 0; i < N_ROWS; i++) {
        table[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_quota__row, .initial_state = (void *)&rows[i]};
    }
    int failed = cmocka_run_group_tests_name("quota", single, NULL, NULL);
    return failed + cmocka_run_group_tests_name("quota_rows", table, NULL, NULL);
}
