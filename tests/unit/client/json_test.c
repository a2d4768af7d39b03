#include "client/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/airlock/v1/execution.pb-c.h"
#include "tests/unit/client/every_type.pb-c.h"

typedef Airlock__Testing__EveryType Message;

struct row {
    const char *name;
    void (*fill)(Message *message);
    const char *json; /* NULL: cannot be shown */
};

static ProtobufCBinaryData bytes_of(const char *text, size_t len)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)text, .len = len};
}

static void fill_nothing(Message *m)
{
    (void)m;
}

static void fill_int32(Message *m)
{
    m->an_int32 = INT32_MIN;
    m->a_sint32 = -1;
    m->a_sfixed32 = INT32_MAX;
}

static void fill_uint32(Message *m)
{
    m->a_uint32 = UINT32_MAX;
    m->a_fixed32 = 1;
}

static void fill_int64(Message *m)
{
    m->an_int64 = INT64_MIN;
    m->a_uint64 = UINT64_MAX;
    m->a_fixed64 = 1;
}

static void fill_double(Message *m)
{
    m->a_double = 0.1;
}

static void fill_long_double_fraction(Message *m)
{
    m->a_double = 0.1 + 0.2;
}

static void fill_negative_zero(Message *m)
{
    m->a_double = -0.0;
}

static void fill_nan(Message *m)
{
    m->a_double = NAN;
}

static void fill_infinity(Message *m)
{
    m->a_double = INFINITY;
    m->a_float = -INFINITY;
}

static void fill_bool(Message *m)
{
    m->a_bool = 1;
}

static void fill_enum(Message *m)
{
    m->a_colour = AIRLOCK__TESTING__COLOUR__COLOUR_RED;
}

static void fill_unknown_enum(Message *m)
{
    m->a_colour = (Airlock__Testing__Colour)77;
}

static void fill_string(Message *m)
{
    m->a_string = "あ \"\n\033";
}

static void fill_invalid_string(Message *m)
{
    m->a_string = "\xff";
}

static void fill_bytes_0(Message *m)
{
    m->some_bytes = bytes_of("", 0);
}

static void fill_bytes_1(Message *m)
{
    m->some_bytes = bytes_of("\xff", 1);
}

static void fill_bytes_2(Message *m)
{
    m->some_bytes = bytes_of("\0\xfe", 2);
}

static void fill_bytes_3(Message *m)
{
    m->some_bytes = bytes_of("\xfb\xef\xff", 3);
}

static Airlock__Testing__EveryType__Inner inner_0 = AIRLOCK__TESTING__EVERY_TYPE__INNER__INIT;
static Airlock__Testing__EveryType__Inner inner_7 = AIRLOCK__TESTING__EVERY_TYPE__INNER__INIT;

static void fill_empty_message(Message *m)
{
    m->an_inner = &inner_0;
}

static void fill_message(Message *m)
{
    m->an_inner = &inner_7;
}

static Google__Protobuf__Timestamp timestamp = GOOGLE__PROTOBUF__TIMESTAMP__INIT;

static void fill_time(Message *m, int64_t seconds, int32_t nanos)
{
    timestamp.seconds = seconds;
    timestamp.nanos = nanos;
    m->a_time = &timestamp;
}

static void fill_epoch(Message *m)
{
    fill_time(m, 0, 0);
}

static void fill_millis(Message *m)
{
    fill_time(m, 1795982462, 345000000);
}

static void fill_micros(Message *m)
{
    fill_time(m, -1, 1000);
}

static void fill_nanos(Message *m)
{
    fill_time(m, 253402300799, 1);
}

static void fill_first_year(Message *m)
{
    fill_time(m, -62135596800, 0);
}

static void fill_late_time(Message *m)
{
    fill_time(m, 253402300800, 0);
}

static void fill_bad_nanos(Message *m)
{
    fill_time(m, 0, 1000000000);
}

static void fill_lists(Message *m)
{
    static int64_t numbers[] = {0, -5};
    static char *strings[] = {"", "b"};
    static Airlock__Testing__EveryType__Inner *inners[] = {&inner_0, &inner_7};
    static protobuf_c_boolean bools[] = {0, 1};
    static ProtobufCBinaryData bytes[] = {{.data = (uint8_t *)"a", .len = 1}, {0}};
    m->many_int64 = numbers;
    m->n_many_int64 = 2;
    m->many_strings = strings;
    m->n_many_strings = 2;
    m->many_inner = inners;
    m->n_many_inner = 2;
    m->many_bools = bools;
    m->n_many_bools = 2;
    m->many_bytes = bytes;
    m->n_many_bytes = 2;
}

