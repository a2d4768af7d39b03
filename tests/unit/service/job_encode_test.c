#include "service/job_encode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>

#include "service/pack.h"
#include "tests/unit/service/job_support.h"

static void test_encode_text__escapes_what_is_not_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        size_t size;
        const char *to;
    } rows[] = {
        {"", 10, ""},
        {"plain", 10, "plain"},
        {"\xe3\x81\x82", 10, "\xe3\x81\x82"},
        {"\xff", 10, "\\xff"},
        {"a\xed\xa0\x80z", 20, "a\\xed\\xa0\\x80z"}, /* a lone surrogate */
        {"\xe3\x81", 20, "\\xe3\\x81"},              /* cut in a character */
        {"abcdef", 4, "abc"},
        {"ab\xe3\x81\x82", 5, "ab"}, /* no half character */
        {"ab\xff", 6, "ab"},         /* no half escape */
        {"ab\xff", 7, "ab\\xff"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char to[32];
        memset(to, 'Z', sizeof to);
        al_encode_text(rows[i].from, to, rows[i].size);
        assert_string_equal(to, rows[i].to);
    }
}

static struct al_job *make_ended_job(struct al_job_info *info)
{
    struct al_job *job = al_test_job_create(&(struct al_test_job){.ring_bytes = 2048});
    struct al_result result;
    al_job_spec(job)->quotas = (struct al_quotas){.wall_ms = 1500, .pids = 7};
    al_job_begin(job);
    al_result_init(&result);
    result.status = AL_STATUS_FAILED;
    result.reason = AL_REASON_LIMIT;
    result.limit_hit = AL_LIMIT_MEMORY;
    result.exit_kind = AL_EXIT_SIGNAL;
    result.exit_value = 9;
    result.duration_us = 1500;
    result.cpu_us = 2500000;
    result.memory_peak_bytes = 3 << 19;
    result.stdout_truncated = true;
    result.isolation = AL_LAYER_USERNS | AL_LAYER_RLIMITS;
    result.compile.present = true;
    result.compile.exit_code = 1;
    assert_int_equal(al_buf_append(&result.compile.output, "\xff", 1), 0);
    memcpy(result.error, "bad \xff", sizeof "bad \xff");
    al_job_end(job, &result);
    al_result_finish(&result);
    al_job_drop_output(job);
    al_job_info(job, info);
    return job;
}

static void test_encode_result__says_everything(void **state)
{
    (void)state;
    struct al_job_info info;
    struct al_job *job = make_ended_job(&info);
    struct al_result_message message;
    al_encode_result(&info, &message);
    const Airlock__V1__ExecutionResult *r = &message.result;
    assert_string_equal(r->job_id, al_job_id(job));
    assert_string_equal(r->backend, "nothing");
    assert_int_equal(r->status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_FAILED);
    assert_int_equal(r->reason, AIRLOCK__V1__REASON__REASON_LIMIT);
    assert_int_equal(r->limit_hit, AIRLOCK__V1__LIMIT__LIMIT_MEMORY);
    assert_int_equal(r->exit_case, AIRLOCK__V1__EXECUTION_RESULT__EXIT_TERM_SIGNAL);
    assert_int_equal(r->term_signal, 9);
    assert_true(r->duration_ms == 1.5);
    assert_true(r->cpu_seconds == 2.5);
    assert_true(r->memory_peak_mb == 1.5);
    assert_true(r->stdout_truncated && !r->stderr_truncated);
    assert_true(r->effective_quotas->wall_seconds == 1.5);
    assert_int_equal(r->effective_quotas->pids, 7);
    assert_int_equal(r->n_isolation, 2);
    assert_string_equal(r->isolation[0], "userns");
    assert_string_equal(r->isolation[1], "rlimits");
    assert_string_equal(r->language, "python@3.1");
    assert_string_equal(r->error, "bad \\xff");
    assert_int_equal(r->compile->output.len, 1); /* bytes stay as they are */
    assert_int_equal(r->compile->exit_code, 1);
    al_job_unref(job);
}

static void add_artifact(struct al_result *result, const char *path, const char *text, bool cut)
{
    struct al_artifact a = {.path = strdup(path),
                            .data = (uint8_t *)strdup(text),
                            .len = strlen(text),
                            .mode = 0640,
                            .truncated = cut};
    assert_non_null(a.path);
    assert_non_null(a.data);
    assert_int_equal(al_artifacts_add(&result->artifacts, a), 0);
}

