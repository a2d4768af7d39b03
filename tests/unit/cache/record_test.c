#include "cache/record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t key[AL_CACHE_RECORD_KEY_LEN] = "the key of these tests .........";

struct subject {
    struct al_result result;
    uint8_t data[1024];
    size_t len;
};

static void add_artifact(struct al_result *result, const char *path, const char *data, size_t len,
                         uint32_t mode)
{
    struct al_artifact a = {.path = strdup(path), .len = len, .mode = mode};
    assert_non_null(a.path);
    if (len > 0) {
        a.data = malloc(len);
        assert_non_null(a.data);
        memcpy(a.data, data, len);
    }
    assert_int_equal(al_artifacts_add(&result->artifacts, a), 0);
}

static void make(struct subject *s)
{
    al_result_init(&s->result);
    s->result.status = AL_STATUS_SUCCEEDED;
    s->result.reason = AL_REASON_EXIT;
    s->result.limit_hit = AL_LIMIT_NONE;
    s->result.exit_kind = AL_EXIT_CODE;
    s->result.exit_value = -7;
    s->result.duration_us = 123456789012;
    s->result.cpu_us = 987654;
    s->result.memory_peak_bytes = UINT64_C(5) << 32;
    s->result.pids_peak = 3;
    s->result.isolation = 0xffff;
    s->result.stderr_truncated = true;
    s->result.compile.present = true;
    s->result.compile.exit_code = 1;
    s->result.compile.duration_us = 42;
    assert_int_equal(al_buf_append(&s->result.compile.output, "warning\0", 8), 0);
    memcpy(s->result.error, "nothing to say", sizeof "nothing to say");
    add_artifact(&s->result, "a/b.png", "\0png", 4, 0640);
    add_artifact(&s->result, "empty", "", 0, 0755);
    const struct al_bytes out[2] = {{(const uint8_t *)"out\0\xff", 5}, {0}};
    s->len = al_cache_record_size(&s->result, out);
    assert_in_range(s->len, 100, sizeof s->data);
    assert_int_equal(al_cache_record_encode(key, &s->result, out, 1234567890123, s->data), 0);
}

static void finish(struct subject *s)
{
    al_result_finish(&s->result);
}

static void test_decode__gives_back_what_was_encoded(void **state)
{
    (void)state;
    struct subject s;
    struct al_cache_record r;
    make(&s);
    assert_int_equal(al_cache_record_decode(key, s.data, s.len, &r), 0);
    assert_int_equal(r.stored_wall_ns, 1234567890123);
    assert_int_equal(r.result.status, AL_STATUS_SUCCEEDED);
    assert_int_equal(r.result.reason, AL_REASON_EXIT);
    assert_int_equal(r.result.exit_kind, AL_EXIT_CODE);
    assert_int_equal(r.result.exit_value, -7);
    assert_int_equal(r.result.duration_us, 123456789012);
    assert_int_equal(r.result.cpu_us, 987654);
    assert_int_equal(r.result.memory_peak_bytes, UINT64_C(5) << 32);
    assert_int_equal(r.result.pids_peak, 3);
    assert_int_equal(r.result.isolation, 0xffff);
    assert_false(r.result.stdout_truncated);
    assert_true(r.result.stderr_truncated);
    assert_true(r.result.compile.present);
    assert_int_equal(r.result.compile.exit_code, 1);
    assert_int_equal(r.result.compile.duration_us, 42);
    assert_int_equal(r.result.compile.output.len, 8);
    assert_memory_equal(r.result.compile.output.data, "warning\0", 8);
    assert_string_equal(r.result.error, "nothing to say");
    assert_int_equal(r.out[0].len, 5);
    assert_memory_equal(r.out[0].data, "out\0\xff", 5);
    assert_int_equal(r.out[1].len, 0);
    assert_int_equal(r.result.artifacts.n, 2);
    assert_int_equal(r.result.artifacts.omitted, 0);
    assert_string_equal(r.result.artifacts.items[0].path, "a/b.png");
    assert_int_equal(r.result.artifacts.items[0].len, 4);
    assert_memory_equal(r.result.artifacts.items[0].data, "\0png", 4);
    assert_int_equal(r.result.artifacts.items[0].mode, 0640);
    assert_string_equal(r.result.artifacts.items[1].path, "empty");
    assert_int_equal(r.result.artifacts.items[1].len, 0);
    assert_int_equal(r.result.artifacts.items[1].mode, 0755);
    al_result_finish(&r.result);
    finish(&s);
}