static Airlock__Testing__EveryType__SomeMapEntry pair_1 =
    AIRLOCK__TESTING__EVERY_TYPE__SOME_MAP_ENTRY__INIT;
static Airlock__Testing__EveryType__SomeMapEntry pair_2 =
    AIRLOCK__TESTING__EVERY_TYPE__SOME_MAP_ENTRY__INIT;
static Airlock__Testing__EveryType__SomeMapEntry *pairs[] = {&pair_1, &pair_2};

static void fill_map(Message *m)
{
    pair_1.key = "b";
    pair_1.value = "1";
    pair_2.key = "a";
    pair_2.value = "";
    m->some_map = pairs;
    m->n_some_map = 2;
}

static void fill_duplicate_keys(Message *m)
{
    pair_1.key = pair_2.key = "k";
    pair_1.value = "first";
    pair_2.value = "last";
    m->some_map = pairs;
    m->n_some_map = 2;
}

static void fill_number_map(Message *m)
{
    static Airlock__Testing__EveryType__NumberMap2Entry full =
        AIRLOCK__TESTING__EVERY_TYPE__NUMBER_MAP2_ENTRY__INIT;
    static Airlock__Testing__EveryType__NumberMap2Entry null_value =
        AIRLOCK__TESTING__EVERY_TYPE__NUMBER_MAP2_ENTRY__INIT;
    static Airlock__Testing__EveryType__NumberMap2Entry *entries[] = {&full, &null_value};
    full.key = -3;
    full.value = &inner_7;
    m->number_map2 = entries;
    m->n_number_map2 = 2;
}

static void fill_bool_map(Message *m)
{
    static Airlock__Testing__EveryType__BoolMapEntry entry =
        AIRLOCK__TESTING__EVERY_TYPE__BOOL_MAP_ENTRY__INIT;
    static Airlock__Testing__EveryType__BoolMapEntry *entries[] = {&entry};
    entry.key = 1;
    entry.value = AIRLOCK__TESTING__COLOUR__COLOUR_RED;
    m->bool_map = entries;
    m->n_bool_map = 1;
}

static void fill_oneof_zero(Message *m)
{
    m->choice_case = AIRLOCK__TESTING__EVERY_TYPE__CHOICE_CHOSEN_NUMBER;
}

static void fill_oneof_string(Message *m)
{
    m->choice_case = AIRLOCK__TESTING__EVERY_TYPE__CHOICE_CHOSEN_STRING;
    m->chosen_string = "";
}

static void fill_oneof_message(Message *m)
{
    m->choice_case = AIRLOCK__TESTING__EVERY_TYPE__CHOICE_CHOSEN_INNER;
    m->chosen_inner = &inner_0;
}

static void fill_fake_entries(Message *m)
{
    static Airlock__Testing__EveryType__FakeEntry entry =
        AIRLOCK__TESTING__EVERY_TYPE__FAKE_ENTRY__INIT;
    static Airlock__Testing__EveryType__FakeEntry *entries[] = {&entry};
    entry.key = "k";
    m->entries = entries;
    m->n_entries = 1;
}

