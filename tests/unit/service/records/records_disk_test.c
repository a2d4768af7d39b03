/* A disk that is full, or may not be written: a small one of the test's own. Needs root. */
#include "service/records/records.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "tests/unit/service/records/records_support.h"

#define PATIENCE_MS 15000

static char disk[128];
static char dir[160];

static int mount_disk(void **state)
{
    (void)state;
    al_test_dir_make(disk);
    snprintf(dir, sizeof dir, "%s/records", disk);
    return mount("tmpfs", disk, "tmpfs", 0, "size=2m");
}

static int unmount_disk(void **state)
{
    (void)state;
    return umount2(disk, MNT_DETACH) < 0 || rmdir(disk) < 0;
}

/* Takes all that is left of the disk. */
static void fill_disk(void)
{
    static const char bytes[4096];
    char path[160];
    snprintf(path, sizeof path, "%s/ballast", disk);
    al_auto_close int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, bytes, sizeof bytes) > 0) {
    }
    assert_int_equal(errno, ENOSPC);
}

static void free_disk(void)
{
    char path[160];
    snprintf(path, sizeof path, "%s/ballast", disk);
    assert_int_equal(unlink(path), 0);
}

static void put(struct al_records *records, uint64_t first, uint64_t n)
{
    for (uint64_t id = first; id < first + n; id++) {
        al_test_put(records,
                    &(struct al_test_record){
                        .tenant = "t", .id = id, .status = AL_STATUS_SUCCEEDED, .pad_bytes = 1000});
    }
}

static void wait_until_working(struct al_records *records, bool working)
{
    struct al_records_stats stats;
    for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
        al_records_stats(records, &stats);
        if (stats.working == working && (!working || stats.waiting == 0)) {
            assert_int_equal(stats.trouble[0] == '\0', working);
            return;
        }
        usleep(10000);
    }
    fail_msg("working stays %d: %s", stats.working, stats.trouble);
}

static void assert_all_there(struct al_records *records, uint64_t n)
{
    static struct al_test_seen seen[3000];
    assert_int_equal(al_test_list(records, "t", 0, 100, seen, 3000), n);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(seen[i].id == n - i);
    }
}

static void test_full__records_wait_until_there_is_room(void **state)
{
    (void)state;
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    put(records, 1, 100);
    wait_until_working(records, true);
    fill_disk();
    put(records, 101, 300);
    wait_until_working(records, false);
    put(records, 401, 100);
    assert_all_there(records, 500);
    free_disk();
    wait_until_working(records, true);
    assert_all_there(records, 500);
    struct al_records_stats stats;
    al_records_stats(records, &stats);
    assert_int_equal(stats.dropped, 0);
    assert_int_equal(stats.count, 500);
    al_records_close(records);
    records = al_test_records_open(dir, &al_test_limits);
    assert_all_there(records, 500);
    al_records_close(records);
}

static void test_full__at_the_start(void **state)
{
    (void)state;
    fill_disk();
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    wait_until_working(records, false);
    put(records, 1, 100);
    struct al_test_seen seen;
    assert_int_equal(al_test_get(records, "t", 100, &seen), 0);
    sleep(6); /* a second attempt fails as well */
    free_disk();
    wait_until_working(records, true);
    assert_all_there(records, 100);
    al_records_close(records);
    assert_int_equal(al_test_count_files(dir, "data.mdb"), 1);
}

static void test_full__closing_gives_up(void **state)
{
    (void)state;
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    put(records, 1, 100);
    wait_until_working(records, true);
    fill_disk();
    put(records, 101, 500);
    al_records_close(records);
    free_disk();
    records = al_test_records_open(dir, &al_test_limits);
    wait_until_working(records, true);
    assert_all_there(records, 100);
    al_records_close(records);
}

static void test_read_only__is_trouble(void **state)
{
    (void)state;
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    put(records, 1, 10);
    al_records_close(records);
    assert_int_equal(mount(NULL, disk, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    records = al_test_records_open(dir, &al_test_limits);
    wait_until_working(records, false);
    put(records, 11, 1);
    struct al_test_seen seen;
    assert_int_equal(al_test_get(records, "t", 11, &seen), 0);
    assert_int_equal(mount(NULL, disk, NULL, MS_REMOUNT, "size=2m"), 0);
    wait_until_working(records, true);
    assert_all_there(records, 11);
    al_records_close(records);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, mount_disk, unmount_disk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_full__records_wait_until_there_is_room),
        TEST(test_full__at_the_start),
        TEST(test_full__closing_gives_up),
        TEST(test_read_only__is_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
