/*
 * What acquire and release of the quota enforcer cost with many active tenants and with one:
 * medians of one run, measured turn about, and their ratio. Exits with 1 when the aim is missed.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "service/quota/quota.h"
#include "tests/bench/die.h"

#define TENANTS_MANY 10000
#define BATCH        1000
#define BATCHES      2000
#define NAME_BYTES   32
#define RATIO_MAX    3.0
#define THREADS_MAX  4

/* Tenants whose turn comes in an order unlike that of their memory. */
struct crowd {
    struct al_quota *quota;
    char (*names)[NAME_BYTES];
    size_t n;
    size_t at;
    int64_t ns[BATCHES]; /* of each batch */
};

static uint64_t next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static void run_job(struct crowd *crowd, int64_t now_ms)
{
    struct al_lease lease;
    struct al_quota_refusal refusal;
    const char *tenant = crowd->names[crowd->at];
    crowd->at = crowd->at + 1 == crowd->n ? 0 : crowd->at + 1;
    if (al_quota_acquire(crowd->quota, tenant, 5000, now_ms, &lease, &refusal) < 0) {
        al_bench_die("%s is refused", tenant);
    }
    al_lease_release(&lease, 10, now_ms);
}

static void run_batch(struct crowd *crowd, size_t i)
{
    int64_t start_ns = al_now_ns();
    for (int k = 0; k < BATCH; k++) {
        run_job(crowd, start_ns / 1000000);
    }
    crowd->ns[i] = al_now_ns() - start_ns;
}

static void shuffle(struct crowd *crowd)
{
    uint64_t random = 1;
    for (size_t i = crowd->n - 1; i > 0; i--) {
        char name[NAME_BYTES];
        size_t k = next_random(&random) % (i + 1);
        memcpy(name, crowd->names[i], NAME_BYTES);
        memcpy(crowd->names[i], crowd->names[k], NAME_BYTES);
        memcpy(crowd->names[k], name, NAME_BYTES);
    }
}

static void init_crowd(struct crowd *crowd, size_t n)
{
    *crowd = (struct crowd){.n = n};
    crowd->quota = al_quota_create(&(struct al_quota_rules){0});
    crowd->names = calloc(n, NAME_BYTES);
    if (!crowd->quota || !crowd->names) {
        al_bench_die("out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(crowd->names[i], NAME_BYTES, "tenant-%zu", i);
    }
    for (size_t i = 0; i < n; i++) {
        run_job(crowd, al_now_ms());
    }
    if (al_quota_tenants(crowd->quota) != n) {
        al_bench_die("not every tenant is active");
    }
    shuffle(crowd);
}

static void finish_crowd(struct crowd *crowd)
{
    al_quota_destroy(crowd->quota);
    free(crowd->names);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double median_ns(struct crowd *crowd)
{
    qsort(crowd->ns, BATCHES, sizeof crowd->ns[0], compare);
    int64_t ns = crowd->ns[BATCHES / 2];
    return (double)ns / BATCH;
}

struct hammer {
    struct crowd crowd;
    pthread_t thread;
};

static void *hammer(void *arg)
{
    struct hammer *h = arg;
    for (size_t i = 0; i < BATCHES; i++) {
        run_batch(&h->crowd, i);
    }
    return NULL;
}

/* All threads on one enforcer, each with its own part of the tenants. */
static double millions_per_second(const struct crowd *crowd, unsigned n)
{
    static struct hammer hammers[THREADS_MAX];
    int64_t start_ns = al_now_ns();
    for (unsigned i = 0; i < n; i++) {
        hammers[i].crowd = (struct crowd){
            .quota = crowd->quota, .names = &crowd->names[i * (crowd->n / n)], .n = crowd->n / n};
        if (pthread_create(&hammers[i].thread, NULL, hammer, &hammers[i]) != 0) {
            al_bench_die("no thread");
        }
    }
    for (unsigned i = 0; i < n; i++) {
        pthread_join(hammers[i].thread, NULL);
    }
    return (double)n * BATCHES * BATCH * 1e3 / (double)(al_now_ns() - start_ns);
}

int main(void)
{
    static struct crowd one, many;
    init_crowd(&one, 1);
    init_crowd(&many, TENANTS_MANY);
    for (size_t i = 0; i < BATCHES; i++) {
        run_batch(&one, i);
        run_batch(&many, i);
    }
    double one_ns = median_ns(&one);
    double many_ns = median_ns(&many);
    bool met = many_ns <= RATIO_MAX * one_ns;
    printf("acquire+release, 1 tenant: %.0f ns; %d tenants: %.0f ns\n", one_ns, TENANTS_MANY,
           many_ns);
    for (unsigned n = 1; n <= THREADS_MAX; n *= 2) {
        printf("%u threads on %d tenants: %.2f million/s\n", n, TENANTS_MANY,
               millions_per_second(&many, n));
    }
    printf("%s  acquire+release with %d tenants to one: %.2f, wanted at most %.2f\n",
           met ? "PASS" : "FAIL", TENANTS_MANY, many_ns / one_ns, RATIO_MAX);
    finish_crowd(&one);
    finish_crowd(&many);
    return met ? 0 : 1;
}
