#include "cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/cache/support.h"

#define SECOND_NS INT64_C(1000000000)

static void test_open__refuses_no_room(void **state)
{
    struct support *s = *state;
    struct al_err err = {0};
    const struct al_cache_limits none = {0};
    assert_int_equal(al_cache_open(s->dir, &none, &s->cache, &err), -EINVAL);
    assert_true(al_err_is_set(&err));
}

static void test_get__finds_what_was_put(void **state)
{
    struct support *s = *state;
    struct support_found found;
    support_open(s);
    assert_false(support_has(s, 1));
    assert_true(support_put(s, 1, 7, 100));
    assert_true(support_put(s, 2, 8, 0));
    assert_true(support_put(s, 3, 9, 100000));
    assert_true(support_get(s, 1, &found));
    assert_int_equal(found.version, 7);
    assert_int_equal(found.size, 100);
    assert_true(support_has(s, 2));
    assert_true(support_has(s, 3));
    struct al_cache_stats stats = support_stats(s);
    assert_int_equal(stats.hits, 3);
    assert_int_equal(stats.misses, 1);
    assert_int_equal(stats.puts, 3);
    assert_int_equal(stats.entries, 3);
    assert_true(stats.working);
    assert_int_equal(stats.faults, 0);
}

static void test_put__replaces(void **state)
{
    struct support *s = *state;
    struct support_found found;
    support_open(s);
    assert_true(support_put(s, 1, 1, 50000));
    uint64_t large = support_stats(s).bytes;
    assert_true(support_put(s, 1, 2, 10));
    assert_true(support_get(s, 1, &found));
    assert_int_equal(found.version, 2);
    assert_int_equal(support_stats(s).entries, 1);
    assert_true(support_stats(s).bytes < large);
}

static void add_artifact(struct al_result *result, bool truncated)
{
    struct al_artifact a = {
        .path = strdup("a"), .data = malloc(100), .len = 100, .truncated = truncated};
    assert_non_null(a.path);
    assert_non_null(a.data);
    memset(a.data, 'x', a.len);
    assert_int_equal(al_artifacts_add(&result->artifacts, a), 0);
}

static void test_put__refuses_all_but_whole_successes(void **state)
{
    struct support *s = *state;
    uint8_t key[AL_CACHE_KEY_LEN] = {1};
    const struct al_bytes out[2] = {{0}};
    struct al_result result;
    support_open(s);
    al_result_init(&result);
    assert_false(al_cache_put(s->cache, key, &result, out));
    result.status = AL_STATUS_SUCCEEDED;
    result.stdout_truncated = true;
    assert_false(al_cache_put(s->cache, key, &result, out));
    result.stdout_truncated = false;
    add_artifact(&result, true);
    assert_false(al_cache_put(s->cache, key, &result, out));
    al_artifacts_finish(&result.artifacts);
    assert_true(al_cache_put(s->cache, key, &result, out));
    al_result_finish(&result);
}

static void test_put__refuses_what_is_too_large(void **state)
{
    struct support *s = *state;
    s->limits.entry_max_bytes = 2000;
    support_open(s);
    assert_false(support_put(s, 1, 1, 2000));
    assert_true(support_put(s, 1, 1, 1000));
}

static void test_entries__survive_a_restart(void **state)
{
    struct support *s = *state;
    support_open(s);
    for (uint64_t i = 0; i < 500; i++) {
        assert_true(support_put(s, i, 1, i * 20));
    }
    struct al_cache_stats before = support_stats(s);
    support_close(s);
    support_open(s);
    struct al_cache_stats after = support_stats(s);
    assert_int_equal(after.entries, before.entries);
    assert_int_equal(after.bytes, before.bytes);
    assert_int_equal(after.faults, 0);
    for (uint64_t i = 0; i < 500; i++) {
        assert_true(support_has(s, i));
    }
}

