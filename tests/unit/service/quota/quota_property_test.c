/*
 * Random schedules on a fake clock. After each step the enforcer's answer must lie between the two
 * answers of the model: it admits nothing that the exact window refuses, and refuses nothing that
 * the window with the promised over-count admits. A refusal that names a time is tried again just
 * before it and at it.
 */
#include "service/quota/quota.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/service/quota/quota_model.h"

#define SCHEDULES  60
#define STEPS      4000
#define LEASES_MAX 24

struct held {
    struct al_lease lease;
    size_t tenant;
    int64_t reserved_us;
    int64_t used_us;
};

struct trial {
    uint64_t random;
    struct model model;
    struct al_quota *quota;
    struct held held[LEASES_MAX];
    size_t n_held;
    unsigned admitted, refused[AL_QUOTA_TENANTS + 1], retried;
};

static const char *const names[MODEL_TENANTS] = {"a", "b", "c", "d", "e", "f"};

/* 0 to n - 1. */
static int64_t pick(struct trial *t, int64_t n)
{
    t->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = t->random;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((x ^ (x >> 31)) % (uint64_t)n);
}

static void check_admitted(const struct trial *t, size_t tenant, int64_t cpu_us, bool was_known)
{
    const struct model_tenant *m = &t->model.tenants[tenant];
    assert_true(m->inflight < m->max_inflight);
    assert_true(model_least_us(&t->model, tenant) + m->reserved_us + cpu_us <= m->limit_us);
    assert_true(was_known || model_known(&t->model, false) < t->model.tenants_max);
}

static void check_cpu_refusal(const struct trial *t, size_t tenant, int64_t cpu_us,
                              const struct al_quota_refusal *refusal)
{
    const struct model_tenant *m = &t->model.tenants[tenant];
    assert_float_equal(refusal->limit, (double)m->limit_us / 1e6, 1e-9);
    if (cpu_us > m->limit_us) {
        assert_int_equal(refusal->retry_after_ms, 0);
        return;
    }
    int64_t least_us = model_least_us(&t->model, tenant) + m->reserved_us;
    int64_t most_us = model_most_us(&t->model, tenant) + m->reserved_us;
    assert_true(m->inflight < m->max_inflight);
    assert_true(most_us + cpu_us > m->limit_us);
    assert_true(refusal->observed >= (double)least_us / 1e6 - 1e-9);
    assert_true(refusal->observed <= (double)most_us / 1e6 + 1e-9);
    assert_int_equal(refusal->estimated, m->reserved_us + cpu_us > m->limit_us);
    assert_true(refusal->retry_after_ms > 0);
}

static void check_refused(const struct trial *t, size_t tenant, int64_t cpu_us,
                          const struct al_quota_refusal *refusal)
{
    const struct model_tenant *m = &t->model.tenants[tenant];
    switch (refusal->which) {
    case AL_QUOTA_CPU_SECONDS:
        check_cpu_refusal(t, tenant, cpu_us, refusal);
        return;
    case AL_QUOTA_INFLIGHT:
        assert_int_equal(m->inflight, m->max_inflight);
        assert_float_equal(refusal->observed, m->inflight, 0);
        assert_true(refusal->estimated && refusal->retry_after_ms > 0);
        return;
    case AL_QUOTA_TENANTS:
        assert_false(model_is_known(&t->model, tenant, false));
        assert_true(model_known(&t->model, true) >= t->model.tenants_max);
        assert_true(refusal->retry_after_ms > 0);
        return;
    case AL_QUOTA_NONE:
        break;
    }
    fail_msg("refused for nothing");
}

/* One acquire, checked; true: admitted. */
static bool acquire(struct trial *t, size_t tenant, int64_t cpu_ms,
                    struct al_quota_refusal *refusal)
{
    struct held *held = &t->held[t->n_held];
    bool was_known = model_is_known(&t->model, tenant, true);
    *held = (struct held){.tenant = tenant, .reserved_us = cpu_ms * 1000};
    int r =
        al_quota_acquire(t->quota, names[tenant], cpu_ms, t->model.now_ms, &held->lease, refusal);
    if (r == 0) {
        check_admitted(t, tenant, cpu_ms * 1000, was_known);
        model_admit(&t->model, tenant, cpu_ms * 1000);
        t->n_held++;
        t->admitted++;
        return true;
    }
    assert_int_equal(r, -EDQUOT);
    check_refused(t, tenant, cpu_ms * 1000, refusal);
    t->refused[refusal->which]++;
    return false;
}

