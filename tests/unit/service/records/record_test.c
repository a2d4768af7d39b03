#include "service/records/record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/api/result.h"

static const uint8_t secret[AL_RECORD_SECRET_LEN] = {1, 2, 3};
static const struct al_record_at some_at = {.created_ns = 1700000000123456789, .id = 0xabcdef};

static struct al_record make_record(const char *tenant, const char *job)
{
    return (struct al_record){
        .at = some_at,
        .status = AL_STATUS_TIMEOUT,
        .tenant = tenant,
        .tenant_len = strlen(tenant),
        .job = (const uint8_t *)job,
        .job_len = strlen(job),
    };
}

static void test_record__comes_back_as_it_was(void **state)
{
    (void)state;
    static const char *const jobs[] = {"", "1", "1234567", "12345678", "some job of 20 bytes"};
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        uint8_t bytes[128];
        struct al_record record = make_record("tenant", jobs[i]);
        struct al_record back;
        size_t len = al_record_encoded_len(&record);
        al_record_encode(&record, bytes);
        assert_int_equal(al_record_decode(&some_at, bytes, len, &back), 0);
        assert_int_equal(back.status, AL_STATUS_TIMEOUT);
        assert_int_equal(back.tenant_len, 6);
        assert_memory_equal(back.tenant, "tenant", 6);
        assert_int_equal(back.job_len, strlen(jobs[i]));
        assert_memory_equal(back.job, jobs[i], back.job_len);
    }
}

static void test_record__every_changed_bit_shows(void **state)
{
    (void)state;
    uint8_t bytes[64];
    struct al_record record = make_record("t", "a job of some length");
    struct al_record back;
    size_t len = al_record_encoded_len(&record);
    al_record_encode(&record, bytes);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(al_record_decode(&some_at, bytes, len, &back), -EBADMSG);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++) {
        assert_int_equal(al_record_decode(&some_at, bytes, cut, &back), -EBADMSG);
    }
    struct al_record_at other = some_at;
    other.id ^= 1;
    assert_int_equal(al_record_decode(&other, bytes, len, &back), -EBADMSG);
}

static void test_record__ids(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "0", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeF", "0123456789abcdeg"};
    uint64_t id;
    assert_int_equal(al_record_parse_id("0123456789abcdef", &id), 0);
    assert_true(id == 0x0123456789abcdef);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(al_record_parse_id(wrong[i], &id), -EINVAL);
    }
}

static void test_record__keys_are_in_the_order_of_lists(void **state)
{
    (void)state;
    static const struct al_record_at ats[] = {{1, 5},   {2, 0},   {2, 1},
                                              {255, 9}, {256, 1}, {UINT64_MAX, 0}};
    uint8_t a[AL_RECORD_INDEX_MAX];
    uint8_t b[AL_RECORD_INDEX_MAX];
    for (size_t i = 0; i + 1 < sizeof ats / sizeof ats[0]; i++) {
        size_t len = al_record_encode_index(3, "ten", 3, &ats[i], a);
        assert_int_equal(al_record_encode_index(3, "ten", 3, &ats[i + 1], b), len);
        assert_true(memcmp(a, b, len) < 0);
        assert_true(al_record_compare(&ats[i], &ats[i + 1]) < 0);
    }
}

static void test_token__leads_back(void **state)
{
    (void)state;
    char token[AL_RECORDS_TOKEN_MAX];
    struct al_record_at at;
    assert_int_equal(al_record_make_token(secret, "t", 3, &some_at, token), 0);
    assert_int_equal(al_record_read_token(secret, "t", 3, token, &at), 0);
    assert_int_equal(al_record_compare(&at, &some_at), 0);
}

static void test_token__is_good_for_its_secret_tenant_and_status_only(void **state)
{
    (void)state;
    static const uint8_t other[AL_RECORD_SECRET_LEN] = {1, 2, 4};
    char token[AL_RECORDS_TOKEN_MAX];
    struct al_record_at at;
    assert_int_equal(al_record_make_token(secret, "t", 3, &some_at, token), 0);
    assert_int_equal(al_record_read_token(other, "t", 3, token, &at), -EINVAL);
    assert_int_equal(al_record_read_token(secret, "u", 3, token, &at), -EINVAL);
    assert_int_equal(al_record_read_token(secret, "t", 4, token, &at), -EINVAL);
}

static void test_token__no_changed_one_is_taken(void **state)
{
    (void)state;
    char token[AL_RECORDS_TOKEN_MAX + 8];
    struct al_record_at at;
    assert_int_equal(al_record_make_token(secret, "t", 0, &some_at, token), 0);
    for (size_t i = 0; i < AL_RECORDS_TOKEN_MAX - 1; i++) {
        char was = token[i];
        for (const char *c = "0aAfgz/\x80"; *c; c++) {
            token[i] = *c;
            assert_int_equal(al_record_read_token(secret, "t", 0, token, &at),
                             *c == was ? 0 : -EINVAL);
        }
        token[i] = '\0';
        assert_int_equal(al_record_read_token(secret, "t", 0, token, &at), -EINVAL);
        token[i] = was;
    }
    memcpy(token + AL_RECORDS_TOKEN_MAX - 1, "00", 3);
    assert_int_equal(al_record_read_token(secret, "t", 0, token, &at), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record__comes_back_as_it_was),
        cmocka_unit_test(test_record__every_changed_bit_shows),
        cmocka_unit_test(test_record__ids),
        cmocka_unit_test(test_record__keys_are_in_the_order_of_lists),
        cmocka_unit_test(test_token__leads_back),
        cmocka_unit_test(test_token__is_good_for_its_secret_tenant_and_status_only),
        cmocka_unit_test(test_token__no_changed_one_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