static void test_age__ends_an_entry(void **state)
{
    struct support *s = *state;
    s->limits.max_age_ms = 10000;
    support_open(s);
    assert_true(support_put(s, 1, 1, 10));
    s->now_ns += 10 * SECOND_NS;
    assert_true(support_has(s, 1));
    s->now_ns += SECOND_NS;
    assert_false(support_has(s, 1));
    assert_true(support_put(s, 2, 1, 10)); /* the hand drops the old one */
    assert_int_equal(support_stats(s).entries, 1);
    assert_int_equal(support_stats(s).evictions, 1);
}

static void test_age__of_the_future_is_not_believed(void **state)
{
    struct support *s = *state;
    support_open(s);
    assert_true(support_put(s, 1, 1, 10));
    s->now_ns -= SECOND_NS;
    assert_false(support_has(s, 1));
}

static bool asked(struct support *s, struct al_cache_ask ask)
{
    uint8_t key[AL_CACHE_KEY_LEN];
    struct al_cache_entry entry;
    support_key(1, key);
    bool hit = al_cache_get(s->cache, key, &ask, &entry);
    if (hit) {
        al_cache_entry_finish(&entry);
    }
    return hit;
}

static void test_ask__an_entry_must_fit(void **state)
{
    struct support *s = *state;
    support_open(s);
    assert_true(support_put(s, 1, 5000, 100)); /* took 5,000 us */
    s->now_ns += 5 * SECOND_NS;
    assert_true(asked(s, (struct al_cache_ask){0}));
    assert_true(asked(s, (struct al_cache_ask){.wall_ms = 6}));
    assert_false(asked(s, (struct al_cache_ask){.wall_ms = 5}));
    assert_true(asked(s, (struct al_cache_ask){.output_bytes = 100}));
    assert_false(asked(s, (struct al_cache_ask){.output_bytes = 99}));
    assert_true(asked(s, (struct al_cache_ask){.max_age_ms = 5000}));
    assert_false(asked(s, (struct al_cache_ask){.max_age_ms = 4999}));
}

static void test_ask__its_artifacts_must_fit(void **state)
{
    struct support *s = *state;
    uint8_t key[AL_CACHE_KEY_LEN];
    const struct al_bytes out[2] = {{0}};
    struct al_cache_entry entry;
    struct al_result result;
    support_open(s);
    support_key(1, key);
    al_result_init(&result);
    result.status = AL_STATUS_SUCCEEDED;
    add_artifact(&result, false);
    assert_true(al_cache_put(s->cache, key, &result, out));
    al_result_finish(&result);
    assert_false(asked(s, (struct al_cache_ask){.artifact_bytes = 99}));
    assert_true(al_cache_get(s->cache, key, &(struct al_cache_ask){.artifact_bytes = 100}, &entry));
    assert_int_equal(entry.result.artifacts.n, 1);
    assert_int_equal(entry.result.artifacts.items[0].len, 100);
    al_cache_entry_finish(&entry);
}

static void test_size__stays_below_its_limit(void **state)
{
    struct support *s = *state;
    s->limits.max_bytes = SUPPORT_MIB;
    support_open(s);
    for (uint64_t i = 0; i < 3000; i++) {
        assert_true(support_put(s, i, 1, i % 7 * 700));
        assert_true(support_stats(s).bytes <= SUPPORT_MIB);
    }
    assert_true(support_stats(s).evictions > 0);
    assert_true(support_stats(s).bytes > SUPPORT_MIB * 3 / 4);
    assert_int_equal(support_stats(s).faults, 0);
}

static void test_size__of_a_smaller_limit_is_reached_after_a_restart(void **state)
{
    struct support *s = *state;
    support_open(s);
    for (uint64_t i = 0; i < 300; i++) {
        assert_true(support_put(s, i, 1, 5000));
    }
    support_close(s);
    s->limits.max_bytes = SUPPORT_MIB;
    support_open(s);
    assert_true(support_stats(s).bytes > SUPPORT_MIB);
    assert_true(support_put(s, 1000, 1, 10));
    assert_true(support_stats(s).bytes <= SUPPORT_MIB);
}

