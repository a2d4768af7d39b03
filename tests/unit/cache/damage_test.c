/* What a file may look like after a crash, a power loss, or somebody's mistake. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "tests/unit/cache/support.h"

#define ENTRIES 400
#define REST_US 1100000 /* the cache tries again after a second */

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int open_data(const struct support *s)
{
    char path[256];
    support_path(s, "data.mdb", path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static size_t data_size(const struct support *s)
{
    struct stat st;
    al_auto_close int fd = open_data(s);
    assert_int_equal(fstat(fd, &st), 0);
    return (size_t)st.st_size;
}

/* A closed cache with small and large entries, some deleted, so that there is a free list. */
static void make_file(struct support *s)
{
    s->limits.max_bytes = 2 * SUPPORT_MIB;
    support_open(s);
    for (uint64_t i = 0; i < 2 * ENTRIES; i++) {
        assert_true(support_put(s, i % ENTRIES, 1, i % 5 * 3500));
    }
    assert_true(support_stats(s).evictions > 0);
    support_close(s);
}

/* Every entry that is found is right (support_get sees to that); how many. */
static int count_found(struct support *s)
{
    int n = 0;
    for (uint64_t i = 0; i < ENTRIES; i++) {
        n += support_has(s, i);
    }
    return n;
}

static void require_begun_anew(struct support *s)
{
    support_open(s);
    assert_int_equal(support_count_set_aside(s), 1);
    assert_non_null(strstr(support_stats(s).trouble, "set aside"));
    assert_int_equal(support_stats(s).faults, 1);
    assert_true(support_stats(s).working);
    assert_int_equal(count_found(s), 0);
    assert_true(support_put(s, 1, 1, 10));
    assert_true(support_has(s, 1));
}

static void test_garbage__is_set_aside(void **state)
{
    struct support *s = *state;
    char path[256];
    assert_int_equal(mkdir(s->dir, 0700), 0);
    support_path(s, "data.mdb", path, sizeof path);
    al_auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(al_io_write_full(fd, "this is not a database", 22), 0);
    require_begun_anew(s);
}

static void test_overwritten_start__is_set_aside(void **state)
{
    struct support *s = *state;
    char junk[16384];
    make_file(s);
    al_auto_close int fd = open_data(s);
    memset(junk, 'x', sizeof junk);
    assert_int_equal(pwrite(fd, junk, sizeof junk, 0), sizeof junk);
    require_begun_anew(s);
}

static void test_truncated_file__is_set_aside(void **state)
{
    struct support *s = *state;
    make_file(s);
    al_auto_close int fd = open_data(s);
    assert_int_equal(ftruncate(fd, (off_t)(data_size(s) / 2)), 0);
    require_begun_anew(s);
}

static void test_two_damaged_files__are_both_kept(void **state)
{
    struct support *s = *state;
    for (int i = 1; i <= 3; i++) {
        make_file(s);
        al_auto_close int fd = open_data(s);
        assert_int_equal(ftruncate(fd, 12345), 0);
        support_open(s);
        support_close(s);
        assert_int_equal(support_count_set_aside(s), i);
    }
}

static void test_another_format__is_set_aside(void **state)
{
    struct support *s = *state;
    char *at = NULL;
    make_file(s);
    size_t size = data_size(s);
    al_auto_free char *data = malloc(size);
    al_auto_close int fd = open_data(s);
    assert_non_null(data);
    assert_int_equal(pread(fd, data, size, 0), size);
    for (size_t from = 0; (at = memmem(data + from, size - from, "format\2\0\0\0", 10)) != NULL;) {
        at[6] = 77;
        from = (size_t)(at - data) + 1;
    }
    assert_int_equal(pwrite(fd, data, size, 0), size);
    require_begun_anew(s);
}

static void test_truncated_while_open__begins_anew(void **state)
{
    struct support *s = *state;
    make_file(s);
    support_open(s);
    assert_true(count_found(s) > 0);
    al_auto_close int fd = open_data(s);
    assert_int_equal(ftruncate(fd, 8192), 0);
    assert_int_equal(count_found(s), 0);
    assert_false(support_stats(s).working);
    assert_true(support_put(s, 1, 1, 10));
    assert_true(support_has(s, 1));
    assert_true(support_stats(s).working);
    assert_int_equal(support_count_set_aside(s), 1);
}

static void test_truncated_while_open__does_not_stop_a_writer(void **state)
{
    struct support *s = *state;
    make_file(s);
    support_open(s);
    al_auto_close int fd = open_data(s);
    assert_int_equal(ftruncate(fd, 8192), 0);
    assert_false(support_put(s, 1, 1, 10));
    assert_false(support_put(s, 1, 1, 10)); /* rests */
    usleep(REST_US);
    assert_true(support_put(s, 1, 1, 10));
    assert_true(support_has(s, 1));
    assert_int_equal(support_count_set_aside(s), 1);
}

static void test_removed_while_open__begins_anew(void **state)
{
    struct support *s = *state;
    char path[256];
    make_file(s);
    support_open(s);
    support_path(s, "data.mdb", path, sizeof path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(count_found(s), 0);
    assert_true(support_put(s, 1, 1, 10));
    support_close(s);
    support_open(s);
    assert_true(support_has(s, 1));
    assert_int_equal(support_count_set_aside(s), 0);
}

static void damage(int fd, size_t size, uint64_t *random)
{
    uint8_t junk[512];
    size_t pages = size / 4096;
    for (uint64_t edits = 1 + next_random(random) % 3; edits > 0; edits--) {
        size_t len = 1u << next_random(random) % 10;
        size_t at = (size_t)(next_random(random) % pages) * 4096 +
                    (next_random(random) % 2 ? 0 : (size_t)(next_random(random) % 4096));
        memset(junk, next_random(random) % 2 ? 0 : (int)(next_random(random) % 256), sizeof junk);
        for (size_t i = 0; i < len && next_random(random) % 2; i++) {
            junk[i] = (uint8_t)next_random(random);
        }
        len = len < size - at ? len : size - at;
        assert_int_equal(pwrite(fd, junk, len, (off_t)at), len);
    }
}

/* Whatever bytes are changed: it opens, nothing wrong is found, and it can be written and read. */
static void test_damage_anywhere__never_gives_a_wrong_result(void **state)
{
    struct support *s = *state;
    uint64_t random = 88172645463325252;
    int set_aside = 0;
    make_file(s);
    size_t size = data_size(s);
    al_auto_free uint8_t *sound = malloc(size);
    assert_non_null(sound);
    {
        al_auto_close int fd = open_data(s);
        assert_int_equal(pread(fd, sound, size, 0), size);
    }
    for (int i = 0; i < 300; i++) {
        char path[256];
        support_path(s, "data.mdb", path, sizeof path);
        al_auto_close int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_int_equal(pwrite(fd, sound, size, 0), size);
        damage(fd, size, &random);
        support_open(s);
        count_found(s);
        for (uint64_t j = 0; j < 20; j++) {
            assert_true(support_put(s, ENTRIES + j, 2, j * 500));
            assert_true(support_has(s, ENTRIES + j));
        }
        set_aside += strstr(support_stats(s).trouble, "set aside") != NULL;
        support_close(s);
    }
    print_message("%d of 300 damaged files were set aside\n", set_aside);
}

static void write_until_killed(struct support *s, uint64_t seed)
{
    uint64_t random = seed;
    support_open(s);
    for (;;) {
        uint64_t r = next_random(&random);
        support_put(s, r % ENTRIES, (uint32_t)(r >> 40), r >> 20 & 0x7fff);
    }
}

static void test_kill_in_mid_write__loses_nothing_and_gives_nothing_wrong(void **state)
{
    struct support *s = *state;
    uint64_t random = 1181783497276652981;
    int found = 0;
    s->limits.max_bytes = 3 * SUPPORT_MIB;
    for (int i = 0; i < 25; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            write_until_killed(s, next_random(&random) + (uint64_t)i);
        }
        usleep((useconds_t)(2000 + next_random(&random) % 40000));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        support_open(s);
        assert_int_equal(support_stats(s).faults, 0);
        assert_true(support_stats(s).bytes <= s->limits.max_bytes);
        found += count_found(s);
        assert_int_equal(support_stats(s).faults, 0);
        support_close(s);
    }
    assert_true(found > 0);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, support_setup, support_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_garbage__is_set_aside),
        WITH_FOLDER(test_overwritten_start__is_set_aside),
        WITH_FOLDER(test_truncated_file__is_set_aside),
        WITH_FOLDER(test_two_damaged_files__are_both_kept),
        WITH_FOLDER(test_another_format__is_set_aside),
        WITH_FOLDER(test_truncated_while_open__begins_anew),
        WITH_FOLDER(test_truncated_while_open__does_not_stop_a_writer),
        WITH_FOLDER(test_removed_while_open__begins_anew),
        WITH_FOLDER(test_damage_anywhere__never_gives_a_wrong_result),
        WITH_FOLDER(test_kill_in_mid_write__loses_nothing_and_gives_nothing_wrong),
    };
    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
