#include "proto/wire/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "proto/airlock/v1/execution.pb-c.h"

#define RUN_REQUEST (&airlock__v1__run_request__descriptor)

static const char why_untouched[] = "untouched";

/* What an unpacking left; filled with marks before. */
struct outcome {
    int result;
    struct al_arena *arena;
    ProtobufCMessage *msg;
    char why[128];
};

static struct outcome unpack_slices(grpc_slice *slices, size_t count,
                                    const struct al_wire_limits *limits)
{
    struct outcome outcome = {.why = "untouched"};
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(slices, count);
    outcome.result = al_wire_unpack(RUN_REQUEST, buffer, limits, &outcome.arena, &outcome.msg,
                                    outcome.why, sizeof(outcome.why));
    grpc_byte_buffer_destroy(buffer);
    return outcome;
}

static struct outcome unpack_bytes(const void *data, size_t len,
                                   const struct al_wire_limits *limits)
{
    struct outcome outcome = {.why = "untouched"};
    outcome.result = al_wire_unpack_bytes(RUN_REQUEST, data, len, limits, &outcome.arena,
                                          &outcome.msg, outcome.why, sizeof(outcome.why));
    return outcome;
}

static void assert_refused(const struct outcome *outcome, int error, const char *why)
{
    assert_string_equal(outcome->why, why);
    assert_int_equal(outcome->result, error);
    assert_null(outcome->arena);
    assert_null(outcome->msg);
}

static const Airlock__V1__RunRequest *assert_unpacked(const struct outcome *outcome)
{
    assert_string_equal(outcome->why, why_untouched);
    assert_int_equal(outcome->result, 0);
    assert_non_null(outcome->arena);
    assert_non_null(outcome->msg);
    assert_ptr_equal(outcome->msg->descriptor, RUN_REQUEST);
    return (const Airlock__V1__RunRequest *)outcome->msg;
}

/* A request with a bit of everything, as bytes. */
static grpc_slice make_request(void)
{
    Airlock__V1__SandboxFile file = AIRLOCK__V1__SANDBOX_FILE__INIT;
    file.path = "data/input.csv";
    file.content = (ProtobufCBinaryData){.len = 3, .data = (uint8_t *)"a\0b"};
    file.mode = 0600;
    Airlock__V1__SandboxFile *files[] = {&file};
    Airlock__V1__Quotas quotas = AIRLOCK__V1__QUOTAS__INIT;
    quotas.cpu_seconds = 1.5;
    Airlock__V1__RunRequest__EnvEntry entry = AIRLOCK__V1__RUN_REQUEST__ENV_ENTRY__INIT;
    entry.key = "LANG";
    entry.value = "C.UTF-8";
    Airlock__V1__RunRequest__EnvEntry *env[] = {&entry};
    char *args[] = {"--name", "J\xc3\xbcrgen", ""};

    Airlock__V1__RunRequest request = AIRLOCK__V1__RUN_REQUEST__INIT;
    request.code = (ProtobufCBinaryData){.len = 8, .data = (uint8_t *)"print(1)"};
    request.language = "python";
    request.files = files;
    request.n_files = 1;
    request.quotas = &quotas;
    request.env = env;
    request.n_env = 1;
    request.args = args;
    request.n_args = 3;
    request.cache_mode = AIRLOCK__V1__CACHE_MODE__CACHE_MODE_REFRESH;

    grpc_byte_buffer *buffer = al_wire_pack(&request.base);
    assert_non_null(buffer);
    assert_int_equal(buffer->data.raw.slice_buffer.count, 1);
    grpc_slice slice = grpc_slice_ref(buffer->data.raw.slice_buffer.slices[0]);
    grpc_byte_buffer_destroy(buffer);
    return slice;
}

static void assert_request(const Airlock__V1__RunRequest *request)
{
    assert_int_equal(request->code.len, 8);
    assert_memory_equal(request->code.data, "print(1)", 8);
    assert_string_equal(request->language, "python");
    assert_int_equal(request->n_files, 1);
    assert_string_equal(request->files[0]->path, "data/input.csv");
    assert_int_equal(request->files[0]->content.len, 3);
    assert_memory_equal(request->files[0]->content.data, "a\0b", 3);
    assert_int_equal(request->files[0]->mode, 0600);
    assert_true(request->quotas->cpu_seconds == 1.5);
    assert_int_equal(request->n_env, 1);
    assert_string_equal(request->env[0]->key, "LANG");
    assert_string_equal(request->env[0]->value, "C.UTF-8");
    assert_int_equal(request->n_args, 3);
    assert_string_equal(request->args[1], "J\xc3\xbcrgen");
    assert_string_equal(request->args[2], "");
    assert_int_equal(request->cache_mode, AIRLOCK__V1__CACHE_MODE__CACHE_MODE_REFRESH);
}

static void test_unpack__round_trip(void **state)
{
    (void)state;
    grpc_slice slice = make_request();
    struct outcome outcome = unpack_slices(&slice, 1, &al_wire_request_limits);
    grpc_slice_unref(slice);
    assert_request(assert_unpacked(&outcome));
    al_arena_destroy(outcome.arena);
}

