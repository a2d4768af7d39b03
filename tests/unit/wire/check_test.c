#include "proto/wire/check.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/wire/testing.pb-c.h"

#define BYTES(literal) .bytes = (literal), .len = sizeof(literal) - 1
#define NODE           (&airlock__testing__node__descriptor)

static const struct al_wire_limits limits = {
    .message_bytes = 8 * 1024 * 1024,
    .memory_bytes = 1024 * 1024,
    .depth = 4,
    .items = 10,
    .unknown_bytes = 8,
};

struct row {
    const char *name;
    const char *bytes;
    size_t len;
    int result;
    const char *why;
};

/* Tags: field * 8 + wire type, so \x0a is `child`, \x12 `children`, \x1a `text`, \x22 `texts`. */
static const struct row rows[] = {
    {"empty", BYTES(""), 0, NULL},
    {"text", BYTES("\x1a\x02hi"), 0, NULL},
    {"text_given_twice_is_legal",
     BYTES("\x1a\x01"
           "a\x1a\x01"
           "b"),
     0, NULL},
    {"bytes_may_hold_anything", BYTES("\x2a\x03\xff\x00\x80"), 0, NULL},
    {"unknown_field", BYTES("\xa0\x06\x01"), 0, NULL},
    {"unknown_fields_up_to_the_limit", BYTES("\xa2\x06\x05xxxxx"), 0, NULL},
    {"unknown_field_of_32_bits",
     BYTES("\xa5\x06"
           "1234"),
     0, NULL},
    {"packed_numbers", BYTES("\x32\x03\x01\x80\x01"), 0, NULL},
    {"unpacked_numbers", BYTES("\x30\x01\x30\x80\x01"), 0, NULL},
    {"packed_words",
     BYTES("\x4a\x08"
           "aaaabbbb"),
     0, NULL},
    {"packed_doubles",
     BYTES("\x42\x08"
           "aaaabbbb"),
     0, NULL},
    {"packed_nothing", BYTES("\x32\x00"), 0, NULL},
    {"largest_varint", BYTES("\x58\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 0, NULL},
    {"oneof_last_wins",
     BYTES("\x62\x01"
           "a\x6a\x00"),
     0, NULL},
    {"map_entry", BYTES("\x72\x06\x0a\x01k\x12\x01v"), 0, NULL},
    {"map_entry_empty", BYTES("\x72\x00"), 0, NULL},
    {"map_entry_without_value", BYTES("\x72\x03\x0a\x01k"), 0, NULL},
    {"map_entry_twice", BYTES("\x72\x03\x0a\x01k\x72\x03\x0a\x01k"), 0, NULL},
    {"depth_at_the_limit", BYTES("\x0a\x04\x0a\x02\x0a\x00"), 0, NULL},
    {"items_at_the_limit", BYTES("\x32\x09\0\0\0\0\0\0\0\0\0"), 0, NULL},

    {"tag_truncated", BYTES("\x80"), -EBADMSG, "message: malformed tag"},
    {"tag_of_field_zero", BYTES("\x02\x00"), -EBADMSG, "message: malformed tag"},
    {"tag_over_32_bits", BYTES("\x8a\x80\x80\x80\x10\x00"), -EBADMSG, "message: malformed tag"},
    {"tag_of_six_bytes", BYTES("\x8a\x80\x80\x80\x80\x00"), -EBADMSG, "message: malformed tag"},
    {"tag_in_a_child", BYTES("\x0a\x01\x80"), -EBADMSG, "child: malformed tag"},
    {"group_start", BYTES("\x0b\x0c"), -EBADMSG, "child: groups are not supported"},
    {"group_unknown", BYTES("\xa3\x06\xa4\x06"), -EBADMSG, "message: groups are not supported"},
    {"wire_type_six", BYTES("\x1e"), -EBADMSG, "text: truncated or malformed"},
    {"wire_type_wrong", BYTES("\x18\x01"), -EBADMSG, "text: wrong wire type"},
    {"wire_type_wrong_for_number",
     BYTES("\x51"
           "12345678"
           "\x5d"
           "1234"),
     -EBADMSG, "zigzag: wrong wire type"},
    {"singular_number_packed", BYTES("\x5a\x01\x01"), -EBADMSG, "zigzag: wrong wire type"},
    {"varint_truncated", BYTES("\x58\x80"), -EBADMSG, "zigzag: truncated or malformed"},
    {"varint_of_eleven_bytes", BYTES("\x58\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), -EBADMSG,
     "zigzag: truncated or malformed"},
    {"varint_over_64_bits", BYTES("\x58\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), -EBADMSG,
     "zigzag: truncated or malformed"},
    {"fixed64_truncated",
     BYTES("\x51"
           "1234567"),
     -EBADMSG, "wide: truncated or malformed"},
    {"length_missing", BYTES("\x1a"), -EBADMSG, "text: truncated or malformed"},
    {"length_beyond_the_end", BYTES("\x1a\x03hi"), -EBADMSG, "text: truncated or malformed"},
    {"length_beyond_the_parent", BYTES("\x0a\x02\x1a\x01x"), -EBADMSG,
     "child.text: truncated or malformed"},
    {"length_huge", BYTES("\x1a\xff\xff\xff\xff\x0f"), -EBADMSG, "text: truncated or malformed"},
    {"length_over_32_bits", BYTES("\x1a\xff\xff\xff\xff\xff\x01"), -EBADMSG,
     "text: truncated or malformed"},
    {"packed_words_ragged",
     BYTES("\x4a\x05"
           "aaaab"),
     -EBADMSG, "words: malformed element"},
    {"packed_number_truncated", BYTES("\x32\x02\x01\x80"), -EBADMSG, "numbers: malformed element"},
    {"packed_bool_two", BYTES("\x3a\x02\x01\x02"), -EBADMSG, "flags: malformed element"},
    {"text_with_nul",
     BYTES("\x1a\x03"
           "a\0b"),
     -EBADMSG, "text: contains a NUL character"},
    {"text_not_utf8", BYTES("\x1a\x01\xff"), -EBADMSG, "text: not valid UTF-8"},
    {"text_cut_sequence", BYTES("\x1a\x02\xe2\x82"), -EBADMSG, "text: not valid UTF-8"},
    {"oneof_text_not_utf8", BYTES("\x62\x01\xff"), -EBADMSG, "left: not valid UTF-8"},
    {"texts_counted", BYTES("\x22\x00\x22\x00\x22\x01\xff"), -EBADMSG, "texts[2]: not valid UTF-8"},
    {"children_counted_among_others",
     BYTES("\x12\x00\x1a\x01"
           "a\x12\x00\x12\x03\x1a\x01\xff"),
     -EBADMSG, "children[2].text: not valid UTF-8"},
    {"map_key_not_utf8", BYTES("\x72\x00\x72\x03\x0a\x01\xff"), -EBADMSG,
     "labels[1].key: not valid UTF-8"},
    {"path_through_all", BYTES("\x0a\x09\x12\x00\x12\x05\x6a\x03\x22\x01\xff"), -EBADMSG,
     "child.children[1].right.texts[0]: not valid UTF-8"},
    {"message_twice", BYTES("\x0a\x00\x0a\x00"), -EBADMSG, "child: given twice"},
    {"oneof_message_twice", BYTES("\x6a\x00\x6a\x00"), -EBADMSG, "right: given twice"},

    {"depth_beyond", BYTES("\x0a\x06\x0a\x04\x0a\x02\x0a\x00"), -EMSGSIZE,
     "child.child.child.child: more than 4 messages inside each other"},
    {"items_beyond", BYTES("\x22\0\x22\0\x22\0\x22\0\x22\0\x22\0\x22\0\x22\0\x22\0\x22\0\x22\0"),
     -EMSGSIZE, "message: more than 10 fields and elements"},
    {"items_beyond_over_children",
     BYTES("\x12\x0a\x22\0\x22\0\x22\0\x22\0\x22\0"
           "\x12\x0a\x22\0\x22\0\x22\0\x22\0\x22\0"),
     -EMSGSIZE, "children[1]: more than 10 fields and elements"},
    {"packed_items_beyond", BYTES("\x32\x0a\0\0\0\0\0\0\0\0\0\0"), -EMSGSIZE,
     "numbers: more than 10 fields and elements"},
    {"unknown_bytes_beyond", BYTES("\xa2\x06\x06xxxxxx"), -EMSGSIZE,
     "message: more than 8 bytes of unknown fields"},
    {"unknown_bytes_beyond_in_sum", BYTES("\xa0\x06\x01\x0a\x06\xa0\x06\x01\xa0\x06\x01"),
     -EMSGSIZE, "child: more than 8 bytes of unknown fields"},
};

/* The bytes stand in a block of exactly their length, so that a sanitizer sees any overrun. */
static void test_row(void **state)
{
    const struct row *row = *state;
    char why[128] = "";
    uint8_t *data = malloc(row->len > 0 ? row->len : 1);
    assert_non_null(data);
    memcpy(data, row->bytes, row->len);
    int result = al_wire_check(NODE, data, row->len, &limits, why, sizeof(why));
    free(data);
    assert_string_equal(why, row->why ? row->why : "");
    assert_int_equal(result, row->result);
}

static void test_check__cuts_the_reason(void **state)
{
    (void)state;
    static const uint8_t data[] = {0x1a, 0x01, 0xff};
    for (size_t size = 1; size < 30; size++) {
        char why[30];
        memset(why, '#', sizeof(why));
        assert_int_equal(al_wire_check(NODE, data, sizeof(data), &limits, why, size), -EBADMSG);
        assert_non_null(memchr(why, '\0', size));
        assert_memory_equal(why, "text: not valid UTF-8", strlen(why));
    }
    assert_int_equal(al_wire_check(NODE, data, sizeof(data), &limits, NULL, 0), -EBADMSG);
}

static void test_check__refuses_a_large_message_unseen(void **state)
{
    (void)state;
    char why[128];
    assert_int_equal(al_wire_check(NODE, NULL, limits.message_bytes + 1, &limits, why, sizeof(why)),
                     -EMSGSIZE);
    assert_string_equal(why, "message: more than 8388608 bytes");
}

/* 740 bytes that would overflow a small stack when unpacked without a limit. */
static void test_check__refuses_hostile_nesting(void **state)
{
    (void)state;
    uint8_t data[740];
    size_t at = sizeof(data);
    while (at >= 3) {
        size_t inner = sizeof(data) - at;
        if (inner >= 0x80) {
            data[--at] = (uint8_t)(inner >> 7);
            data[--at] = (uint8_t)(inner | 0x80);
        } else {
            data[--at] = (uint8_t)inner;
        }
        data[--at] = 0x0a;
    }
    char why[128];
    assert_int_equal(al_wire_check(NODE, data + at, sizeof(data) - at, &limits, why, sizeof(why)),
                     -EMSGSIZE);
}

/* Two million elements: refused at the item limit, far from the end of the data. */
static void test_check__refuses_tiny_elements_early(void **state)
{
    (void)state;
    size_t len = (size_t)4 * 1024 * 1024;
    uint8_t *data = malloc(len);
    assert_non_null(data);
    for (size_t i = 0; i < len; i += 2) {
        data[i] = 0x22;
        data[i + 1] = 0x00;
    }
    struct timespec begin;
    struct timespec end;
    char why[128];
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int result = al_wire_check(NODE, data, len, &al_wire_request_limits, why, sizeof(why));
    clock_gettime(CLOCK_MONOTONIC, &end);
    free(data);
    assert_int_equal(result, -EMSGSIZE);
    assert_string_equal(why, "message: more than 65536 fields and elements");
    int64_t took_ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
    assert_true(took_ms < 1000);
}

int main(void)
{
    enum { COUNT = sizeof(rows) / sizeof(rows[0]) };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_check__cuts_the_reason),
        cmocka_unit_test(test_check__refuses_a_large_message_unseen),
        cmocka_unit_test(test_check__refuses_hostile_nesting),
        cmocka_unit_test(test_check__refuses_tiny_elements_early),
    };
    struct CMUnitTest tests[COUNT + sizeof(others) / sizeof(others[0])];
    for (size_t i = 0; i < COUNT; i++) {
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name,
            .test_func = test_row,
            .initial_state = (void *)&rows[i],
        };
    }
    memcpy(&tests[COUNT], others, sizeof(others));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