static const struct row rows[] = {
    {"nothing", fill_nothing, "{}"},
    {"int32", fill_int32, "{'an_int32':-2147483648,'a_sint32':-1,'a_sfixed32':2147483647}"},
    {"uint32", fill_uint32, "{'a_uint32':4294967295,'a_fixed32':1}"},
    {"64 bits are strings", fill_int64,
     "{'an_int64':'-9223372036854775808','a_uint64':'18446744073709551615','a_fixed64':'1'}"},
    {"short double", fill_double, "{'a_double':0.1}"},
    {"long double", fill_long_double_fraction, "{'a_double':0.30000000000000004}"},
    {"negative zero is not the default", fill_negative_zero, "{'a_double':-0.0}"},
    {"nan", fill_nan, "{'a_double':'NaN'}"},
    {"infinity", fill_infinity, "{'a_float':'-Infinity','a_double':'Infinity'}"},
    {"bool", fill_bool, "{'a_bool':true}"},
    {"enum", fill_enum, "{'a_colour':'COLOUR_RED'}"},
    {"unknown enum", fill_unknown_enum, "{'a_colour':77}"},
    {"string", fill_string, "{'a_string':'あ \\\"\\n\\u001B'}"},
    {"string that is not UTF-8", fill_invalid_string, NULL},
    {"no bytes", fill_bytes_0, "{}"},
    {"one byte", fill_bytes_1, "{'some_bytes':'/w=='}"},
    {"two bytes", fill_bytes_2, "{'some_bytes':'AP4='}"},
    {"three bytes", fill_bytes_3, "{'some_bytes':'++//'}"},
    {"empty message", fill_empty_message, "{'an_inner':{}}"},
    {"message", fill_message, "{'an_inner':{'number':7}}"},
    {"epoch", fill_epoch, "{'a_time':'1970-01-01T00:00:00Z'}"},
    {"milliseconds", fill_millis, "{'a_time':'2026-11-29T20:01:02.345Z'}"},
    {"microseconds before 1970", fill_micros, "{'a_time':'1969-12-31T23:59:59.000001Z'}"},
    {"nanoseconds", fill_nanos, "{'a_time':'9999-12-31T23:59:59.000000001Z'}"},
    {"first year", fill_first_year, "{'a_time':'0001-01-01T00:00:00Z'}"},
    {"time too late", fill_late_time, NULL},
    {"nanoseconds out of range", fill_bad_nanos, NULL},
    {"lists", fill_lists,
     "{'many_int64':['0','-5'],'many_strings':['','b'],'many_inner':[{},{'number':7}],"
     "'many_bools':[false,true],'many_bytes':['YQ==','']}"},
    {"map", fill_map, "{'some_map':{'b':'1','a':''}}"},
    {"map with a key twice", fill_duplicate_keys, "{'some_map':{'k':'last'}}"},
    {"map of numbers and messages", fill_number_map, "{'number_map2':{'-3':{'number':7},'0':{}}}"},
    {"map of bool and enum", fill_bool_map, "{'bool_map':{'true':'COLOUR_RED'}}"},
    {"zero in a oneof", fill_oneof_zero, "{'chosen_number':0}"},
    {"empty string in a oneof", fill_oneof_string, "{'chosen_string':''}"},
    {"message in a oneof", fill_oneof_message, "{'chosen_inner':{}}"},
    {"list that looks like a map", fill_fake_entries, "{'entries':[{'key':'k'}]}"},
};

#define ROWS (sizeof rows / sizeof *rows)

static void test_json__row(void **state)
{
    const struct row *row = *state;
    Message message = AIRLOCK__TESTING__EVERY_TYPE__INIT;
    inner_7.number = 7;
    row->fill(&message);
    json_t *json = al_json_from_message(&message.base);
    if (!row->json) {
        assert_null(json);
        return;
    }
    assert_non_null(json);
    char *text = al_json_text(json, 0);
    assert_non_null(text);
    for (char *p = text; *p; p++) {
        if (*p == '"' && (p == text || p[-1] != '\\')) {
            *p = '\'';
        }
    }
    assert_string_equal(text, row->json);
    free(text);
    json_decref(json);
}

static void test_json_text__indents(void **state)
{
    (void)state;
    Airlock__V1__KillResponse message = AIRLOCK__V1__KILL_RESPONSE__INIT;
    message.killed = 1;
    message.status = AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED;
    json_t *json = al_json_from_message(&message.base);
    char *text = al_json_text(json, 2);
    assert_string_equal(text, "{\n  \"killed\": true,\n  \"status\": \"JOB_STATUS_KILLED\"\n}");
    free(text);
    json_decref(json);
}

static void test_json__uses_the_names_of_the_proto(void **state)
{
    (void)state;
    Airlock__V1__ExecutionResult message = AIRLOCK__V1__EXECUTION_RESULT__INIT;
    message.stdout = bytes_of("hi\n", 3);
    message.exit_case = AIRLOCK__V1__EXECUTION_RESULT__EXIT_EXIT_CODE;
    json_t *json = al_json_from_message(&message.base);
    char *text = al_json_text(json, 0);
    assert_string_equal(text, "{\"stdout\":\"aGkK\",\"exit_code\":0}");
    free(text);
    json_decref(json);
}

int main(void)
{
    struct CMUnitTest tests[ROWS + 2] = {
        cmocka_unit_test(test_json_text__indents),
        cmocka_unit_test(test_json__uses_the_names_of_the_proto),
    };
    for (size_t i = 0; i < ROWS; i++) {
        tests[2 + i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_json__row, .initial_state = (void *)&rows[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