static void test_unpack__gathers_slices_cut_anywhere(void **state)
{
    (void)state;
    grpc_slice slice = make_request();
    size_t len = GRPC_SLICE_LENGTH(slice);
    for (size_t cut = 0; cut <= len; cut++) {
        grpc_slice parts[] = {grpc_slice_sub(slice, 0, cut), grpc_slice_sub(slice, cut, len)};
        struct outcome outcome = unpack_slices(parts, 2, &al_wire_request_limits);
        assert_request(assert_unpacked(&outcome));
        al_arena_destroy(outcome.arena);
        grpc_slice_unref(parts[0]);
        grpc_slice_unref(parts[1]);
    }
    grpc_slice_unref(slice);
}

/* Whatever is cut off, a part of a message never crashes and never keeps anything. */
static void test_unpack__survives_truncation(void **state)
{
    (void)state;
    grpc_slice slice = make_request();
    for (size_t len = 0; len < GRPC_SLICE_LENGTH(slice); len++) {
        struct outcome outcome =
            unpack_bytes(GRPC_SLICE_START_PTR(slice), len, &al_wire_request_limits);
        assert_true(outcome.result == 0 || outcome.result == -EBADMSG);
        assert_int_equal(outcome.result == 0, outcome.arena != NULL);
        al_arena_destroy(outcome.arena);
    }
    grpc_slice_unref(slice);
}

static void test_unpack__empty_message_has_no_null_string(void **state)
{
    (void)state;
    struct outcome outcome = unpack_bytes(NULL, 0, &al_wire_request_limits);
    const Airlock__V1__RunRequest *request = assert_unpacked(&outcome);
    assert_string_equal(request->language, "");
    assert_string_equal(request->backend, "");
    assert_int_equal(request->code.len, 0);
    assert_null(request->quotas);
    al_arena_destroy(outcome.arena);
}

static void test_unpack__empty_buffer_is_an_empty_message(void **state)
{
    (void)state;
    struct outcome outcome = unpack_slices(NULL, 0, &al_wire_request_limits);
    assert_unpacked(&outcome);
    al_arena_destroy(outcome.arena);
}

static void test_unpack__map_entries_without_key_or_value_are_empty_strings(void **state)
{
    (void)state;
    static const uint8_t data[] = {
        0x3a, 0,                   /* an empty entry */
        0x3a, 3, 0x0a, 1, 'K',     /* without value */
        0x3a, 3, 0x12, 1, 'v',     /* without key */
        0x3a, 4, 0x0a, 0, 0x12, 0, /* both empty */
    };
    struct outcome outcome = unpack_bytes(data, sizeof(data), &al_wire_request_limits);
    const Airlock__V1__RunRequest *request = assert_unpacked(&outcome);
    assert_int_equal(request->n_env, 4);
    static const char *const expected[][2] = {{"", ""}, {"K", ""}, {"", "v"}, {"", ""}};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(request->env[i]->key, expected[i][0]);
        assert_string_equal(request->env[i]->value, expected[i][1]);
    }
    al_arena_destroy(outcome.arena);
}

/* protobuf-c keeps both; whoever reads the map takes the last, or refuses. */
static void test_unpack__duplicate_map_keys_are_kept_in_order(void **state)
{
    (void)state;
    static const uint8_t data[] = {0x3a, 6, 0x0a, 1, 'K', 0x12, 1, '1',
                                   0x3a, 6, 0x0a, 1, 'K', 0x12, 1, '2'};
    struct outcome outcome = unpack_bytes(data, sizeof(data), &al_wire_request_limits);
    const Airlock__V1__RunRequest *request = assert_unpacked(&outcome);
    assert_int_equal(request->n_env, 2);
    assert_string_equal(request->env[0]->value, "1");
    assert_string_equal(request->env[1]->value, "2");
    al_arena_destroy(outcome.arena);
}

static void test_unpack__names_the_field(void **state)
{
    (void)state;
    static const uint8_t data[] = {0x1a, 0, 0x1a, 3, 0x0a, 1, 0xff};
    struct outcome outcome = unpack_bytes(data, sizeof(data), &al_wire_request_limits);
    assert_refused(&outcome, -EBADMSG, "files[1].path: not valid UTF-8");
}

static void test_unpack__keeps_to_the_memory_budget(void **state)
{
    (void)state;
    struct al_wire_limits limits = al_wire_request_limits;
    uint8_t data[4096];
    for (size_t i = 0; i < sizeof(data); i += 2) {
        data[i] = 0x1a; /* an empty file: two bytes here, some 100 unpacked */
        data[i + 1] = 0;
    }
    limits.memory_bytes = 65536;
    struct outcome outcome = unpack_bytes(data, sizeof(data), &limits);
    assert_refused(&outcome, -EMSGSIZE, "message: takes more than 65536 bytes of memory");

    limits.memory_bytes = sizeof(data) / 2 * 150;
    outcome = unpack_bytes(data, sizeof(data), &limits);
    assert_int_equal(assert_unpacked(&outcome)->n_files, sizeof(data) / 2);
    assert_true(al_arena_used_bytes(outcome.arena) <= limits.memory_bytes);
    al_arena_destroy(outcome.arena);
}

