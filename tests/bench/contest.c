#include "tests/bench/contest.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "tests/bench/die.h"

struct turn {
    struct al_contestant *who;
    unsigned calls;
    unsigned pause_ms;
    bool counts;
    atomic_uint taken;
    atomic_uint workers; /* that got their number */
    pthread_barrier_t start;
};

static void work_off(struct turn *turn, unsigned worker)
{
    struct al_contestant *who = turn->who;
    while (atomic_fetch_add(&turn->taken, 1) < turn->calls) {
        usleep(turn->pause_ms * 1000);
        int64_t start_ns = al_now_ns();
        who->once(who->arg, worker);
        int64_t took_ns = al_now_ns() - start_ns;
        if (turn->counts) {
            who->ns[atomic_fetch_add(&who->n, 1)] = took_ns;
        }
    }
}

static void *work(void *arg)
{
    struct turn *turn = arg;
    unsigned worker = atomic_fetch_add(&turn->workers, 1);
    pthread_barrier_wait(&turn->start);
    work_off(turn, worker);
    return NULL;
}

static int64_t take_turn_with_threads(struct turn *turn, unsigned threads)
{
    pthread_t ids[AL_CONTEST_THREADS_MAX];
    pthread_barrier_init(&turn->start, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, work, turn) != 0) {
            al_bench_die("cannot start a thread");
        }
    }
    pthread_barrier_wait(&turn->start);
    int64_t start_ns = al_now_ns();
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    pthread_barrier_destroy(&turn->start);
    return al_now_ns() - start_ns;
}

static void take_turn(const struct al_contest *contest, struct al_contestant *who, bool counts)
{
    struct turn turn = {
        .who = who, .calls = contest->turn, .pause_ms = contest->pause_ms, .counts = counts};
    int64_t start_ns = al_now_ns(), busy_ns;
    if (contest->threads == 1) {
        work_off(&turn, 0);
        busy_ns = al_now_ns() - start_ns;
    } else {
        busy_ns = take_turn_with_threads(&turn, contest->threads);
    }
    who->busy_ns += counts ? busy_ns : 0;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void al_contest_run(const struct al_contest *contest, struct al_contestant *who, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        who[i].ns = calloc((size_t)contest->rounds * contest->turn, sizeof *who[i].ns);
        if (!who[i].ns) {
            al_bench_die("out of memory");
        }
    }
    for (unsigned round = 0; round <= contest->rounds; round++) {
        for (size_t i = 0; i < n; i++) {
            take_turn(contest, &who[(i + round) % n], round > 0);
        }
    }
    for (size_t i = 0; i < n; i++) {
        qsort(who[i].ns, who[i].n, sizeof *who[i].ns, compare);
    }
}

int64_t al_contestant_percentile(const struct al_contestant *who, double p)
{
    size_t n = atomic_load(&who->n);
    size_t at = (size_t)(p * (double)n);
    return n == 0 ? 0 : who->ns[at < n ? at : n - 1];
}

double al_contestant_per_second(const struct al_contestant *who)
{
    return who->busy_ns > 0 ? (double)atomic_load(&who->n) * 1e9 / (double)who->busy_ns : 0;
}

void al_contestant_finish(struct al_contestant *who)
{
    free(who->ns);
    who->ns = NULL;
}
