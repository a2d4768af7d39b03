#include "backends/launcher/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/api/artifact.h"
#include "backends/base/io.h"

/* --- writer to reader --- */

static const struct al_file files[] = {
    {"a/b.bin", {(const uint8_t *)"\0\xff\n", 3}, 0755},
    {"empty", {NULL, 0}, 0600},
};
static const struct al_env env[] = {{"A", "1"}, {"EMPTY", ""}};
static const char *const args[] = {"", "a b"};
static const char *const globs[] = {"**/*.png"};

static const struct al_job_spec full_spec = {
    .code = {(const uint8_t *)"print(1)\0x", 10},
    .files = files,
    .n_files = 2,
    .inputs_json = "{}",
    .env = env,
    .n_env = 2,
    .args = args,
    .n_args = 2,
    .artifacts = globs,
    .n_artifacts = 1,
};

struct mapping {
    const uint8_t *data;
    size_t len;
};

static struct mapping map(int fd)
{
    ssize_t size = al_bundle_check_fd(fd);
    assert_true(size > 0);
    void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(data, MAP_FAILED);
    close(fd);
    return (struct mapping){data, (size_t)size};
}

static void assert_item(struct al_bundle_reader *r, enum al_bundle_type type, uint32_t mode,
                        const char *name, const void *data, size_t len)
{
    struct al_bundle_item item;
    assert_int_equal(al_bundle_next(r, &item), 1);
    assert_int_equal(item.type, type);
    assert_int_equal(item.mode, mode);
    assert_string_equal(item.name, name);
    assert_int_equal(item.len, len);
    assert_memory_equal(item.data, data, len);
    if (type == AL_BUNDLE_ENV || type == AL_BUNDLE_ARG || type == AL_BUNDLE_ARTIFACT) {
        assert_int_equal(item.data[len], 0);
    }
}

static void test_create__reader_finds_everything_in_order(void **state)
{
    (void)state;
    struct mapping m = map(al_bundle_create(&full_spec));
    struct al_bundle_reader r = {m.data, m.len};
    struct al_bundle_item item;
    assert_item(&r, AL_BUNDLE_CODE, 0644, "", "print(1)\0x", 10);
    assert_item(&r, AL_BUNDLE_FILE, 0755, "a/b.bin", "\0\xff\n", 3);
    assert_item(&r, AL_BUNDLE_FILE, 0600, "empty", "", 0);
    assert_item(&r, AL_BUNDLE_INPUTS, 0644, "", "{}", 2);
    assert_item(&r, AL_BUNDLE_ENV, 0, "A", "1", 1);
    assert_item(&r, AL_BUNDLE_ENV, 0, "EMPTY", "", 0);
    assert_item(&r, AL_BUNDLE_ARG, 0, "", "", 0);
    assert_item(&r, AL_BUNDLE_ARG, 0, "", "a b", 3);
    assert_item(&r, AL_BUNDLE_ARTIFACT, 0, "", "**/*.png", 8);
    assert_int_equal(al_bundle_next(&r, &item), 0);
    assert_int_equal(al_bundle_next(&r, &item), 0);
    munmap((void *)m.data, m.len);
}

static void test_create__nothing_but_no_code(void **state)
{
    (void)state;
    static const struct al_job_spec empty;
    struct mapping m = map(al_bundle_create(&empty));
    struct al_bundle_reader r = {m.data, m.len};
    struct al_bundle_item item;
    assert_item(&r, AL_BUNDLE_CODE, 0644, "", "", 0);
    assert_int_equal(al_bundle_next(&r, &item), 0);
    munmap((void *)m.data, m.len);
}

static void test_create__at_and_beyond_the_maxima(void **state)
{
    (void)state;
    struct al_job_spec spec = {.n_files = AL_FILES_MAX + 1};
    assert_int_equal(al_bundle_create(&spec), -EFBIG);
    spec = (struct al_job_spec){.n_env = AL_ENV_MAX + 1};
    assert_int_equal(al_bundle_create(&spec), -EFBIG);
    spec = (struct al_job_spec){.n_args = AL_ARGS_MAX + 1};
    assert_int_equal(al_bundle_create(&spec), -EFBIG);
    spec = (struct al_job_spec){.n_artifacts = AL_ARTIFACT_GLOBS_MAX + 1};
    assert_int_equal(al_bundle_create(&spec), -EFBIG);
    spec = (struct al_job_spec){.code = {(const uint8_t *)"x", AL_BUNDLE_BYTES_MAX}};
    assert_int_equal(al_bundle_create(&spec), -EFBIG); /* with its header it is too long */

    static const char *many[AL_ARGS_MAX];
    for (size_t i = 0; i < AL_ARGS_MAX; i++) {
        many[i] = "x";
    }
    spec = (struct al_job_spec){.args = many, .n_args = AL_ARGS_MAX};
    struct mapping m = map(al_bundle_create(&spec));
    struct al_bundle_reader r = {m.data, m.len};
    struct al_bundle_item item;
    size_t n = 0;
    while (al_bundle_next(&r, &item) == 1) {
        n++;
    }
    assert_int_equal(n, AL_ARGS_MAX + 1);
    munmap((void *)m.data, m.len);
}

