/* Files that are not what they were: nothing of it may crash, fail a put or give a wrong record. */
#include "service/records/records.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "service/records/map_check.h"
#include "tests/unit/service/records/records_support.h"

#define JOBS      400
#define MUTATIONS 600

struct image {
    uint8_t *data;
    size_t len;
};

static struct image good; /* a file with JOBS jobs of tenant t, most of them succeeded */

static void path_of(const char *dir, const char *name, char ret[256])
{
    snprintf(ret, 256, "%s/%s", dir, name);
}

static struct image read_image(const char *dir)
{
    char path[256];
    struct stat st;
    path_of(dir, "data.mdb", path);
    al_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    struct image image = {malloc((size_t)st.st_size), (size_t)st.st_size};
    assert_non_null(image.data);
    assert_int_equal(al_io_read_full(fd, image.data, image.len), 0);
    return image;
}

static void write_image(const char *dir, const uint8_t *data, size_t len)
{
    char path[256];
    path_of(dir, "data.mdb", path);
    al_auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(al_io_write_full(fd, data, len), 0);
}

static void clear_dir(const char *dir)
{
    al_test_dir_remove(dir);
    assert_int_equal(mkdir(dir, 0700), 0);
}

/* Written in many commits and thinned out, so that trees are deep and pages free. */
static int make_good(void **state)
{
    (void)state;
    char dir[128];
    al_test_dir_make(dir);
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    for (uint64_t id = 1; id <= JOBS; id++) {
        struct al_test_record job = {.tenant = "t",
                                     .id = id,
                                     .status = AL_STATUS_RUNNING,
                                     .version = (uint32_t)id,
                                     .pad_bytes = id % 50 ? 300 : 9000};
        al_test_put(records, &job);
        if (id % 100 == 0) {
            al_test_settle(records);
        }
        job.status = id % 40 ? AL_STATUS_SUCCEEDED : AL_STATUS_RUNNING;
        al_test_put(records, &job);
    }
    al_records_close(records);
    good = read_image(dir);
    al_test_dir_remove(dir);
    return 0;
}

static int free_good(void **state)
{
    (void)state;
    free(good.data);
    return 0;
}

/* What is found must have been written; everything may be missing. A job whose key in the index is
 * damaged may still run. */
static void use(struct al_records *records)
{
    static struct al_test_seen seen[2 * JOBS + 1000];
    struct al_test_seen one;
    size_t n = al_test_list(records, "t", 0, 300, seen, 2 * JOBS + 1000);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(seen[i].version, seen[i].id);
        assert_true(seen[i].status == AL_STATUS_SUCCEEDED || seen[i].interrupted ||
                    seen[i].status == AL_STATUS_RUNNING);
    }
    for (uint64_t id = 1; id <= JOBS; id += 7) {
        int r = al_test_get(records, "t", id, &one);
        assert_true(r == -ENOENT || r == -EIO || (r == 0 && one.version == id));
    }
}

static void put_one(struct al_records *records, uint64_t id)
{
    al_test_put(records, &(struct al_test_record){.tenant = "t",
                                                  .id = id,
                                                  .status = AL_STATUS_SUCCEEDED,
                                                  .version = (uint32_t)id});
}

/* The file is of no use: it is kept under another name, and records go on. */
static void assert_set_aside(const char *dir)
{
    struct al_records_stats stats;
    struct al_test_seen seen;
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    al_records_stats(records, &stats);
    assert_true(stats.working);
    assert_int_equal(strncmp(stats.set_aside, "data.mdb.2", 10), 0);
    assert_int_equal(al_test_count_files(dir, "data.mdb"), 2);
    assert_int_equal(stats.count, 0);
    put_one(records, 7);
    al_test_settle(records);
    assert_int_equal(al_test_get(records, "t", 7, &seen), 0);
    al_records_close(records);
}