/* They go with the reply and then from memory; the record keeps how many were omitted. */
static void test_encode_artifacts__are_not_of_the_record(void **state)
{
    (void)state;
    struct al_job *job = al_test_job_create(&(struct al_test_job){.ring_bytes = 2048});
    struct al_artifact_messages room;
    struct al_result_message message;
    struct al_job_info info;
    struct al_result result;
    al_job_begin(job);
    al_result_init(&result);
    result.status = AL_STATUS_SUCCEEDED;
    add_artifact(&result, "a/b", "content", false);
    add_artifact(&result, "c", "con", true);
    result.artifacts.omitted = 5;
    al_job_end(job, &result);
    al_result_finish(&result);
    al_job_info(job, &info);
    assert_int_equal(info.result->artifacts.n, 0);
    al_encode_result(&info, &message);
    assert_int_equal(message.result.n_artifacts, 0);
    assert_int_equal(message.result.artifacts_omitted, 5);
    al_encode_artifacts(al_job_artifacts(job), &room, &message.result);
    assert_int_equal(message.result.n_artifacts, 2);
    const Airlock__V1__Artifact *first = message.result.artifacts[0];
    assert_string_equal(first->path, "a/b");
    assert_int_equal(first->content.len, 7);
    assert_memory_equal(first->content.data, "content", 7);
    assert_int_equal(first->mode, 0640);
    assert_false(first->truncated);
    assert_string_equal(message.result.artifacts[1]->path, "c");
    assert_true(message.result.artifacts[1]->truncated);
    al_job_drop_output(job);
    al_job_info(job, &info);
    assert_int_equal(info.result->artifacts.omitted, 5);
    al_job_unref(job);
}

static void test_encode_job__is_the_record(void **state)
{
    (void)state;
    struct al_job_info info;
    struct al_job *job = make_ended_job(&info);
    struct al_arena *arena = al_arena_create(1 << 20);
    static const uint8_t digest[AL_SHA256_LEN] = {0xab, 0x01};
    al_job_set_code_sha256(job, digest);
    al_job_info(job, &info);
    const Airlock__V1__Job *j = al_encode_job(&info, arena);
    assert_non_null(j);
    assert_string_equal(j->tenant_id, "t");
    assert_string_equal(j->user_id, "user");
    assert_int_equal(strlen(j->code_sha256), 64);
    assert_memory_equal(j->code_sha256, "ab0100", 6);
    assert_int_equal(j->n_metadata, 2);
    assert_string_equal(j->metadata[0]->key, "a");
    assert_non_null(j->started_at);
    assert_non_null(j->finished_at);
    assert_int_equal(j->status, j->result->status);
    al_arena_destroy(arena);
    struct al_arena *small = al_arena_create(256);
    assert_null(al_encode_job(&info, small));
    al_arena_destroy(small);
    al_job_unref(job);
}

static struct al_event *make_output(enum al_event_kind kind, size_t len)
{
    struct al_event *event = al_event_create(kind);
    al_buf_init(&event->bytes, len);
    uint8_t *to = al_buf_reserve(&event->bytes, len);
    assert_true(len == 0 || to);
    for (size_t i = 0; i < len; i++) {
        to[i] = (uint8_t)(i * 7 + (kind == AL_EVENT_STDERR));
    }
    event->bytes.len = len;
    return event;
}

/* Whatever is copied and whatever is not: the bytes are those of protobuf-c. */
static void assert_packs_like_protobuf(size_t out_len, size_t err_len)
{
    struct al_event *events[] = {make_output(AL_EVENT_STDOUT, out_len),
                                 make_output(AL_EVENT_STDERR, err_len)};
    Airlock__V1__ExecutionResult result;
    Airlock__V1__RunResponse response;
    airlock__v1__execution_result__init(&result);
    airlock__v1__run_response__init(&response);
    result.job_id = "0123456789abcdef";
    result.stdout = (ProtobufCBinaryData){out_len, events[0]->bytes.data};
    result.stderr = (ProtobufCBinaryData){err_len, events[1]->bytes.data};
    result.duration_ms = 1;
    response.result = &result;
    size_t len = airlock__v1__run_response__get_packed_size(&response);
    uint8_t *expected = malloc(len);
    assert_non_null(expected);
    airlock__v1__run_response__pack(&response, expected);

    grpc_byte_buffer *buffer = al_pack(&result.base, 1, events, 2);
    al_event_unref(events[0]); /* what gRPC still needs it has a reference to */
    al_event_unref(events[1]);
    grpc_byte_buffer_reader reader;
    assert_true(grpc_byte_buffer_reader_init(&reader, buffer));
    grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
    assert_int_equal(GRPC_SLICE_LENGTH(slice), len);
    assert_memory_equal(GRPC_SLICE_START_PTR(slice), expected, len);
    grpc_slice_unref(slice);
    grpc_byte_buffer_reader_destroy(&reader);
    grpc_byte_buffer_destroy(buffer);
    free(expected);
}

static void test_pack__is_what_protobuf_packs(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 8191, 8192, 300000};
    grpc_init();
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 5; k++) {
            assert_packs_like_protobuf(lengths[i], lengths[k]);
        }
    }
    grpc_shutdown();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode_text__escapes_what_is_not_utf8),
        cmocka_unit_test(test_encode_result__says_everything),
        cmocka_unit_test(test_encode_artifacts__are_not_of_the_record),
        cmocka_unit_test(test_encode_job__is_the_record),
        cmocka_unit_test(test_pack__is_what_protobuf_packs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