/* --- which fds are bundles --- */

#define ALL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int memfd_with(const char *text, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(al_io_write_full(fd, text, strlen(text)), 0);
    assert_true(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

static void assert_refused(int fd)
{
    assert_true(fd >= 0);
    assert_true(al_bundle_check_fd(fd) < 0);
    close(fd);
}

static void test_check_fd__sealed(void **state)
{
    (void)state;
    int fd = memfd_with("x", ALL_SEALS);
    assert_int_equal(al_bundle_check_fd(fd), 1);
    close(fd);
}

static void test_check_fd__a_seal_is_missing(void **state)
{
    (void)state;
    static const int seals[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE, F_SEAL_SEAL, ALL_SEALS};
    for (size_t i = 0; i < sizeof seals / sizeof seals[0]; i++) {
        assert_refused(memfd_with("x", ALL_SEALS & ~seals[i]));
    }
    assert_refused(
        memfd_with("x", F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE));
}

static void test_check_fd__other_kinds_of_file(void **state)
{
    (void)state;
    char path[] = "/tmp/bundle-XXXXXX", shm[] = "/dev/shm/bundle-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC), tmpfs = mkostemp(shm, O_CLOEXEC);
    assert_int_equal(al_io_write_full(file, "x", 1), 0);
    assert_int_equal(al_io_write_full(tmpfs, "x", 1), 0);
    unlink(path);
    unlink(shm);
    assert_refused(file);
    assert_refused(tmpfs);
    assert_refused(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    assert_refused(open("/dev/zero", O_RDONLY | O_CLOEXEC));
    assert_refused(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    assert_true(al_bundle_check_fd(-1) < 0);
}

static void test_check_fd__size(void **state)
{
    (void)state;
    assert_refused(memfd_with("", ALL_SEALS));
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, (off_t)AL_BUNDLE_BYTES_MAX + 1), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, ALL_SEALS), 0);
    assert_refused(fd);
}

/* --- hostile bytes --- */

struct wire_header {
    uint32_t type, mode, name_len, terminated;
    uint64_t data_len;
};

struct hostile_row {
    const char *name;
    struct wire_header header;
    const char *rest; /* what follows it */
    size_t rest_len;
    int result; /* of the first next */
};

#define REST(s) (s), sizeof(s) - 1

static const struct hostile_row hostile_rows[] = {
    {"good_file", {AL_BUNDLE_FILE, 0644, 1, 0, 2}, REST("a\0xy"), 1},
    {"good_env", {AL_BUNDLE_ENV, 0, 1, 1, 1}, REST("a\0x\0"), 1},
    {"type_0", {0, 0644, 0, 0, 0}, REST("\0"), -EBADMSG},
    {"type_unknown", {AL_BUNDLE_ARTIFACT + 1, 0, 0, 0, 0}, REST("\0"), -EBADMSG},
    {"type_huge", {UINT32_MAX, 0, 0, 0, 0}, REST("\0"), -EBADMSG},
    {"name_beyond_the_end", {AL_BUNDLE_FILE, 0644, 5, 0, 0}, REST("abcd\0"), -EBADMSG},
    {"name_without_terminator", {AL_BUNDLE_FILE, 0644, 3, 0, 0}, REST("abcd"), -EBADMSG},
    {"name_up_to_the_end", {AL_BUNDLE_FILE, 0644, 4, 0, 0}, REST("abcd"), -EBADMSG},
    {"name_huge", {AL_BUNDLE_FILE, 0644, UINT32_MAX, 0, 0}, REST("a\0"), -EBADMSG},
    {"name_with_nul", {AL_BUNDLE_FILE, 0644, 3, 0, 0}, REST("a\0b\0"), -EBADMSG},
    {"no_room_for_a_name", {AL_BUNDLE_CODE, 0644, 0, 0, 0}, REST(""), -EBADMSG},
    {"data_beyond_the_end", {AL_BUNDLE_FILE, 0644, 1, 0, 3}, REST("a\0xy"), -EBADMSG},
    {"data_huge", {AL_BUNDLE_FILE, 0644, 1, 0, UINT64_MAX}, REST("a\0xy"), -EBADMSG},
    {"env_data_huge", {AL_BUNDLE_ENV, 0, 1, 1, UINT64_MAX}, REST("a\0x\0"), -EBADMSG},
    {"env_data_up_to_the_end", {AL_BUNDLE_ENV, 0, 1, 1, 2}, REST("a\0xy"), -EBADMSG},
    {"env_data_with_nul", {AL_BUNDLE_ENV, 0, 1, 1, 3}, REST("a\0x\0y\0"), -EBADMSG},
    {"env_not_terminated", {AL_BUNDLE_ENV, 0, 1, 1, 1}, REST("a\0xy"), -EBADMSG},
    {"env_flag_missing", {AL_BUNDLE_ENV, 0, 1, 0, 1}, REST("a\0x\0"), -EBADMSG},
    {"arg_flag_missing", {AL_BUNDLE_ARG, 0, 0, 0, 1}, REST("\0x\0"), -EBADMSG},
    {"artifact_flag_missing", {AL_BUNDLE_ARTIFACT, 0, 0, 0, 1}, REST("\0x\0"), -EBADMSG},
    {"file_flag_set", {AL_BUNDLE_FILE, 0644, 1, 1, 1}, REST("a\0x\0"), -EBADMSG},
    {"flag_other_than_1", {AL_BUNDLE_ARG, 0, 0, 2, 1}, REST("\0x\0"), -EBADMSG},
};