static void test_open__takes_what_is_whole(void **state)
{
    (void)state;
    char dir[128];
    struct al_records_stats stats;
    const char *why = "";
    assert_int_equal(al_map_check(good.data, good.len, &why), 0);
    al_test_dir_make(dir);
    write_image(dir, good.data, good.len);
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    al_records_stats(records, &stats);
    assert_int_equal(stats.count, JOBS);
    assert_string_equal(stats.set_aside, "");
    use(records);
    al_records_close(records);
    al_test_dir_remove(dir);
}

static void test_open__an_empty_file_is_a_new_one(void **state)
{
    (void)state;
    char dir[128];
    struct al_records_stats stats;
    al_test_dir_make(dir);
    write_image(dir, good.data, 0);
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    al_records_stats(records, &stats);
    assert_true(stats.working);
    assert_string_equal(stats.set_aside, "");
    al_records_close(records);
    al_test_dir_remove(dir);
}

static void test_open__sets_a_truncated_file_aside(void **state)
{
    (void)state;
    static const unsigned kept_percent[] = {1, 30, 60, 90};
    char dir[128];
    al_test_dir_make(dir);
    for (size_t i = 0; i < 4; i++) {
        write_image(dir, good.data, good.len * kept_percent[i] / 100);
        assert_set_aside(dir);
        clear_dir(dir);
    }
    write_image(dir, good.data, 100);
    assert_set_aside(dir);
    write_image(dir, good.data, good.len / 2); /* in the same second as the first */
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    al_records_close(records);
    assert_int_equal(al_test_count_files(dir, "data.mdb"), 3);
    al_test_dir_remove(dir);
}

static void test_open__sets_garbage_aside(void **state)
{
    (void)state;
    char dir[128];
    uint64_t random = 5;
    static uint8_t data[100000];
    size_t len = sizeof data;
    for (size_t i = 0; i < len; i++) {
        data[i] = (uint8_t)al_test_random(&random, 256);
    }
    al_test_dir_make(dir);
    write_image(dir, data, len);
    assert_set_aside(dir);
    clear_dir(dir);
    memset(data, 0, len);
    write_image(dir, data, len);
    assert_set_aside(dir);
    clear_dir(dir);
    memcpy(data, good.data, 8192); /* the head is right */
    write_image(dir, data, len);
    assert_set_aside(dir);
    al_test_dir_remove(dir);
}

static void test_open__sets_another_format_aside(void **state)
{
    (void)state;
    char dir[128];
    uint8_t *data = malloc(good.len);
    assert_non_null(data);
    memcpy(data, good.data, good.len);
    /* Each copy of the one value under its key; a node's key is followed by its value. */
    for (size_t i = 0; i + 7 < good.len; i++) {
        if (memcmp(data + i, "format\x01", 7) == 0) {
            data[i + 6] = 0;
        }
    }
    al_test_dir_make(dir);
    write_image(dir, data, good.len);
    free(data);
    assert_set_aside(dir);
    al_test_dir_remove(dir);
}

/* Pages overwritten, bits flipped, parts moved: either it is set aside or what it gives is right.
 */
static void damage(uint8_t *data, size_t len, uint64_t *random)
{
    for (uint32_t edits = 1 + al_test_random(random, 4); edits > 0; edits--) {
        size_t at = al_test_random(random, (uint32_t)len);
        size_t page = at / 4096 * 4096;
        switch (al_test_random(random, 5)) {
        case 0:
            data[at] ^= (uint8_t)(1u << al_test_random(random, 8));
            break;
        case 1: /* the head of a page, and its first nodes' offsets */
            data[page + al_test_random(random, 64)] = (uint8_t)al_test_random(random, 256);
            break;
        case 2: /* the end of a page, where the first nodes are */
            data[page + 4095 - al_test_random(random, 200)] = (uint8_t)al_test_random(random, 256);
            break;
        case 3:
            memset(data + page, 0, 4096);
            break;
        default:
            memcpy(data + page,
                   data + (size_t)al_test_random(random, (uint32_t)(len / 4096)) * 4096, 4096);
        }
    }
}

