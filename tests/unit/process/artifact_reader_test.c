#include "backends/process/artifact_reader.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES_MAX  100
#define FRAMES_MAX 4

struct frame {
    struct al_artifact_frame head;
    const char *path; /* its bytes, as many as the head says */
    const char *content;
};

#define FILE_OF(p, c)                                                         \
    {                                                                         \
        {AL_ARTIFACT_FRAME_FILE, 0644, sizeof(p) - 1, 0, sizeof(c) - 1}, p, c \
    }
#define CUT(p, c)                                                             \
    {                                                                         \
        {AL_ARTIFACT_FRAME_FILE, 0644, sizeof(p) - 1, 1, sizeof(c) - 1}, p, c \
    }
#define HEAD(...)             \
    {                         \
        {__VA_ARGS__}, "", "" \
    }
#define END(n) HEAD(AL_ARTIFACT_FRAME_END, 0, 0, 0, n)
#define B100                                                                                      \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890" \
    "123456789"

struct row {
    const char *name;
    struct frame frames[FRAMES_MAX]; /* a type of 0 ends them */
    size_t cut;                      /* bytes left out at the end */
    int result;
    size_t n; /* what counts */
    uint32_t omitted;
};

static const struct row rows[] = {
    {"none", {END(0)}, 0, 0, 0, 0},
    {"one", {FILE_OF("a", "x"), END(0)}, 0, 0, 1, 0},
    {"some_omitted", {FILE_OF("a", "x"), END(7)}, 0, 0, 1, 7},
    {"sorted", {FILE_OF("a-", ""), FILE_OF("a/b", "1"), FILE_OF("b", ""), END(0)}, 0, 0, 3, 0},
    {"all_bytes", {FILE_OF("a", B100), FILE_OF("b", ""), END(0)}, 0, 0, 2, 0},
    {"cut_file", {CUT("a", B100), END(3)}, 0, 0, 1, 3},
    {"nothing_came", {{{0}, NULL, NULL}}, 0, 0, 0, 1},
    {"no_end", {FILE_OF("a", "x")}, 0, 0, 1, 1},
    {"ends_in_a_content", {FILE_OF("a", "x"), FILE_OF("b", "xy")}, 1, 0, 1, 1},
    {"ends_in_a_path", {FILE_OF("a", "x"), FILE_OF("bcd", "")}, 1, 0, 1, 1},
    {"ends_in_a_head", {FILE_OF("a", "x"), END(0)}, 1, 0, 1, 1},
    {"behind_the_end", {FILE_OF("a", "x"), END(0), FILE_OF("b", "x")}, 0, -EBADMSG, 1, 1},
    {"two_ends", {END(0), END(0)}, 0, -EBADMSG, 0, 1},
    {"twice", {FILE_OF("a", "x"), FILE_OF("a", "x"), END(0)}, 0, -EBADMSG, 1, 1},
    {"not_sorted", {FILE_OF("b", ""), FILE_OF("a", ""), END(0)}, 0, -EBADMSG, 1, 1},
    {"too_many_bytes", {FILE_OF("a", B100), FILE_OF("b", "x"), END(0)}, 0, -EBADMSG, 1, 1},
    {"huge", {HEAD(AL_ARTIFACT_FRAME_FILE, 0644, 1, 0, UINT64_MAX)}, 0, -EBADMSG, 0, 1},
    {"type_unknown", {HEAD(3, 0644, 1, 0, 0)}, 0, -EBADMSG, 0, 1},
    {"mode_special", {HEAD(AL_ARTIFACT_FRAME_FILE, 04755, 1, 0, 0)}, 0, -EBADMSG, 0, 1},
    {"truncated_2", {HEAD(AL_ARTIFACT_FRAME_FILE, 0644, 1, 2, 0)}, 0, -EBADMSG, 0, 1},
    {"no_path", {HEAD(AL_ARTIFACT_FRAME_FILE, 0644, 0, 0, 0)}, 0, -EBADMSG, 0, 1},
    {"path_too_long",
     {HEAD(AL_ARTIFACT_FRAME_FILE, 0644, AL_ARTIFACT_PATH_MAX, 0, 0)},
     0,
     -EBADMSG,
     0,
     1},
    {"path_huge", {HEAD(AL_ARTIFACT_FRAME_FILE, 0644, UINT32_MAX, 0, 0)}, 0, -EBADMSG, 0, 1},
    {"path_absolute", {FILE_OF("/a", ""), END(0)}, 0, -EBADMSG, 0, 1},
    {"path_upwards", {FILE_OF("a/../b", ""), END(0)}, 0, -EBADMSG, 0, 1},
    {"path_dot", {FILE_OF("./a", ""), END(0)}, 0, -EBADMSG, 0, 1},
    {"path_empty_component", {FILE_OF("a//b", ""), END(0)}, 0, -EBADMSG, 0, 1},
    {"path_ends_in_slash", {FILE_OF("a/", ""), END(0)}, 0, -EBADMSG, 0, 1},
    {"path_nul", {FILE_OF("a\0b", ""), END(0)}, 0, -EBADMSG, 0, 1},
    {"path_newline", {FILE_OF("a\nb", ""), END(0)}, 0, -EBADMSG, 0, 1},
    {"path_not_utf8", {FILE_OF("a\xff", ""), END(0)}, 0, -EBADMSG, 0, 1},
    {"end_with_a_mode", {HEAD(AL_ARTIFACT_FRAME_END, 1, 0, 0, 0)}, 0, -EBADMSG, 0, 1},
    {"end_with_a_path", {HEAD(AL_ARTIFACT_FRAME_END, 0, 1, 0, 0)}, 0, -EBADMSG, 0, 1},
    {"end_of_too_many", {HEAD(AL_ARTIFACT_FRAME_END, 0, 0, 0, UINT64_MAX)}, 0, -EBADMSG, 0, 1},
};

