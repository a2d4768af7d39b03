#include "tests/unit/cache/support.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/sha.h>

#include "backends/base/cleanup.h"

static int64_t read_clock(void *arg)
{
    return __atomic_load_n((int64_t *)arg, __ATOMIC_RELAXED);
}

int support_setup(void **state)
{
    struct support *s = calloc(1, sizeof *s);
    const char *tmp = getenv("TEST_TMPDIR");
    assert_non_null(s);
    snprintf(s->root, sizeof s->root, "%.400s/cache.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(s->root));
    snprintf(s->dir, sizeof s->dir, "%s/results", s->root);
    s->limits = (struct al_cache_limits){.max_bytes = 64 * SUPPORT_MIB};
    s->now_ns = INT64_C(1800000000) * 1000000000;
    *state = s;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int support_teardown(void **state)
{
    struct support *s = *state;
    support_close(s);
    nftw(s->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(s);
    return 0;
}

void support_open(struct support *s)
{
    const struct al_cache_clock clock = {read_clock, &s->now_ns};
    assert_null(s->cache);
    assert_int_equal(al_cache_open_clock(s->dir, &s->limits, &clock, &s->cache, NULL), 0);
}

void support_close(struct support *s)
{
    al_cache_close(s->cache);
    s->cache = NULL;
}

void support_key(uint64_t number, uint8_t ret[AL_CACHE_KEY_LEN])
{
    SHA256((const uint8_t *)&number, sizeof number, ret);
}

static void fill(uint64_t number, uint32_t version, uint8_t *data, size_t size)
{
    uint64_t state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) + version;
    for (size_t i = 0; i < size; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data[i] = (uint8_t)state;
    }
}

bool support_put(struct support *s, uint64_t number, uint32_t version, size_t size)
{
    uint8_t key[AL_CACHE_KEY_LEN];
    al_auto_free uint8_t *data = malloc(size + 1);
    struct al_result result;
    assert_non_null(data);
    fill(number, version, data, size);
    al_result_init(&result);
    result.status = AL_STATUS_SUCCEEDED;
    result.reason = AL_REASON_EXIT;
    result.exit_kind = AL_EXIT_CODE;
    result.duration_us = version;
    result.cpu_us = (int64_t)number;
    support_key(number, key);
    const struct al_bytes out[2] = {{data, size}, {(const uint8_t *)"err", 3}};
    bool stored = al_cache_put(s->cache, key, &result, out);
    al_result_finish(&result);
    return stored;
}

bool support_get(struct support *s, uint64_t number, struct support_found *ret)
{
    static const struct al_cache_ask any = {0};
    uint8_t key[AL_CACHE_KEY_LEN];
    struct al_cache_entry entry;
    support_key(number, key);
    if (!al_cache_get(s->cache, key, &any, &entry)) {
        return false;
    }
    size_t size = entry.out[0].len;
    uint32_t version = (uint32_t)entry.result.duration_us;
    uint8_t *expected = malloc(size + 1);
    assert_non_null(expected);
    fill(number, version, expected, size);
    bool same = size == 0 || memcmp(entry.out[0].data, expected, size) == 0;
    free(expected);
    assert_true(same);
    assert_int_equal(entry.result.status, AL_STATUS_SUCCEEDED);
    assert_int_equal(entry.result.cpu_us, number);
    assert_int_equal(entry.out[1].len, 3);
    assert_memory_equal(entry.out[1].data, "err", 3);
    al_cache_entry_finish(&entry);
    *ret = (struct support_found){version, size};
    return true;
}

bool support_has(struct support *s, uint64_t number)
{
    struct support_found found;
    return support_get(s, number, &found);
}

struct al_cache_stats support_stats(struct support *s)
{
    struct al_cache_stats stats;
    al_cache_stats(s->cache, &stats);
    return stats;
}

void support_path(const struct support *s, const char *name, char *ret, size_t size)
{
    snprintf(ret, size, "%s/%s", s->dir, name);
}

int support_count_set_aside(const struct support *s)
{
    int n = 0;
    al_auto_closedir DIR *dir = opendir(s->dir);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        n += strncmp(e->d_name, "data.mdb.", 9) == 0;
    }
    return n;
}