static void test_records__any_damage_is_harmless(void **state)
{
    (void)state;
    char dir[128];
    uint64_t random = 77;
    unsigned kept = 0;
    al_auto_free uint8_t *data = malloc(good.len);
    assert_non_null(data);
    for (int i = 0; i < MUTATIONS; i++) {
        const char *why = "";
        struct al_records_stats stats;
        memcpy(data, good.data, good.len);
        damage(data, good.len, &random);
        if (al_map_check(data, good.len, &why) < 0) {
            assert_true(why[0] != '\0');
            continue;
        }
        al_test_dir_make(dir);
        write_image(dir, data, good.len);
        struct al_records *records = al_test_records_open(dir, &al_test_limits);
        use(records);
        for (uint64_t id = 1; id <= 40; id++) {
            put_one(records, 10 * id);
        }
        use(records);
        al_records_stats(records, &stats);
        al_records_close(records);
        records = al_test_records_open(dir, &al_test_limits);
        use(records);
        al_records_close(records);
        al_test_dir_remove(dir);
        kept++;
    }
    assert_true(kept > 20 && kept < MUTATIONS);
}

static void test_records__a_corrupt_one_is_skipped_and_counted(void **state)
{
    (void)state;
    static struct al_test_seen seen[2 * JOBS];
    char dir[128];
    struct al_records_stats stats;
    uint8_t *data = malloc(good.len);
    assert_non_null(data);
    memcpy(data, good.data, good.len);
    for (size_t i = 0; i + 4 < good.len; i++) {
        if (memcmp(data + i, "\x03v77", 4) == 0) { /* its length, and the text */
            data[i + 3] = '8';
        }
    }
    al_test_dir_make(dir);
    write_image(dir, data, good.len);
    free(data);
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    assert_int_equal(al_test_get(records, "t", 77, &seen[0]), -ENOENT);
    assert_int_equal(al_test_list(records, "t", 0, 100, seen, 2 * JOBS), JOBS - 1);
    al_records_stats(records, &stats);
    assert_int_equal(stats.corrupt, 2);
    assert_string_equal(stats.set_aside, "");
    put_one(records, 77);
    assert_int_equal(al_test_list(records, "t", 0, 100, seen, 2 * JOBS), JOBS);
    al_test_settle(records);
    assert_int_equal(al_test_list(records, "t", 0, 100, seen, 2 * JOBS), JOBS);
    al_records_close(records);
    al_test_dir_remove(dir);
}

/* All but the head is wiped while it is open. */
static void test_records__begin_anew_when_the_file_breaks_in_use(void **state)
{
    (void)state;
    char dir[128];
    char path[256];
    struct al_records_stats stats;
    struct al_test_seen seen;
    al_test_dir_make(dir);
    write_image(dir, good.data, good.len);
    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    uint8_t *zeros = calloc(1, good.len);
    assert_non_null(zeros);
    path_of(dir, "data.mdb", path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, zeros, good.len - 8192, 8192), good.len - 8192);
    close(fd);
    free(zeros);
    assert_int_equal(al_test_get(records, "t", 1, &seen), -EIO);
    put_one(records, 1);
    assert_int_equal(al_test_get(records, "t", 1, &seen), 0);
    al_test_settle(records);
    al_records_stats(records, &stats);
    assert_true(stats.working);
    assert_int_equal(stats.count, 1);
    assert_int_equal(stats.dropped, 0);
    assert_int_equal(strncmp(stats.set_aside, "data.mdb.2", 10), 0);
    assert_int_equal(al_test_get(records, "t", 1, &seen), 0);
    al_records_close(records);
    al_test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open__takes_what_is_whole),
        cmocka_unit_test(test_open__an_empty_file_is_a_new_one),
        cmocka_unit_test(test_open__sets_a_truncated_file_aside),
        cmocka_unit_test(test_open__sets_garbage_aside),
        cmocka_unit_test(test_open__sets_another_format_aside),
        cmocka_unit_test(test_records__any_damage_is_harmless),
        cmocka_unit_test(test_records__a_corrupt_one_is_skipped_and_counted),
        cmocka_unit_test(test_records__begin_anew_when_the_file_breaks_in_use),
    };
    return cmocka_run_group_tests(tests, make_good, free_good);
}
