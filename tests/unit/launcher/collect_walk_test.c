#include "backends/launcher/collect_walk.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    char path[256];
    int dir;
    struct al_found found;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const char *base = getenv("TEST_TMPDIR");
    assert_non_null(f);
    snprintf(f->path, sizeof f->path, "%s/walk.XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(f->path));
    f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->dir >= 0);
    *state = f;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    al_found_finish(&f->found);
    close(f->dir);
    int rc = nftw(f->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    return rc;
}

static void put(const struct fixture *f, const char *path)
{
    char at[AL_ARTIFACT_PATH_MAX * 2];
    snprintf(at, sizeof at, "%s", path);
    for (char *slash = at; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdirat(f->dir, at, 0755);
    }
    int fd = openat(f->dir, at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
}

static void walk(struct fixture *f, const char *text)
{
    struct al_glob glob;
    assert_int_equal(al_glob_parse(text, &glob), 0);
    assert_int_equal(lseek(f->dir, 0, SEEK_SET), 0);
    al_found_finish(&f->found);
    assert_int_equal(al_collect_walk(f->dir, &glob, 1, &f->found), 0);
}

static void test_walk__sorts_by_the_whole_path(void **state)
{
    struct fixture *f = *state;
    static const char *const sorted[] = {"a-b", "a.b", "a/c", "a/c.d", "a0", "b/a/a"};
    for (size_t i = 6; i > 0; i--) {
        put(f, sorted[i - 1]);
    }
    walk(f, "**");
    assert_int_equal(f->found.n, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(f->found.paths[i], sorted[i]);
    }
    assert_int_equal(f->found.omitted, 0);
}

/* Whatever the order in which a folder lists them. */
static void test_walk__keeps_the_first_of_many(void **state)
{
    struct fixture *f = *state;
    char name[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "%03d", i * 7 % 1000);
        put(f, name);
    }
    walk(f, "*");
    assert_int_equal(f->found.n, AL_ARTIFACTS_MAX);
    assert_int_equal(f->found.omitted, 1000 - AL_ARTIFACTS_MAX);
    for (int i = 0; i < AL_ARTIFACTS_MAX; i++) {
        snprintf(name, sizeof name, "%03d", i);
        assert_string_equal(f->found.paths[i], name);
    }
}

static void test_walk__stops_at_the_depth(void **state)
{
    struct fixture *f = *state;
    char path[4 * AL_ARTIFACT_DEPTH_MAX] = "";
    for (int i = 0; i < AL_ARTIFACT_DEPTH_MAX; i++) {
        strcat(path, "d/");
    }
    strcat(path, "x");
    put(f, path);
    walk(f, "**/x");
    assert_int_equal(f->found.n, 1);
    assert_string_equal(f->found.paths[0], path);
    assert_int_equal(f->found.omitted, 0);
    strcpy(path + 2 * AL_ARTIFACT_DEPTH_MAX, "d/x");
    put(f, path);
    walk(f, "**/x");
    assert_int_equal(f->found.n, 1);
    assert_int_equal(f->found.omitted, 1);
}

static void test_walk__stops_at_the_length_of_a_path(void **state)
{
    struct fixture *f = *state;
    char path[AL_ARTIFACT_PATH_MAX + 2];
    memset(path, 'p', sizeof path);
    for (size_t i = 200; i < 1000; i += 200) {
        path[i] = '/';
    }
    path[AL_ARTIFACT_PATH_MAX - 1] = '\0';
    put(f, path);
    walk(f, "**");
    assert_int_equal(f->found.n, 1);
    assert_string_equal(f->found.paths[0], path);
    strcpy(path + AL_ARTIFACT_PATH_MAX - 1, "p");
    put(f, path);
    walk(f, "**");
    assert_int_equal(f->found.n, 1);
    assert_int_equal(f->found.omitted, 1);
}

static void test_open__follows_no_link(void **state)
{
    struct fixture *f = *state;
    put(f, "d/x");
    assert_int_equal(symlinkat("d", f->dir, "l"), 0);
    assert_int_equal(symlinkat("d/x", f->dir, "m"), 0);
    assert_int_equal(al_collect_open(f->dir, "l/x", O_RDONLY), -1);
    assert_int_equal(al_collect_open(f->dir, "m", O_RDONLY), -1);
    assert_int_equal(al_collect_open(f->dir, "../x", O_RDONLY), -1);
    assert_int_equal(al_collect_open(f->dir, "/etc/passwd", O_RDONLY), -1);
    int fd = al_collect_open(f->dir, "d/x", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(fd);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_walk__sorts_by_the_whole_path), TEST(test_walk__keeps_the_first_of_many),
        TEST(test_walk__stops_at_the_depth),      TEST(test_walk__stops_at_the_length_of_a_path),
        TEST(test_open__follows_no_link),
    };
    return cmocka_run_group_tests_name("collect_walk", tests, NULL, NULL);
}
