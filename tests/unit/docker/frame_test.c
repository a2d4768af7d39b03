/* The frames between airlockd and a container's init: whole, cut anywhere, and not frames at all.
 */
#include "backends/docker/frame.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_MAX 65536

/* What a reader makes of the bytes when they come in pieces of that size, as text: "TYPE:content" a
 * frame, content that came in parts put together. The last line says how it ended. */
static void read_in_pieces(const uint8_t *data, size_t len, size_t piece, bool up, char *ret)
{
    static struct al_frame_reader r;
    char *to = ret;
    int last = 0, rc = 0;
    al_frame_reader_init(&r, up);
    for (size_t at = 0; at < len && rc >= 0;) {
        size_t end = at + piece < len ? at + piece : len;
        while (at < end && rc >= 0) {
            struct al_frame f;
            size_t used = 0;
            rc = al_frame_next(&r, data + at, end - at, &used, &f);
            assert_true(used <= end - at);
            assert_true(rc < 0 || used > 0);
            at += used;
            if (rc > 0) {
                bool content = f.type == AL_FRAME_STDOUT || f.type == AL_FRAME_STDIN;
                bool goes_on = content && last == (int)f.type;
                to += sprintf(to, goes_on ? "" : "\n%d:", (int)f.type);
                to += sprintf(to, "%.*s", (int)f.len, (const char *)f.data);
                last = content ? (int)f.type : 0;
            }
        }
    }
    sprintf(to, "\n=%d", rc < 0 ? rc : 0);
}

/* The same for each way to cut. */
static void assert_reads(const uint8_t *data, size_t len, bool up, const char *expected)
{
    static char text[TEXT_MAX];
    for (size_t piece = 1; piece <= len + 1; piece++) {
        read_in_pieces(data, len, piece, up, text);
        assert_string_equal(text, expected);
    }
}

static void test_frames__come_back(void **state)
{
    (void)state;
    struct al_buf b;
    char expected[128];
    al_buf_init(&b, 1 << 20);
    assert_int_equal(al_frame_put(&b, AL_FRAME_CONTROL, "message", 7), 0);
    assert_int_equal(al_frame_put(&b, AL_FRAME_STDOUT, "hello", 5), 0);
    assert_int_equal(al_frame_put(&b, AL_FRAME_STDIN_CLOSED, NULL, 0), 0);
    assert_int_equal(al_frame_put(&b, AL_FRAME_END, NULL, 0), 0);
    snprintf(expected, sizeof expected, "\n%d:message\n%d:hello\n%d:\n%d:\n=0", AL_FRAME_CONTROL,
             AL_FRAME_STDOUT, AL_FRAME_STDIN_CLOSED, AL_FRAME_END);
    assert_reads(b.data, b.len, true, expected);
    al_buf_finish(&b);
}

static void test_put__keeps_the_bound(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 16);
    assert_int_equal(al_frame_put(&b, AL_FRAME_STDOUT, "123456789", 9), -ENOBUFS);
    assert_int_equal(b.len, 0);
    assert_int_equal(al_frame_put(&b, AL_FRAME_STDOUT, "12345678", 8), 0);
    assert_int_equal(b.len, 16);
    al_buf_finish(&b);
}

struct bad {
    const char *name;
    bool up;
    struct al_frame_head head;
};

static const struct bad bad_heads[] = {
    {"type_0", true, {0, 0}},
    {"type_beyond_the_last", true, {AL_FRAME_TYPES, 0}},
    {"type_of_the_other_direction_up", true, {AL_FRAME_STDIN, 1}},
    {"type_of_the_other_direction_down", false, {AL_FRAME_STDOUT, 1}},
    {"kill_comes_from_above_only", true, {AL_FRAME_KILL, 0}},
    {"content_without_bytes", true, {AL_FRAME_STDOUT, 0}},
    {"content_too_long", true, {AL_FRAME_STDOUT, AL_FRAME_PIECE_MAX + 1}},
    {"whole_too_long", true, {AL_FRAME_CONTROL, 4097}},
    {"length_of_4_gib", true, {AL_FRAME_STDERR, UINT32_MAX}},
    {"credit_too_short", true, {AL_FRAME_TAKEN, 3}},
    {"end_with_bytes", true, {AL_FRAME_END, 1}},
    {"job_too_long", false, {AL_FRAME_JOB, AL_FRAME_WHOLE_MAX + 1}},
    {"item_without_a_head", false, {AL_FRAME_ITEM, sizeof(struct al_frame_item) - 1}},
};

static void test_bad_head__is_refused_before_any_of_its_bytes(void **state)
{
    const struct bad *bad = *state;
    char expected[32];
    snprintf(expected, sizeof expected, "\n=%d", -EBADMSG);
    assert_reads((const uint8_t *)&bad->head, sizeof bad->head, bad->up, expected);
}

static void test_cut_frame__is_no_frame(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 64);
    assert_int_equal(al_frame_put(&b, AL_FRAME_CONTROL, "message", 7), 0);
    assert_reads(b.data, b.len - 1, true, "\n=0");
    al_buf_finish(&b);
}

#define N_BAD (sizeof bad_heads / sizeof bad_heads[0])

int main(void)
{
    struct CMUnitTest tests[N_BAD + 3] = {
        cmocka_unit_test(test_frames__come_back),
        cmocka_unit_test(test_put__keeps_the_bound),
        cmocka_unit_test(test_cut_frame__is_no_frame),
    };
    for (size_t i = 0; i < N_BAD; i++) {
        tests[3 + i] =
            (struct CMUnitTest){.name = bad_heads[i].name,
                                .test_func = test_bad_head__is_refused_before_any_of_its_bytes,
                                .initial_state = (void *)&bad_heads[i]};
    }
    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