struct bytes {
    uint8_t data[1024];
    size_t len;
};

static void put(struct bytes *to, const void *data, size_t n)
{
    assert_true(n <= sizeof to->data - to->len);
    if (n > 0) {
        memcpy(to->data + to->len, data, n);
    }
    to->len += n;
}

static struct bytes bytes_of(const struct row *row)
{
    struct bytes bytes = {.len = 0};
    for (size_t i = 0; i < FRAMES_MAX && row->frames[i].head.type; i++) {
        const struct frame *f = &row->frames[i];
        put(&bytes, &f->head, sizeof f->head);
        if (f->path[0]) {
            put(&bytes, f->path, f->head.path_len);
            put(&bytes, f->content, f->head.len);
        }
    }
    bytes.len -= row->cut;
    return bytes;
}

static void feed_in_pieces(const struct row *row, size_t piece)
{
    const struct bytes bytes = bytes_of(row);
    struct al_artifacts artifacts = {.n = 0};
    struct al_artifact_reader r;
    int rc = 0;
    al_artifact_reader_init(&r, &artifacts, BYTES_MAX);
    for (size_t at = 0; at < bytes.len && rc == 0; at += piece) {
        size_t n = bytes.len - at < piece ? bytes.len - at : piece;
        rc = al_artifact_reader_feed(&r, bytes.data + at, n);
    }
    assert_int_equal(rc, row->result);
    if (rc < 0) {
        assert_int_equal(al_artifact_reader_feed(&r, bytes.data, 1), -EBADMSG);
    }
    al_artifact_reader_finish(&r);
    assert_int_equal(artifacts.n, row->n);
    assert_int_equal(artifacts.omitted, row->omitted);
    for (size_t i = 0; i < artifacts.n; i++) {
        const struct frame *f = &row->frames[i];
        assert_string_equal(artifacts.items[i].path, f->path);
        assert_int_equal(artifacts.items[i].mode, f->head.mode);
        assert_int_equal(artifacts.items[i].truncated, f->head.truncated);
        assert_int_equal(artifacts.items[i].len, f->head.len);
        if (f->head.len > 0) {
            assert_memory_equal(artifacts.items[i].data, f->content, f->head.len);
        }
    }
    al_artifacts_finish(&artifacts);
}

static void test_row(void **state)
{
    feed_in_pieces(*state, SIZE_MAX / 2);
    feed_in_pieces(*state, 1);
    feed_in_pieces(*state, 25);
}

static void test_feed__bounds_the_number(void **state)
{
    (void)state;
    struct al_artifacts artifacts = {.n = 0};
    struct al_artifact_reader r;
    int rc = 0;
    size_t sent = 0;
    al_artifact_reader_init(&r, &artifacts, BYTES_MAX);
    for (; rc == 0; sent++) {
        char path[8];
        snprintf(path, sizeof path, "%04zu", sent);
        const struct al_artifact_frame head = {AL_ARTIFACT_FRAME_FILE, 0644, 4, 0, 0};
        rc = al_artifact_reader_feed(&r, (const uint8_t *)&head, sizeof head);
        rc = rc < 0 ? rc : al_artifact_reader_feed(&r, (const uint8_t *)path, 4);
    }
    assert_int_equal(sent, AL_ARTIFACTS_MAX + 1);
    assert_int_equal(artifacts.n, AL_ARTIFACTS_MAX);
    al_artifact_reader_finish(&r);
    al_artifacts_finish(&artifacts);
}

int main(void)
{
    static struct CMUnitTest row_tests[sizeof rows / sizeof rows[0]];
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feed__bounds_the_number),
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row_tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    int failed = cmocka_run_group_tests_name("streams", row_tests, NULL, NULL);
    return cmocka_run_group_tests_name("artifact_reader", tests, NULL, NULL) + failed;
}