/* The most items that the limits let through must fit the budget that goes with them. */
static void test_unpack__item_limit_fits_the_memory_budget(void **state)
{
    (void)state;
    static uint8_t data[2 * 65536];
    for (size_t i = 0; i < sizeof(data); i += 2) {
        data[i] = 0x1a;
        data[i + 1] = 0;
    }
    struct outcome outcome = unpack_bytes(data, sizeof(data), &al_wire_request_limits);
    assert_int_equal(assert_unpacked(&outcome)->n_files, 65536);
    size_t content_bytes = al_wire_request_limits.message_bytes;
    assert_true(al_arena_used_bytes(outcome.arena) + content_bytes <=
                al_wire_request_limits.memory_bytes);
    al_arena_destroy(outcome.arena);
}

static void test_unpack__unknown_fields_stay_within_limits(void **state)
{
    (void)state;
    static uint8_t data[3 * 21845];
    for (size_t i = 0; i < sizeof(data); i += 3) {
        data[i] = 0xa0;
        data[i + 1] = 0x06;
        data[i + 2] = 1;
    }
    struct outcome outcome = unpack_bytes(data, sizeof(data), &al_wire_request_limits);
    assert_unpacked(&outcome);
    al_arena_destroy(outcome.arena);

    struct al_wire_limits limits = al_wire_request_limits;
    limits.unknown_bytes = sizeof(data) - 1;
    outcome = unpack_bytes(data, sizeof(data), &limits);
    assert_refused(&outcome, -EMSGSIZE, "message: more than 65534 bytes of unknown fields");
}

static void test_unpack__refuses_a_large_buffer(void **state)
{
    (void)state;
    struct al_wire_limits limits = al_wire_request_limits;
    grpc_slice slice = make_request();
    limits.message_bytes = GRPC_SLICE_LENGTH(slice) - 1;
    struct outcome outcome = unpack_slices(&slice, 1, &limits);
    assert_int_equal(outcome.result, -EMSGSIZE);
    limits.message_bytes = GRPC_SLICE_LENGTH(slice);
    outcome = unpack_slices(&slice, 1, &limits);
    assert_request(assert_unpacked(&outcome));
    al_arena_destroy(outcome.arena);
    grpc_slice_unref(slice);
}

static void test_unpack__refuses_a_compressed_buffer(void **state)
{
    (void)state;
    grpc_slice slice = make_request();
    grpc_byte_buffer *buffer =
        grpc_raw_compressed_byte_buffer_create(&slice, 1, GRPC_COMPRESS_GZIP);
    struct outcome outcome = {.why = ""};
    outcome.result = al_wire_unpack(RUN_REQUEST, buffer, &al_wire_request_limits, &outcome.arena,
                                    &outcome.msg, outcome.why, sizeof(outcome.why));
    assert_refused(&outcome, -EOPNOTSUPP, "message: compression is not supported");
    grpc_byte_buffer_destroy(buffer);
    grpc_slice_unref(slice);
}

static void test_unpack__refuses_a_missing_message(void **state)
{
    (void)state;
    struct outcome outcome = {.why = ""};
    outcome.result = al_wire_unpack(RUN_REQUEST, NULL, &al_wire_request_limits, &outcome.arena,
                                    &outcome.msg, outcome.why, sizeof(outcome.why));
    assert_refused(&outcome, -EBADMSG, "message: missing");
}

static void test_pack__empty_message_is_an_empty_buffer(void **state)
{
    (void)state;
    Airlock__V1__ListBackendsRequest request = AIRLOCK__V1__LIST_BACKENDS_REQUEST__INIT;
    grpc_byte_buffer *buffer = al_wire_pack(&request.base);
    assert_non_null(buffer);
    assert_int_equal(grpc_byte_buffer_length(buffer), 0);
    grpc_byte_buffer_destroy(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unpack__round_trip),
        cmocka_unit_test(test_unpack__gathers_slices_cut_anywhere),
        cmocka_unit_test(test_unpack__survives_truncation),
        cmocka_unit_test(test_unpack__empty_message_has_no_null_string),
        cmocka_unit_test(test_unpack__empty_buffer_is_an_empty_message),
        cmocka_unit_test(test_unpack__map_entries_without_key_or_value_are_empty_strings),
        cmocka_unit_test(test_unpack__duplicate_map_keys_are_kept_in_order),
        cmocka_unit_test(test_unpack__names_the_field),
        cmocka_unit_test(test_unpack__keeps_to_the_memory_budget),
        cmocka_unit_test(test_unpack__item_limit_fits_the_memory_budget),
        cmocka_unit_test(test_unpack__unknown_fields_stay_within_limits),
        cmocka_unit_test(test_unpack__refuses_a_large_buffer),
        cmocka_unit_test(test_unpack__refuses_a_compressed_buffer),
        cmocka_unit_test(test_unpack__refuses_a_missing_message),
        cmocka_unit_test(test_pack__empty_message_is_an_empty_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
