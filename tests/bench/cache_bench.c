/*
 * The cache alone: medians of a hit with few and with many entries, of a store, and of a
 * fingerprint. `cache_bench [ENTRIES [FOLDER]]`; the samples of both caches alternate, so that the
 * ratio stands whatever else the machine does.
 */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include "backends/api/backend.h"
#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "cache/cache.h"
#include "cache/fingerprint.h"
#include "tests/bench/die.h"

#define FEW     1000
#define MANY    1000000
#define SAMPLES 50000
#define GIB     (UINT64_C(1) << 30)

enum {
    OUTPUT_BYTES = 100, /* of an entry */
};

struct subject {
    struct al_cache *cache;
    uint64_t entries;
    uint64_t random;
    int64_t get_ns[SAMPLES];
    int64_t put_ns[SAMPLES];
};

static void make_key(uint64_t number, uint8_t ret[AL_CACHE_KEY_LEN])
{
    SHA256((const uint8_t *)&number, sizeof number, ret);
}

static uint64_t draw(struct subject *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (s->random >> 11) % s->entries;
}

static int64_t put(struct subject *s, uint64_t number)
{
    static const uint8_t output[OUTPUT_BYTES] = "hello";
    const struct al_bytes out[2] = {{output, sizeof output}, {0}};
    struct al_result result;
    uint8_t key[AL_CACHE_KEY_LEN];
    al_result_init(&result);
    result.status = AL_STATUS_SUCCEEDED;
    make_key(number, key);
    int64_t start = al_now_ns();
    if (!al_cache_put(s->cache, key, &result, out)) {
        struct al_cache_stats stats;
        al_cache_stats(s->cache, &stats);
        al_bench_die("an entry was not stored: %s", stats.trouble);
    }
    int64_t took = al_now_ns() - start;
    al_result_finish(&result);
    return took;
}

static int64_t get(struct subject *s)
{
    static const struct al_cache_ask ask = {.wall_ms = 10000, .output_bytes = 1 << 20};
    struct al_cache_entry entry;
    uint8_t key[AL_CACHE_KEY_LEN];
    make_key(draw(s), key);
    int64_t start = al_now_ns();
    if (!al_cache_get(s->cache, key, &ask, &entry)) {
        al_bench_die("an entry was not found");
    }
    al_cache_entry_finish(&entry);
    return al_now_ns() - start;
}

static struct subject *make_subject(const char *root, const char *name, uint64_t entries)
{
    const struct al_cache_limits limits = {.max_bytes = 4 * GIB};
    struct al_err err = {0};
    char dir[512];
    struct subject *s = calloc(1, sizeof *s);
    if (!s) {
        al_bench_die("out of memory");
    }
    snprintf(dir, sizeof dir, "%s/%s", root, name);
    if (al_cache_open(dir, &limits, &s->cache, &err) < 0) {
        al_bench_die("%s", err.text);
    }
    s->entries = entries;
    s->random = entries;
    int64_t start = al_now_ns();
    for (uint64_t i = 0; i < entries; i++) {
        put(s, i);
    }
    printf("filled with %7" PRIu64 " entries in %.1f s\n", entries,
           (double)(al_now_ns() - start) / 1e9);
    return s;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* In microseconds; sorts. */
static double quantile(int64_t *times, double q)
{
    qsort(times, SAMPLES, sizeof *times, compare_times);
    return (double)times[(size_t)(q * (SAMPLES - 1))] / 1e3;
}

static void print_row(const char *what, int64_t *times)
{
    printf("%-34s %8.2f us median %8.2f us p99\n", what, quantile(times, 0.5),
           quantile(times, 0.99));
}

static void measure_reopening(struct subject *s, const char *root, const char *name)
{
    const struct al_cache_limits limits = {.max_bytes = 4 * GIB};
    char dir[512];
    snprintf(dir, sizeof dir, "%s/%s", root, name);
    al_cache_close(s->cache);
    int64_t start = al_now_ns();
    if (al_cache_open(dir, &limits, &s->cache, NULL) < 0) {
        al_bench_die("cannot be opened again");
    }
    printf("%-34s %8.2f ms\n", "open, many entries", (double)(al_now_ns() - start) / 1e6);
}

static void measure_fingerprint(void)
{
    static int64_t times[SAMPLES];
    static const struct al_language python = {.name = "python", .version = "3.11.2"};
    static const struct al_env env[] = {{"A", "1"}, {"B", "2"}};
    const struct al_job_spec spec = {
        .tenant_id = "acme",
        .user_id = "",
        .language = &python,
        .code = {(const uint8_t *)"print('hello')", 14},
        .env = env,
        .n_env = 2,
        .workdir = "/sandbox",
        .network = AL_NETWORK_NONE,
    };
    uint8_t key[AL_FINGERPRINT_LEN];
    for (size_t i = 0; i < SAMPLES; i++) {
        int64_t start = al_now_ns();
        if (al_fingerprint(&spec, "native", "1", key) < 0) {
            al_bench_die("no fingerprint");
        }
        times[i] = al_now_ns() - start;
    }
    print_row("fingerprint of a small request", times);
}

static void measure(struct subject *few, struct subject *many)
{
    for (size_t i = 0; i < SAMPLES; i++) { /* both alike warm */
        get(few);
        get(many);
    }
    for (size_t i = 0; i < SAMPLES; i++) {
        few->get_ns[i] = get(few);
        many->get_ns[i] = get(many);
    }
    for (size_t i = 0; i < SAMPLES; i++) {
        few->put_ns[i] = put(few, draw(few));
        many->put_ns[i] = put(many, draw(many));
    }
    print_row("get, few entries", few->get_ns);
    print_row("get, many entries", many->get_ns);
    printf("%-34s %8.2f\n", "  ratio of the medians",
           quantile(many->get_ns, 0.5) / quantile(few->get_ns, 0.5));
    print_row("put, few entries", few->put_ns);
    print_row("put, many entries", many->put_ns);
    measure_fingerprint();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    uint64_t entries = argc > 1 ? strtoull(argv[1], NULL, 10) : MANY;
    char root[256];
    snprintf(root, sizeof root, "%.200s/cache-bench.XXXXXX", argc > 2 ? argv[2] : "/tmp");
    if (entries == 0 || !mkdtemp(root)) {
        al_bench_die("usage: cache_bench [ENTRIES [FOLDER]]");
    }
    struct subject *few = make_subject(root, "few", FEW);
    struct subject *many = make_subject(root, "many", entries);
    measure(few, many);
    measure_reopening(many, root, "many");
    al_cache_close(few->cache);
    al_cache_close(many->cache);
    free(few);
    free(many);
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