static void test_decode__refuses_any_changed_bit(void **state)
{
    (void)state;
    struct subject s;
    struct al_cache_record r;
    make(&s);
    for (size_t bit = 0; bit < s.len * 8; bit++) {
        s.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(al_cache_record_decode(key, s.data, s.len, &r), -EBADMSG);
        s.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    finish(&s);
}

static void test_decode__refuses_any_other_length(void **state)
{
    (void)state;
    struct subject s;
    struct al_cache_record r;
    make(&s);
    for (size_t len = 0; len < s.len; len++) {
        assert_int_equal(al_cache_record_decode(key, s.data, len, &r), -EBADMSG);
    }
    s.data[s.len] = 0;
    assert_int_equal(al_cache_record_decode(key, s.data, s.len + 1, &r), -EBADMSG);
    finish(&s);
}

static void test_decode__refuses_another_key(void **state)
{
    (void)state;
    struct subject s;
    struct al_cache_record r;
    uint8_t other[AL_CACHE_RECORD_KEY_LEN];
    make(&s);
    memcpy(other, key, sizeof other);
    other[31] ^= 1;
    assert_int_equal(al_cache_record_decode(other, s.data, s.len, &r), -EBADMSG);
    finish(&s);
}

static void test_decode__refuses_what_is_sealed_but_no_record(void **state)
{
    (void)state;
    static const size_t fields[] = {24 + 8 * 5, 24 + 8 * 8 + 21}; /* a length, the reason */
    struct subject s;
    struct al_cache_record r;
    make(&s);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        s.data[fields[i]] ^= 0x80;
        assert_true(al_cache_record_seal(key, s.data, s.len));
        assert_int_equal(al_cache_record_decode(key, s.data, s.len, &r), -EBADMSG);
        s.data[fields[i]] ^= 0x80;
    }
    finish(&s);
}

static void test_decode__refuses_artifacts_that_cannot_be(void **state)
{
    (void)state;
    struct subject s;
    struct al_cache_record r;
    make(&s);
    const size_t second = s.len - 5 - 16; /* "empty", and its head before it */
    const size_t first = second - 4 - 7 - 16;
    const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        {first, 0},          /* a content of no bytes: the next head begins too early */
        {first + 7, 0xff},   /* one of more than there are */
        {first + 9, 0x02},   /* set-user-id in the mode */
        {first + 12, 0},     /* no path */
        {first + 15, 0xff},  /* a path of more than there is */
        {first + 16, '/'},   /* an absolute one */
        {first + 18, 0},     /* with a NUL */
        {second + 16, 0xff}, /* not UTF-8 */
        {second, 1},         /* a content behind the end */
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        uint8_t before = s.data[changes[i].at];
        s.data[changes[i].at] = changes[i].value;
        assert_true(al_cache_record_seal(key, s.data, s.len));
        assert_int_equal(al_cache_record_decode(key, s.data, s.len, &r), -EBADMSG);
        s.data[changes[i].at] = before;
    }
    finish(&s);
}

static void test_peek__tells_the_time_of_our_version_only(void **state)
{
    (void)state;
    struct subject s;
    int64_t stored = 0;
    make(&s);
    assert_true(al_cache_record_peek(s.data, s.len, &stored));
    assert_int_equal(stored, 1234567890123);
    assert_false(al_cache_record_peek(s.data, 20, &stored));
    s.data[4]++;
    assert_false(al_cache_record_peek(s.data, s.len, &stored));
    finish(&s);
}

static void test_size__has_a_bound(void **state)
{
    (void)state;
    struct al_result result;
    const struct al_bytes out[2] = {{NULL, AL_CACHE_RECORD_BYTES_MAX}, {NULL, SIZE_MAX}};
    const struct al_bytes half[2] = {{NULL, AL_CACHE_RECORD_BYTES_MAX}, {NULL, 0}};
    al_result_init(&result);
    assert_int_equal(al_cache_record_size(&result, out), 0);
    assert_int_equal(al_cache_record_size(&result, half), 0);
    al_result_finish(&result);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode__gives_back_what_was_encoded),
        cmocka_unit_test(test_decode__refuses_any_changed_bit),
        cmocka_unit_test(test_decode__refuses_any_other_length),
        cmocka_unit_test(test_decode__refuses_another_key),
        cmocka_unit_test(test_decode__refuses_what_is_sealed_but_no_record),
        cmocka_unit_test(test_decode__refuses_artifacts_that_cannot_be),
        cmocka_unit_test(test_peek__tells_the_time_of_our_version_only),
        cmocka_unit_test(test_size__has_a_bound),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