/* A hundred entries that are used all the time, among ten times what fits of others. */
static void test_eviction__spares_what_is_used(void **state)
{
    struct support *s = *state;
    s->limits.max_bytes = 2 * SUPPORT_MIB;
    support_open(s);
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(support_put(s, i, 1, 1000));
    }
    for (uint64_t i = 0; i < 10000; i++) {
        assert_true(support_put(s, 1000 + i, 1, 1000));
        if (i % 2 == 0) {
            support_has(s, i / 2 % 100);
        }
    }
    int kept = 0;
    for (uint64_t i = 0; i < 100; i++) {
        kept += support_has(s, i);
    }
    print_message("kept %d of 100 used entries\n", kept);
    assert_in_range(kept, 95, 100);
}

static void test_clear__forgets_everything_and_gives_room_back(void **state)
{
    struct support *s = *state;
    struct stat st;
    char path[256];
    uint64_t entries = 0;
    support_open(s);
    for (uint64_t i = 0; i < 50; i++) {
        assert_true(support_put(s, i, 1, 100000));
    }
    al_cache_clear(s->cache, &entries);
    assert_int_equal(entries, 50);
    assert_int_equal(support_stats(s).entries, 0);
    assert_int_equal(support_stats(s).bytes, 0);
    assert_false(support_has(s, 1));
    support_path(s, "data.mdb", path, sizeof path);
    assert_int_equal(stat(path, &st), 0);
    assert_true((uint64_t)st.st_size < SUPPORT_MIB);
    assert_true(support_put(s, 1, 1, 10));
    assert_true(support_has(s, 1));
    assert_int_equal(support_count_set_aside(s), 0);
}

static void test_map__grows(void **state)
{
    struct support *s = *state;
    s->limits = (struct al_cache_limits){.max_bytes = 128 * SUPPORT_MIB};
    support_open(s);
    for (uint64_t i = 0; i < 40; i++) {
        assert_true(support_put(s, i, 1, SUPPORT_MIB));
    }
    for (uint64_t i = 0; i < 40; i++) {
        assert_true(support_has(s, i));
    }
    assert_int_equal(support_stats(s).faults, 0);
}

