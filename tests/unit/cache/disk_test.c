/* A small disk of the test's own: full, read-only, and well again. Needs root (mounts). */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "tests/unit/cache/support.h"

#define REST_US 1100000 /* the cache tries again after a second */

static int mount_disk(void **state)
{
    support_setup(state);
    struct support *s = *state;
    s->limits.max_bytes = 16 * SUPPORT_MIB;
    assert_int_equal(mkdir(s->dir, 0700), 0);
    assert_int_equal(mount("none", s->dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=2m"), 0);
    return 0;
}

static int unmount_disk(void **state)
{
    struct support *s = *state;
    support_close(s);
    assert_int_equal(umount2(s->dir, MNT_DETACH), 0);
    return support_teardown(state);
}

static void fill_disk(const struct support *s)
{
    static const char block[4096] = "x";
    char path[256];
    support_path(s, "ballast", path, sizeof path);
    al_auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, block, sizeof block) > 0) {
    }
    assert_int_equal(errno, ENOSPC);
}

static void free_disk(const struct support *s)
{
    char path[256];
    support_path(s, "ballast", path, sizeof path);
    assert_int_equal(unlink(path), 0);
}

static void require_stores_again(struct support *s, uint64_t number)
{
    assert_false(support_put(s, number, 1, 1000)); /* rests */
    usleep(REST_US);
    assert_true(support_put(s, number, 1, 1000));
    assert_true(support_has(s, number));
    assert_true(support_stats(s).working);
    assert_int_equal(support_count_set_aside(s), 0);
}

static void test_disk_fills_up__what_is_there_is_still_found(void **state)
{
    struct support *s = *state;
    support_open(s);
    uint64_t n = 0;
    while (support_put(s, n, 1, 10000)) {
        n++;
    }
    assert_in_range(n, 50, 200);
    assert_false(support_stats(s).working);
    print_message("%s\n", support_stats(s).trouble);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(support_has(s, i));
    }
    support_close(s);
    support_open(s); /* full, and all the same sound */
    for (uint64_t i = 0; i < n; i++) {
        support_has(s, i);
    }
}

static void test_disk_fills_and_empties__over_and_over(void **state)
{
    struct support *s = *state;
    support_open(s);
    for (uint64_t round = 0; round < 3; round++) {
        assert_true(support_put(s, round, 1, 1000));
        fill_disk(s);
        uint64_t n = 100;
        while (support_put(s, n, (uint32_t)round, 20000)) {
            n++;
        }
        for (uint64_t i = 0; i <= round; i++) {
            assert_true(support_has(s, i));
        }
        free_disk(s);
        require_stores_again(s, 1000 + round);
    }
}

static void test_full_disk_at_the_start__misses_until_there_is_room(void **state)
{
    struct support *s = *state;
    fill_disk(s);
    support_open(s);
    assert_false(support_stats(s).working);
    assert_false(support_put(s, 1, 1, 10));
    assert_false(support_has(s, 1));
    print_message("%s\n", support_stats(s).trouble);
    free_disk(s);
    require_stores_again(s, 1);
}

static void remount(const struct support *s, unsigned long flags)
{
    assert_int_equal(mount("none", s->dir, NULL, MS_REMOUNT | flags, "size=2m"), 0);
}

static void test_read_only_at_the_start__always_misses(void **state)
{
    struct support *s = *state;
    support_open(s);
    assert_true(support_put(s, 1, 1, 10));
    support_close(s);
    remount(s, MS_RDONLY);
    support_open(s);
    assert_false(support_stats(s).working);
    print_message("%s\n", support_stats(s).trouble);
    assert_false(support_has(s, 1));
    assert_false(support_put(s, 2, 1, 10));
    uint64_t entries = 7;
    al_cache_clear(s->cache, &entries);
    remount(s, 0);
    require_stores_again(s, 2);
    assert_false(support_has(s, 1)); /* it was cleared, though that could not be done then */
}

#define WITH_DISK(test) cmocka_unit_test_setup_teardown(test, mount_disk, unmount_disk)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        WITH_DISK(test_disk_fills_up__what_is_there_is_still_found),
        WITH_DISK(test_disk_fills_and_empties__over_and_over),
        WITH_DISK(test_full_disk_at_the_start__misses_until_there_is_room),
        WITH_DISK(test_read_only_at_the_start__always_misses),
    };
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        perror("a mount namespace of its own");
        return 1;
    }
    return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