/* The same again, one moment before the time that the refusal named and at it. */
static void retry(struct trial *t, size_t tenant, int64_t cpu_ms,
                  const struct al_quota_refusal *refusal)
{
    struct al_quota_refusal again;
    t->model.now_ms += refusal->retry_after_ms - 1;
    assert_false(acquire(t, tenant, cpu_ms, &again));
    assert_int_equal(again.which, refusal->which);
    assert_int_equal(again.retry_after_ms, 1);
    t->model.now_ms += 1;
    assert_true(acquire(t, tenant, cpu_ms, &again));
    t->retried++;
}

/* Anything up to a little more than the limit; often just what is left, or a ms more. */
static int64_t pick_cpu_ms(struct trial *t, size_t tenant)
{
    struct al_quota_remaining left;
    int64_t limit_ms = t->model.tenants[tenant].limit_us / 1000;
    switch (pick(t, 4)) {
    case 0:
        return pick(t, limit_ms + limit_ms / 50 + 2);
    case 1:
        al_quota_get(t->quota, names[tenant], t->model.now_ms, &left);
        return (int64_t)(left.cpu_seconds_remaining * 1000) + pick(t, 2);
    default:
        return pick(t, limit_ms / 4 + 1);
    }
}

static void step_acquire(struct trial *t)
{
    struct al_quota_refusal refusal;
    size_t tenant = (size_t)pick(t, MODEL_TENANTS);
    int64_t cpu_ms = pick_cpu_ms(t, tenant);
    if (t->n_held < LEASES_MAX && !acquire(t, tenant, cpu_ms, &refusal) && !refusal.estimated &&
        refusal.retry_after_ms > 0 && pick(t, 3) == 0)
    {
        retry(t, tenant, cpu_ms, &refusal);
    }
}

/* What the job uses more: nothing, up to its reservation, or rarely beyond it; often just about
 * whole ms, for sums that meet their limits exactly. */
static int64_t pick_use_us(struct trial *t, const struct held *held)
{
    int64_t most_us = held->reserved_us + (pick(t, 20) == 0 ? 50000 : 0);
    int64_t us = pick(t, 5) > 0 ? pick(t, most_us + 1) : 0;
    return us < 1000 || pick(t, 2) == 0 ? us : us - us % 1000 + pick(t, 3) - 1;
}

static void use(struct trial *t, struct held *held)
{
    int64_t us = pick_use_us(t, held);
    int64_t reserved_us = us < held->reserved_us ? us : held->reserved_us;
    held->used_us += us;
    held->reserved_us -= reserved_us;
    if (us > 0) {
        model_charge(&t->model, held->tenant, us, reserved_us);
    }
}

static void step_charge(struct trial *t)
{
    if (t->n_held > 0) {
        struct held *held = &t->held[pick(t, (int64_t)t->n_held)];
        use(t, held);
        al_lease_charge(&held->lease, held->used_us, t->model.now_ms);
    }
}

static void release(struct trial *t, struct held *held)
{
    use(t, held);
    model_end(&t->model, held->tenant, held->reserved_us);
    al_lease_release(&held->lease, held->used_us, t->model.now_ms);
    assert_null(held->lease.quota);
    *held = t->held[--t->n_held];
}

static void step_release(struct trial *t)
{
    if (t->n_held > 0) {
        release(t, &t->held[pick(t, (int64_t)t->n_held)]);
    }
}

static double seconds_left(int64_t limit_us, int64_t used_us)
{
    return used_us < limit_us ? (double)(limit_us - used_us) / 1e6 : 0;
}