static void test_folder_that_cannot_be__always_misses(void **state)
{
    struct support *s = *state;
    int fd = open(s->dir, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    support_open(s);
    struct al_cache_stats stats = support_stats(s);
    assert_false(stats.working);
    assert_true(strlen(stats.trouble) > 0);
    assert_false(support_put(s, 1, 1, 10));
    assert_false(support_has(s, 1));
    al_cache_clear(s->cache, NULL);
    assert_int_equal(unlink(s->dir), 0);
    usleep(1100000);
    assert_true(support_put(s, 1, 1, 10));
    assert_true(support_has(s, 1));
    assert_true(support_stats(s).working);
}

/* A bound on the length of files stands for a full disk. */
static void test_file_that_cannot_grow__keeps_what_it_has(void **state)
{
    struct support *s = *state;
    struct rlimit old;
    support_open(s);
    assert_true(support_put(s, 1, 1, 10000));
    getrlimit(RLIMIT_FSIZE, &old);
    const struct rlimit tight = {SUPPORT_MIB / 4, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    uint64_t stored = 2;
    while (support_put(s, stored, 1, 10000)) {
        stored++;
    }
    assert_in_range(stored, 5, 40);
    assert_false(support_stats(s).working);
    assert_true(support_stats(s).faults > 0);
    for (uint64_t i = 1; i < stored; i++) {
        assert_true(support_has(s, i));
    }
    assert_false(support_put(s, 1000, 1, 10000)); /* rests */
    setrlimit(RLIMIT_FSIZE, &old);
    usleep(1100000);
    assert_true(support_put(s, 1000, 1, 10000));
    assert_true(support_has(s, 1000));
    assert_true(support_stats(s).working);
    assert_int_equal(support_count_set_aside(s), 0);
}

struct store_row {
    const char *name;
    enum al_status status;
    enum al_network_policy network;
    bool artifact_cut;
    uint32_t artifacts_omitted;
    bool truncated;
    bool stdin_open;
    bool may;
};

static const struct store_row store_rows[] = {
    {.name = "may_store: a success",
     .status = AL_STATUS_SUCCEEDED,
     .network = AL_NETWORK_NONE,
     .may = true},
    {.name = "may_store: not a failure", .status = AL_STATUS_FAILED, .network = AL_NETWORK_NONE},
    {.name = "may_store: not a time-out", .status = AL_STATUS_TIMEOUT, .network = AL_NETWORK_NONE},
    {.name = "may_store: not truncated",
     .status = AL_STATUS_SUCCEEDED,
     .network = AL_NETWORK_NONE,
     .truncated = true},
    {.name = "may_store: no network",
     .status = AL_STATUS_SUCCEEDED,
     .network = AL_NETWORK_ALLOWLIST},
    {.name = "may_store: no open stdin",
     .status = AL_STATUS_SUCCEEDED,
     .network = AL_NETWORK_NONE,
     .stdin_open = true},
    {.name = "may_store: no cut artifact",
     .status = AL_STATUS_SUCCEEDED,
     .network = AL_NETWORK_NONE,
     .artifact_cut = true},
    {.name = "may_store: no omitted artifact",
     .status = AL_STATUS_SUCCEEDED,
     .network = AL_NETWORK_NONE,
     .artifacts_omitted = 1},
};
#define STORE_ROWS (sizeof store_rows / sizeof store_rows[0])

static void test_may_store(void **state)
{
    const struct store_row *row = *state;
    const struct al_job_spec spec = {.network = row->network, .stdin_open = row->stdin_open};
    struct al_result result;
    al_result_init(&result);
    result.status = row->status;
    result.stderr_truncated = row->truncated;
    add_artifact(&result, row->artifact_cut);
    result.artifacts.omitted = row->artifacts_omitted;
    assert_int_equal(al_cache_may_store(&spec, &result), row->may);
    al_result_finish(&result);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, support_setup, support_teardown)

int main(void)
{
    static struct CMUnitTest tests[] = {
        WITH_FOLDER(test_open__refuses_no_room),
        WITH_FOLDER(test_get__finds_what_was_put),
        WITH_FOLDER(test_put__replaces),
        WITH_FOLDER(test_put__refuses_all_but_whole_successes),
        WITH_FOLDER(test_put__refuses_what_is_too_large),
        WITH_FOLDER(test_entries__survive_a_restart),
        WITH_FOLDER(test_age__ends_an_entry),
        WITH_FOLDER(test_age__of_the_future_is_not_believed),
        WITH_FOLDER(test_ask__an_entry_must_fit),
        WITH_FOLDER(test_ask__its_artifacts_must_fit),
        WITH_FOLDER(test_size__stays_below_its_limit),
        WITH_FOLDER(test_size__of_a_smaller_limit_is_reached_after_a_restart),
        WITH_FOLDER(test_eviction__spares_what_is_used),
        WITH_FOLDER(test_clear__forgets_everything_and_gives_room_back),
        WITH_FOLDER(test_map__grows),
        WITH_FOLDER(test_folder_that_cannot_be__always_misses),
        WITH_FOLDER(test_file_that_cannot_grow__keeps_what_it_has),
    };
    static struct CMUnitTest rows[STORE_ROWS];
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignore, NULL);
    for (size_t i = 0; i < STORE_ROWS; i++) {
        rows[i] = (struct CMUnitTest){store_rows[i].name, test_may_store, NULL, NULL,
                                      (void *)&store_rows[i]};
    }
    int failed = cmocka_run_group_tests_name("may_store", rows, NULL, NULL);
    return cmocka_run_group_tests_name("cache", tests, NULL, NULL) + failed;
}