static void test_hostile(void **state)
{
    const struct hostile_row *row = *state;
    size_t len = sizeof row->header + row->rest_len;
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    memcpy(bytes, &row->header, sizeof row->header);
    memcpy(bytes + sizeof row->header, row->rest, row->rest_len);
    struct al_bundle_reader r = {bytes, len};
    struct al_bundle_item item;
    assert_int_equal(al_bundle_next(&r, &item), row->result);
    free(bytes);
}

static void test_next__mode_is_permission_bits_only(void **state)
{
    (void)state;
    const struct {
        struct wire_header header;
        char name;
    } bytes = {{AL_BUNDLE_CODE, 0xffffffff, 0, 0, 0}, '\0'};
    struct al_bundle_reader r = {(const uint8_t *)&bytes, sizeof bytes.header + 1};
    struct al_bundle_item item;
    assert_int_equal(al_bundle_next(&r, &item), 1);
    assert_int_equal(item.mode, 0777);
}

/* Whatever the length: items, then an end or -EBADMSG, and never a byte beyond. */
static void test_next__cut_at_every_byte(void **state)
{
    (void)state;
    struct mapping m = map(al_bundle_create(&full_spec));
    size_t ended_well = 0;
    for (size_t len = 0; len <= m.len; len++) {
        uint8_t *exact = malloc(len > 0 ? len : 1);
        assert_non_null(exact);
        memcpy(exact, m.data, len);
        struct al_bundle_reader r = {exact, len};
        struct al_bundle_item item;
        int rc;
        while ((rc = al_bundle_next(&r, &item)) == 1) {
        }
        assert_true(rc == 0 || rc == -EBADMSG);
        ended_well += rc == 0;
        free(exact);
    }
    assert_int_equal(ended_well, 10); /* between its nine items */
    munmap((void *)m.data, m.len);
}

#define HOSTILE_ROWS (sizeof hostile_rows / sizeof hostile_rows[0])

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create__reader_finds_everything_in_order),
        cmocka_unit_test(test_create__nothing_but_no_code),
        cmocka_unit_test(test_create__at_and_beyond_the_maxima),
        cmocka_unit_test(test_check_fd__sealed),
        cmocka_unit_test(test_check_fd__a_seal_is_missing),
        cmocka_unit_test(test_check_fd__other_kinds_of_file),
        cmocka_unit_test(test_check_fd__size),
        cmocka_unit_test(test_next__mode_is_permission_bits_only),
        cmocka_unit_test(test_next__cut_at_every_byte),
    };
    static struct CMUnitTest table[HOSTILE_ROWS];
    for (size_t i = 0; i < HOSTILE_ROWS; i++) {
        table[i] = (struct CMUnitTest){.name = hostile_rows[i].name,
                                       .test_func = test_hostile,
                                       .initial_state = (void *)&hostile_rows[i]};
    }
    int failed = cmocka_run_group_tests_name("bundle", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("bundle rows", table, NULL, NULL);
}
