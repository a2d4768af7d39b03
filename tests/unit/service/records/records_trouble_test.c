/* Records that cannot be written at all: a folder of no use. */
#include "service/records/records.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "tests/unit/service/records/records_support.h"

static char dir[128];
static char file[160]; /* where the folder should be */

static int set_up(void **state)
{
    (void)state;
    al_test_dir_make(dir);
    snprintf(file, sizeof file, "%s/file", dir);
    al_auto_close int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0;
}

static int tear_down(void **state)
{
    (void)state;
    al_test_dir_remove(dir);
    return 0;
}

static void test_open__a_folder_of_no_use_is_trouble_not_failure(void **state)
{
    (void)state;
    struct al_records_stats stats;
    struct al_test_seen seen[20];
    char token[AL_RECORDS_TOKEN_MAX] = "";
    struct al_records *records = al_test_records_open(file, &al_test_limits);
    al_test_put(records,
                &(struct al_test_record){.tenant = "t", .id = 7, .status = AL_STATUS_SUCCEEDED});
    assert_int_equal(al_test_get(records, "t", 7, &seen[0]), 0);
    assert_int_equal(al_test_get(records, "t", 8, &seen[0]), -EIO);
    assert_int_equal(al_test_page(records, "t", 0, 10, token, seen), -EIO);
    al_records_stats(records, &stats);
    assert_false(stats.working);
    assert_non_null(strstr(stats.trouble, "Not a directory"));
    al_records_close(records);
}

static void test_put__a_full_queue_drops_and_keeps_room_for_ends(void **state)
{
    (void)state;
    struct al_records_stats stats;
    struct al_test_seen seen;
    struct al_records *records = al_test_records_open(file, &al_test_limits);
    struct al_test_record job = {.tenant = "t", .status = AL_STATUS_RUNNING, .pad_bytes = 50000};
    for (job.id = 1; job.id <= 200; job.id++) {
        al_test_put(records, &job);
    }
    al_records_stats(records, &stats);
    assert_true(stats.dropped > 0 && stats.waiting > 100);
    job.id = 1000;
    job.status = AL_STATUS_SUCCEEDED;
    al_test_put(records, &job);
    assert_int_equal(al_test_get(records, "t", 1000, &seen), 0);
    for (job.id = 2000; job.id <= 2200; job.id++) {
        al_test_put(records, &job);
    }
    assert_int_equal(al_test_get(records, "t", 2200, &seen), -EIO);
    job.id = 1; /* what waits can still be replaced */
    al_test_put(records, &job);
    assert_int_equal(al_test_get(records, "t", 1, &seen), 0);
    assert_int_equal(seen.status, AL_STATUS_SUCCEEDED);
    al_records_close(records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_open__a_folder_of_no_use_is_trouble_not_failure,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_put__a_full_queue_drops_and_keeps_room_for_ends,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
