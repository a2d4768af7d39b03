/* Many threads, few tenants: no limit is passed at any instant, and nothing is left at the end. */
#include "service/quota/quota.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 4
#define TENANTS 5
#define ROUNDS  20000

static struct al_quota *quota;
static atomic_llong clock_ms;
static atomic_int inflight[TENANTS];
static atomic_llong reserved_ms[TENANTS];
static atomic_int admitted;
static atomic_int wrong;

static const char *const names[TENANTS] = {"a", "b", "c", "d", "e"};

static const struct al_quota_rules rules = {
    .defaults = {.cpu_ms_per_minute = 100, .max_inflight = 2},
    .tenants_max = TENANTS - 1,
};

static void run_job(unsigned tenant, int64_t cpu_ms, struct al_lease *lease)
{
    if (atomic_fetch_add(&inflight[tenant], 1) >= 2 ||
        atomic_fetch_add(&reserved_ms[tenant], cpu_ms) + cpu_ms > 100)
    {
        atomic_fetch_add(&wrong, 1);
    }
    atomic_fetch_add(&admitted, 1);
    al_lease_charge(lease, cpu_ms * 500, atomic_fetch_add(&clock_ms, 7));
    atomic_fetch_sub(&inflight[tenant], 1);
    atomic_fetch_sub(&reserved_ms[tenant], cpu_ms);
    al_lease_release(lease, cpu_ms * 1000, atomic_fetch_add(&clock_ms, 7));
}

static void *run(void *arg)
{
    unsigned random = *(unsigned *)arg;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525u + 1013904223u;
        unsigned tenant = (random >> 16) % TENANTS;
        int64_t cpu_ms = (random >> 8) % 60;
        struct al_lease lease;
        struct al_quota_refusal refusal;
        struct al_quota_remaining left;
        if (al_quota_acquire(quota, names[tenant], cpu_ms, atomic_load(&clock_ms), &lease,
                             &refusal) == 0) {
            run_job(tenant, cpu_ms, &lease);
        } else {
            atomic_fetch_add(&clock_ms, 50);
        }
        al_quota_get(quota, names[tenant], atomic_load(&clock_ms), &left);
        if (left.inflight > left.max_inflight || al_quota_tenants(quota) > TENANTS - 1) {
            atomic_fetch_add(&wrong, 1);
        }
    }
    return NULL;
}

static void test_quota__holds_with_many_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];
    quota = al_quota_create(&rules);
    assert_non_null(quota);
    for (unsigned i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, run, &seeds[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(wrong, 0);
    assert_true(admitted > 1000);
    for (unsigned i = 0; i < TENANTS; i++) {
        struct al_quota_remaining left;
        al_quota_get(quota, names[i], clock_ms + 60000, &left);
        assert_int_equal(left.inflight, 0);
        assert_float_equal(left.cpu_seconds_remaining, 0.1, 0);
    }
    assert_int_equal(al_quota_tenants(quota), 0);
    al_quota_destroy(quota);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota__holds_with_many_threads)};
    return cmocka_run_group_tests_name("quota_threads", tests, NULL, NULL);
}