static void step_get(struct trial *t)
{
    struct al_quota_remaining got;
    size_t tenant = (size_t)pick(t, MODEL_TENANTS);
    const struct model_tenant *m = &t->model.tenants[tenant];
    al_quota_get(t->quota, names[tenant], t->model.now_ms, &got);
    int64_t least_us = model_least_us(&t->model, tenant) + m->reserved_us;
    int64_t most_us = model_most_us(&t->model, tenant) + m->reserved_us;
    assert_int_equal(got.inflight, m->inflight);
    assert_int_equal(got.max_inflight, m->max_inflight);
    assert_true(got.cpu_seconds_remaining <= seconds_left(m->limit_us, least_us) + 1e-9);
    assert_true(got.cpu_seconds_remaining >= seconds_left(m->limit_us, most_us) - 1e-9);
}

/* Mostly small steps, exact repetitions and multiples of the interval among them. */
static void pass_time(struct trial *t)
{
    static const int64_t scales[] = {1, 1, 2, 200, 200, 600, 600, 2000, 2000, 10000, 70000};
    int64_t scale = scales[pick(t, sizeof scales / sizeof scales[0])];
    t->model.now_ms += pick(t, 10) == 0 ? AL_QUOTA_MERGE_MS * pick(t, 3) : pick(t, scale);
}

static void take_step(struct trial *t)
{
    static void (*const steps[])(struct trial *) = {step_acquire, step_acquire, step_charge,
                                                    step_charge,  step_release, step_get};
    pass_time(t);
    steps[pick(t, sizeof steps / sizeof steps[0])](t);
    assert_true(al_quota_tenants(t->quota) <= t->model.tenants_max);
}

static void start(struct trial *t, uint64_t seed)
{
    struct al_quota_override overrides[MODEL_TENANTS];
    memset(t, 0, sizeof *t);
    t->random = seed;
    t->model.now_ms = pick(t, 1000000);
    t->model.tenants_max = (uint32_t)(MODEL_TENANTS - pick(t, 4));
    for (size_t i = 0; i < MODEL_TENANTS; i++) {
        struct al_quota_limits limits = {.cpu_ms_per_minute = 50 + pick(t, 20000),
                                         .max_inflight = (uint32_t)(1 + pick(t, 5))};
        overrides[i] = (struct al_quota_override){.tenant = names[i], .limits = limits};
        t->model.tenants[i].limit_us = limits.cpu_ms_per_minute * 1000;
        t->model.tenants[i].max_inflight = limits.max_inflight;
    }
    t->quota = al_quota_create(&(struct al_quota_rules){
        .overrides = overrides, .n_overrides = MODEL_TENANTS, .tenants_max = t->model.tenants_max});
    assert_non_null(t->quota);
}

static void finish(struct trial *t)
{
    while (t->n_held > 0) {
        release(t, &t->held[0]);
    }
    t->model.now_ms += AL_QUOTA_WINDOW_MS + AL_QUOTA_MERGE_MS;
    for (size_t i = 0; i < MODEL_TENANTS; i++) {
        struct al_quota_remaining got;
        al_quota_get(t->quota, names[i], t->model.now_ms, &got);
        assert_int_equal(got.inflight, 0);
        assert_float_equal(got.cpu_seconds_remaining, got.cpu_seconds_per_minute, 0);
    }
    assert_int_equal(al_quota_tenants(t->quota), 0);
    al_quota_destroy(t->quota);
}

static void test_quota__agrees_with_the_model(void **state)
{
    (void)state;
    static struct trial t;
    unsigned admitted = 0, cpu = 0, inflight = 0, tenants = 0, retried = 0;
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++) {
        start(&t, seed);
        for (int i = 0; i < STEPS; i++) {
            take_step(&t);
        }
        finish(&t);
        admitted += t.admitted;
        cpu += t.refused[AL_QUOTA_CPU_SECONDS];
        inflight += t.refused[AL_QUOTA_INFLIGHT];
        tenants += t.refused[AL_QUOTA_TENANTS];
        retried += t.retried;
    }
    printf("%d schedules of %d steps: %u admitted, refused: %u CPU, %u in flight, %u tenants; "
           "%u retries\n",
           SCHEDULES, STEPS, admitted, cpu, inflight, tenants, retried);
    assert_true(admitted > 1000 && cpu > 1000 && inflight > 1000 && tenants > 100 && retried > 100);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_quota__agrees_with_the_model)};
    return cmocka_run_group_tests_name("quota_property", tests, NULL, NULL);
}
