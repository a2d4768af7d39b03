#include "client/artifacts.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/io.h"

#define SECRET "untouched"

/* A folder with `secret` and `out`; the tests run inside it and write into `out`. */
struct fixture {
    char path[512];
    int folder;
    bool replace;
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(al_io_write_full(fd, text, strlen(text)), 0);
    close(fd);
}

static void assert_file(const char *path, const char *text)
{
    char found[64];
    ssize_t len = al_io_read_file(AT_FDCWD, path, found, sizeof found);
    assert_true(len >= 0);
    assert_string_equal(found, text);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    struct al_err err = {0};
    const char *base = getenv("TEST_TMPDIR");
    snprintf(fixture.path, sizeof fixture.path, "%s/artifacts.XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(fixture.path));
    assert_int_equal(chdir(fixture.path), 0);
    umask(022);
    write_text("secret", SECRET);
    fixture.replace = true;
    fixture.folder = al_artifacts_open_folder("out", &err);
    assert_true(fixture.folder >= 0);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    assert_file("secret", SECRET);
    close(fixture->folder);
    assert_int_equal(chdir("/"), 0);
    return nftw(fixture->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int put(const struct fixture *fixture, const char *path, uint32_t mode, struct al_err *err)
{
    Airlock__V1__Artifact artifact = AIRLOCK__V1__ARTIFACT__INIT;
    artifact.path = (char *)path;
    artifact.content.data = (uint8_t *)"new";
    artifact.content.len = 3;
    artifact.mode = mode;
    return al_artifacts_write(fixture->folder, &artifact, fixture->replace, err);
}

static void assert_refused(const struct fixture *fixture, const char *path, const char *why)
{
    struct al_err err = {0};
    assert_true(put(fixture, path, 0, &err) < 0);
    assert_non_null(strstr(err.text, path));
    if (!strstr(err.text, why)) {
        assert_string_equal(err.text, why);
    }
}

static void assert_mode(const char *path, mode_t mode)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 07777, mode);
}

static void test_artifacts__make_folders_and_keep_modes(void **state)
{
    struct al_err err = {0};
    assert_int_equal(put(*state, "a/b/c", 0755, &err), 0);
    assert_int_equal(put(*state, "plain", 0, &err), 0);
    assert_int_equal(put(*state, "setuid", 06777, &err), 0);
    assert_file("out/a/b/c", "new");
    assert_mode("out/a/b/c", 0755);
    assert_mode("out/plain", 0644);
    assert_mode("out/setuid", 0755);
}

static void test_artifacts__replace_a_file(void **state)
{
    struct al_err err = {0};
    write_text("out/a", "a longer text");
    assert_int_equal(put(*state, "a", 0, &err), 0);
    assert_file("out/a", "new");
}

static void test_artifacts__leave_a_file_if_told_so(void **state)
{
    struct fixture *fixture = *state;
    struct al_err err = {0};
    fixture->replace = false;
    write_text("out/a", "old");
    assert_refused(fixture, "a", "is there already");
    assert_file("out/a", "old");
    assert_int_equal(put(fixture, "b/c", 0, &err), 0);
    assert_file("out/b/c", "new");
    assert_refused(fixture, "b/c", "is there already");
}

static void test_artifacts__replacing_leaves_a_hard_link_alone(void **state)
{
    struct al_err err = {0};
    assert_int_equal(link("secret", "out/a"), 0);
    assert_int_equal(put(*state, "a", 0, &err), 0);
    assert_file("out/a", "new");
}

static void test_artifacts__refuse_paths_that_leave(void **state)
{
    static const char *const paths[] = {"../secret",   "a/../../secret", "..", "a/..",
                                        "a/../secret", "/secret",        "//x"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_refused(*state, paths[i], "refused: it leaves the folder");
    }
}

static void test_artifacts__refuse_a_link_in_the_place_of_a_file(void **state)
{
    assert_int_equal(symlink("../secret", "out/a"), 0);
    assert_int_equal(symlink("../new", "out/dangling"), 0);
    assert_refused(*state, "a", "a symbolic link is in its way");
    assert_refused(*state, "dangling", "a symbolic link is in its way");
    assert_int_equal(access("new", F_OK), -1);
}

static void test_artifacts__refuse_a_link_in_the_place_of_a_folder(void **state)
{
    assert_int_equal(symlink("..", "out/up"), 0);
    assert_int_equal(symlink("/", "out/root"), 0);
    assert_int_equal(mkdir("out/inside", 0700), 0);
    assert_int_equal(symlink("inside", "out/sideways"), 0);
    assert_refused(*state, "up/secret", "a symbolic link is in its way");
    assert_refused(*state, "root/tmp/x", "a symbolic link is in its way");
    assert_refused(*state, "sideways/x", "a symbolic link is in its way");
}

static void test_artifacts__refuse_what_is_not_a_file(void **state)
{
    assert_int_equal(mkfifo("out/fifo", 0600), 0);
    assert_int_equal(mkdir("out/folder", 0700), 0);
    assert_refused(*state, "fifo", "not a regular file");
    assert_refused(*state, "folder", strerror(EISDIR));
    assert_refused(*state, ".", strerror(EISDIR));
    assert_refused(*state, "secret/x/", "");
    assert_refused(*state, "", "");
}

static void test_artifacts__refuse_a_file_in_the_place_of_a_folder(void **state)
{
    write_text("out/a", "old");
    assert_refused(*state, "a/b", strerror(ENOTDIR));
    assert_file("out/a", "old");
}

static int count_temporaries;

static int count_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    count_temporaries += strncmp(path + ftw->base, ".airlock-", 9) == 0;
    return 0;
}

static void test_artifacts__leave_nothing_half_written(void **state)
{
    count_temporaries = 0;
    assert_refused(*state, "", "");
    assert_refused(*state, "a/", "");
    assert_int_equal(nftw("out", count_entry, 16, FTW_PHYS), 0);
    assert_int_equal(count_temporaries, 0);
}

static void test_artifacts_open_folder__follows_the_users_own_link(void **state)
{
    (void)state;
    struct al_err err = {0};
    assert_int_equal(symlink("out", "link"), 0);
    int fd = al_artifacts_open_folder("link", &err);
    assert_true(fd >= 0);
    close(fd);
}

static void test_artifacts_open_folder__names_what_is_wrong(void **state)
{
    (void)state;
    struct al_err err = {0};
    struct al_err missing = {0};
    assert_int_equal(al_artifacts_open_folder("secret", &err), -ENOTDIR);
    assert_non_null(strstr(err.text, "secret: "));
    assert_int_equal(al_artifacts_open_folder("no/such", &missing), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_artifacts__make_folders_and_keep_modes),
        TEST(test_artifacts__replace_a_file),
        TEST(test_artifacts__leave_a_file_if_told_so),
        TEST(test_artifacts__replacing_leaves_a_hard_link_alone),
        TEST(test_artifacts__refuse_paths_that_leave),
        TEST(test_artifacts__refuse_a_link_in_the_place_of_a_file),
        TEST(test_artifacts__refuse_a_link_in_the_place_of_a_folder),
        TEST(test_artifacts__refuse_what_is_not_a_file),
        TEST(test_artifacts__refuse_a_file_in_the_place_of_a_folder),
        TEST(test_artifacts__leave_nothing_half_written),
        TEST(test_artifacts_open_folder__follows_the_users_own_link),
        TEST(test_artifacts_open_folder__names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
