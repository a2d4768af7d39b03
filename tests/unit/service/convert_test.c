#include "service/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/service/convert_support.h"

static struct al_config config;

static int set_up(void **state)
{
    (void)state;
    al_config_defaults(&config);
    return 0;
}

/* The request that the message makes; the test fails when it is refused. */
static const struct al_request *accept(struct al_arena *arena, const Airlock__V1__RunRequest *m,
                                       enum test_call call)
{
    struct al_request *request = NULL;
    struct al_err err = {0};
    if (test_convert(m, call, NULL, &config.limits, arena, &request, &err) < 0) {
        fail_msg("refused: %s", err.text);
    }
    assert_non_null(request);
    return request;
}

static void assert_refused(const Airlock__V1__RunRequest *m, enum test_call call, const char *text)
{
    al_auto_arena struct al_arena *arena = al_arena_create(8 << 20);
    struct al_request *request = NULL;
    struct al_err err = {0};
    assert_true(test_convert(m, call, NULL, &config.limits, arena, &request, &err) < 0);
    assert_null(request);
    assert_int_equal(err.code, AL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.text, text);
}

#define WITH_REQUEST(name, call, ...)                                \
    al_auto_arena struct al_arena *arena = al_arena_create(8 << 20); \
    const Airlock__V1__RunRequest message = {__VA_ARGS__};           \
    const struct al_request *name = accept(arena, &message, call)

static void test_convert_run__fills_in_defaults(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN, .inputs_json = "");
    assert_string_equal(r->backend->name, "full");
    assert_string_equal(r->spec.job_id, "");
    assert_string_equal(r->spec.tenant_id, "_default");
    assert_string_equal(r->spec.user_id, "");
    assert_ptr_equal(r->spec.language, &test_languages[0]);
    assert_string_equal(r->spec.workdir, "/sandbox");
    assert_null(r->spec.inputs_json);
    assert_int_equal(r->spec.code.len, 0);
    assert_int_equal(r->spec.network, AL_NETWORK_NONE);
    assert_false(r->spec.stdin_open);
    assert_int_equal(r->cache_mode, AL_CACHE_USE);
    assert_int_equal(r->cache_max_age_ms, 0);
    assert_int_equal(r->spec.quotas.cpu_ms, 5000);
    assert_int_equal(r->spec.quotas.wall_ms, 10000);
    assert_int_equal(r->spec.quotas.memory_mb, 256);
    assert_int_equal(r->spec.quotas.pids, 64);
    assert_int_equal(r->spec.quotas.file_size_mb, 32);
    assert_int_equal(r->spec.quotas.open_files, 64);
    assert_int_equal(r->spec.quotas.disk_mb, 64);
    assert_int_equal(r->spec.quotas.output_bytes, 1 << 20);
    assert_int_equal(r->spec.quotas.artifact_bytes, 1 << 20);
}

static void test_convert_run__stream_has_open_stdin_and_no_output_limit(void **state)
{
    (void)state;
    WITH_REQUEST(r, STREAM, .stdin = BYTES("first"));
    assert_true(r->spec.stdin_open);
    assert_int_equal(r->spec.stdin_bytes.len, 5);
    assert_int_equal(r->spec.quotas.output_bytes, 0);
}

static void test_convert_run__stream_keeps_any_output_limit(void **state)
{
    (void)state;
    WITH_REQUEST(r, STREAM, .quotas = QUOTAS(.output_bytes = UINT64_C(1) << 40));
    assert_true(r->spec.quotas.output_bytes == UINT64_C(1) << 40);
}

static void test_convert_run__takes_code_as_it_is(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN, .code = BYTES("\xef\xbb\xbf\0\xff\r\n"));
    assert_int_equal(r->spec.code.len, 7);
    assert_memory_equal(r->spec.code.data, "\xef\xbb\xbf\0\xff\r\n", 7);
}

static void test_convert_run__rounds_seconds_up(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        int64_t ms;
    } cases[] = {{1e-300, 1}, {0.0001, 1},  {0.001, 1},     {0.0011, 2},   {1.1, 1100},
                 {0.57, 570}, {4.35, 4350}, {2.0001, 2001}, {300, 300000}, {-0.0, 5000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        WITH_REQUEST(r, RUN, .quotas = QUOTAS(.cpu_seconds = cases[i].seconds));
        assert_int_equal(r->spec.quotas.cpu_ms, cases[i].ms);
    }
}

static void test_convert_run__takes_cache_wishes(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN, .cache_mode = 2, .cache_max_age_seconds = 0.0001, .gate_mode = 2);
    assert_int_equal(r->cache_mode, AL_CACHE_REFRESH);
    assert_int_equal(r->cache_max_age_ms, 1);
    assert_int_equal(r->message->gate_mode, 2);
}

static void test_convert_run__keeps_an_endless_cache_age_finite(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN, .cache_max_age_seconds = 1e300);
    assert_true(r->cache_max_age_ms == INT64_C(3153600000000));
}

static void test_convert_run__strips_one_slash_of_workdir(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN, .workdir = "/tmp/a/");
    assert_string_equal(r->spec.workdir, "/tmp/a");
}

static void test_convert_run__keeps_files_in_order(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN, FILES(F("b", .content = BYTES("x\0y"), .mode = 0755), F("a")));
    assert_int_equal(r->spec.n_files, 2);
    assert_string_equal(r->spec.files[0].path, "b");
    assert_int_equal(r->spec.files[0].mode, 0755);
    assert_int_equal(r->spec.files[0].content.len, 3);
    assert_string_equal(r->spec.files[1].path, "a");
    assert_int_equal(r->spec.files[1].mode, 0644);
    assert_int_equal(r->spec.files[1].content.len, 0);
}

static void test_convert_run__sorts_env_and_the_last_of_a_name_wins(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN, ENV(E("B", "1"), E("A", "2"), E("B", "3"), E("B", "4"), E("C", "")));
    assert_int_equal(r->spec.n_env, 3);
    assert_string_equal(r->spec.env[0].name, "A");
    assert_string_equal(r->spec.env[0].value, "2");
    assert_string_equal(r->spec.env[1].name, "B");
    assert_string_equal(r->spec.env[1].value, "4");
    assert_string_equal(r->spec.env[2].name, "C");
    assert_string_equal(r->spec.env[2].value, "");
}

static void test_convert_run__settles_metadata_likewise(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN, METADATA(M("b", "1"), M("", "2"), M("b", "3")));
    assert_int_equal(r->n_metadata, 2);
    assert_string_equal(r->metadata[0].name, "");
    assert_string_equal(r->metadata[1].name, "b");
    assert_string_equal(r->metadata[1].value, "3");
}

static void test_convert_run__borrows_lists(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN, ARGS("a", "", "c d"), ARTIFACTS("**/*.png"),
                 .egress = EGRESS(.policy = 2, HOSTS("example.org", "2001:db8::/32")),
                 .user_id = "u-1", .language = "py@3.11");
    assert_int_equal(r->spec.n_args, 3);
    assert_string_equal(r->spec.args[2], "c d");
    assert_int_equal(r->spec.n_artifacts, 1);
    assert_string_equal(r->spec.artifacts[0], "**/*.png");
    assert_int_equal(r->spec.network, AL_NETWORK_ALLOWLIST);
    assert_int_equal(r->spec.n_hosts, 2);
    assert_string_equal(r->spec.hosts[1], "2001:db8::/32");
    assert_string_equal(r->spec.user_id, "u-1");
    assert_ptr_equal(r->spec.language, &test_languages[0]);
}

static void test_convert_run__inputs_become_canonical(void **state)
{
    (void)state;
    static const struct {
        char *given;
        const char *canonical;
    } cases[] = {
        {"{}", "{}"},
        {" {\n} ", "{}"},
        {"{\"b\": 1, \"a\": [1, 2.50, true, null]}", "{\"a\":[1,2.5,true,null],\"b\":1}"},
        {"{\"a\": {\"y\": 0, \"x\": -0.1}}", "{\"a\":{\"x\":-0.1,\"y\":0}}"},
        {"{\"a\": 1.0, \"b\": 0.30000000000000004}", "{\"a\":1.0,\"b\":0.30000000000000004}"},
        {"{\"a\": 9223372036854775807}", "{\"a\":9223372036854775807}"},
        {"{\"k\": \"\\u3042\\u0041\\n\\u0000\"}", "{\"k\":\"\u3042A\\n\\u0000\"}"},
        {"{\"k\": \"[[\\\\\\\"[\"}", "{\"k\":\"[[\\\\\\\"[\"}"},
        {"{\"\": \"\xf0\x9f\x98\x80\"}", "{\"\":\"\xf0\x9f\x98\x80\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        WITH_REQUEST(r, RUN, .inputs_json = cases[i].given);
        assert_string_equal(r->spec.inputs_json, cases[i].canonical);
    }
}

static void test_convert_run__bounds_each_argument_for_exec(void **state)
{
    (void)state;
    char *text = malloc(131073);
    assert_non_null(text);
    memset(text, 'x', 131072);
    text[131071] = '\0';
    {
        WITH_REQUEST(r, RUN, ARGS(text));
        assert_int_equal(r->spec.n_args, 1);
    }
    text[131071] = 'x';
    text[131072] = '\0';
    const Airlock__V1__RunRequest longer = {ARGS("a", text)};
    assert_refused(&longer, RUN, "args[1]: 131072 bytes, at most 131071");
    text[131070] = '\0';
    const Airlock__V1__RunRequest variable = {ENV(E("A", text))};
    assert_refused(&variable, RUN, "env[A]: 131072 bytes of name and value, at most 131071");
    free(text);
}

static void test_convert_run__bounds_by_the_documented_sizes(void **state)
{
    (void)state;
    uint8_t *bytes = calloc(1, (16 << 20) + 1);
    assert_non_null(bytes);
    {
        WITH_REQUEST(r, RUN, .code = {1 << 20, bytes}, .stdin = {4 << 20, bytes},
                     FILES(F("a", .content = {16 << 20, bytes})));
        assert_int_equal(r->spec.code.len, 1 << 20);
    }
    const Airlock__V1__RunRequest code = {.code = {(1 << 20) + 1, bytes}};
    assert_refused(&code, RUN, "code: 1048577 bytes, at most 1048576");
    const Airlock__V1__RunRequest input = {.stdin = {(4 << 20) + 1, bytes}};
    assert_refused(&input, RUN, "stdin: 4194305 bytes, at most 4194304");
    const Airlock__V1__RunRequest files = {
        FILES(F("a", .content = {16 << 20, bytes}), F("b", .content = {1, bytes}))};
    assert_refused(&files, RUN,
                   "files[1].content: the contents of all files have more than 16777216 bytes");
    free(bytes);
}

static void test_convert_run__bounds_numbers_of_things(void **state)
{
    (void)state;
    static char *strings[300];
    static char names[300][8];
    static Airlock__V1__SandboxFile files[300];
    static file_ptr file_ptrs[300];
    for (int i = 0; i < 300; i++) {
        names[i][0] = (char)('a' + i / 20);
        names[i][1] = (char)('a' + i % 20);
        strings[i] = names[i];
        files[i].path = names[i];
        file_ptrs[i] = &files[i];
    }
    {
        WITH_REQUEST(r, RUN, .n_args = 256, .args = strings, .n_files = 256, .files = file_ptrs,
                     .n_artifacts = 64, .artifacts = strings,
                     .egress = EGRESS(.policy = 2, .n_hosts = 256, .hosts = strings));
        assert_int_equal(r->spec.n_files, 256);
    }
    const Airlock__V1__RunRequest args = {.n_args = 257, .args = strings};
    assert_refused(&args, RUN, "args: 257 arguments, at most 256");
    const Airlock__V1__RunRequest many_files = {.n_files = 257, .files = file_ptrs};
    assert_refused(&many_files, RUN, "files: 257 files, at most 256");
    const Airlock__V1__RunRequest artifacts = {.n_artifacts = 65, .artifacts = strings};
    assert_refused(&artifacts, RUN, "artifacts: 65 globs, at most 64");
    const Airlock__V1__RunRequest hosts = {
        .egress = EGRESS(.policy = 2, .n_hosts = 257, .hosts = strings)};
    assert_refused(&hosts, RUN, "egress.hosts: 257 hosts, at most 256");
}

/* A request that does not fit would otherwise fail in the backend, as if that were at fault. */
static void test_convert_run__what_it_brings_must_fit_on_its_disk(void **state)
{
    (void)state;
    static uint8_t zeros[1 << 20];
    const size_t page = 4096;
    Airlock__V1__RunRequest m = {.quotas = QUOTAS(.disk_mb = 1),
                                 .code = {.data = zeros, .len = 1},
                                 .inputs_json = "{}",
                                 FILES(F("a", .content = {sizeof zeros - 2 * page, zeros}))};
    al_auto_arena struct al_arena *arena = al_arena_create(8 << 20);
    (void)accept(arena, &m, RUN);
    m.files[0]->content.len++;
    assert_refused(&m, RUN,
                   "quotas.disk_mb: 1 MiB do not hold the request's own code, files and inputs "
                   "(1052672 bytes, in whole pages)");
}

static void test_convert_run__refuses_deep_inputs(void **state)
{
    (void)state;
    WITH_REQUEST(r, RUN,
                 .inputs_json = "{\"a\":" X100("[") X50("[") X10("[") X10("[") X10("[")
                     X10("[") "[[[[[[[[["
                              "]]]]]]]]]" X10("]") X10("]") X10("]") X10("]") X50("]")
                                  X100("]") "}");
    assert_non_null(r->spec.inputs_json);
    const Airlock__V1__RunRequest deeper = {.inputs_json = X250("[") "{"};
    assert_refused(&deeper, RUN, "inputs_json: 251 levels of nesting, at most 200");
}

/* A mebibyte of empty arrays would hold the completion queue's thread for a quarter of a second. */
static void test_convert_run__bounds_the_values_of_inputs(void **state)
{
    (void)state;
    size_t n = 70000;
    char *json = malloc(2 * n + 64);
    assert_non_null(json);
    char *at = stpcpy(json, "{\"a\":[0");
    for (size_t i = 0; i < n; i++) {
        at = stpcpy(at, ",0");
    }
    stpcpy(at, "]}");
    const Airlock__V1__RunRequest many = {.inputs_json = json};
    assert_refused(&many, RUN, "inputs_json: 70002 values, at most 65536");
    free(json);
}

static void test_convert_run__says_when_the_arena_is_too_small(void **state)
{
    (void)state;
    for (size_t budget = 0; budget < 3000; budget += 16) {
        al_auto_arena struct al_arena *arena = al_arena_create(budget);
        Airlock__V1__RunRequest m = {FILES(F("a"), F("b")), ENV(E("A", "1")), METADATA(M("a", "1")),
                                     .inputs_json = "{\"a\":1}"};
        test_fill_strings(&m);
        const struct al_convert_env env = {.registry = &test_registry, .limits = &config.limits};
        struct al_request *request = NULL;
        struct al_err err = {0};
        if (al_convert_run(&env, &m, arena, &request, &err) < 0) {
            assert_null(request);
            assert_int_equal(err.code, AL_ERR_INVALID_ARGUMENT);
            assert_string_equal(err.text, "the request takes more memory than one request may");
        } else {
            assert_false(al_arena_is_exhausted(arena));
        }
    }
}

static void test_convert_run__names_no_backend_when_there_is_none(void **state)
{
    (void)state;
    static const struct al_registry empty = {0};
    al_auto_arena struct al_arena *arena = al_arena_create(1 << 20);
    Airlock__V1__RunRequest m = {0};
    test_fill_strings(&m);
    const struct al_convert_env env = {.registry = &empty, .limits = &config.limits};
    struct al_request *request = NULL;
    struct al_err err = {0};
    assert_true(al_convert_run(&env, &m, arena, &request, &err) < 0);
    assert_int_equal(err.code, AL_ERR_NOT_FOUND);
    assert_string_equal(err.text, "backend: there is no \"\" (there are: none)");
}

static void test_convert_job_id__takes_sixteen_lower_case_digits(void **state)
{
    (void)state;
    struct al_err err = {0};
    assert_int_equal(al_convert_job_id("job_id", "0123456789abcdef", &err), 0);
    static const char *const bad[] = {"",
                                      "0123456789abcde",
                                      "0123456789abcdef0",
                                      "0123456789ABCDEF",
                                      "0123456789abcdeg",
                                      " 123456789abcdef"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct al_err e = {0};
        assert_true(al_convert_job_id("attach.job_id", bad[i], &e) < 0);
        assert_int_equal(e.code, AL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(e.text, "attach.job_id: \""));
        assert_non_null(strstr(e.text, "is not a job id (16 lower-case hexadecimal digits)"));
    }
}

static void test_convert_run__terminal_needs_pty(void **state)
{
    (void)state;
    struct al_backend no_pty = *test_registry.default_backend;
    no_pty.capabilities = TEST_ALL_CAPABILITIES & ~(uint32_t)AL_CAP_PTY;
    const struct al_registry one = {.default_backend = &no_pty};
    al_auto_arena struct al_arena *arena = al_arena_create(1 << 20);
    Airlock__V1__RunRequest m = {0};
    test_fill_strings(&m);
    const struct al_convert_env env = {
        .registry = &one, .limits = &config.limits, .stream = true, .terminal = {24, 80}};
    struct al_request *request = NULL;
    struct al_err err = {0};
    assert_true(al_convert_run(&env, &m, arena, &request, &err) < 0);
    assert_int_equal(err.code, AL_ERR_FAILED_PRECONDITION);
    assert_string_equal(err.text, "terminal: backend full lacks the capability pty");
}

static void test_convert_terminal__sides(void **state)
{
    (void)state;
    static const struct {
        uint32_t rows, cols;
        struct al_terminal_size size;
        const char *error;
    } sides[] = {
        {0, 0, {24, 80}, NULL},
        {1, 1, {1, 1}, NULL},
        {65535, 65535, {65535, 65535}, NULL},
        {65536, 80, {0}, "resize.rows: 65536, at most 65535"},
        {24, 4294967295, {0}, "resize.cols: 4294967295, at most 65535"},
    };
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        Airlock__V1__TerminalSize m = AIRLOCK__V1__TERMINAL_SIZE__INIT;
        struct al_terminal_size size = {0};
        struct al_err err = {0};
        m.rows = sides[i].rows;
        m.cols = sides[i].cols;
        int r = al_convert_terminal("resize", &m, &size, &err);
        if (sides[i].error) {
            assert_int_equal(err.code, AL_ERR_INVALID_ARGUMENT);
            assert_string_equal(err.text, sides[i].error);
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(size.rows, sides[i].size.rows);
            assert_int_equal(size.cols, sides[i].size.cols);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest single[] = {
        cmocka_unit_test(test_convert_run__fills_in_defaults),
        cmocka_unit_test(test_convert_run__stream_has_open_stdin_and_no_output_limit),
        cmocka_unit_test(test_convert_run__stream_keeps_any_output_limit),
        cmocka_unit_test(test_convert_run__takes_code_as_it_is),
        cmocka_unit_test(test_convert_run__rounds_seconds_up),
        cmocka_unit_test(test_convert_run__takes_cache_wishes),
        cmocka_unit_test(test_convert_run__keeps_an_endless_cache_age_finite),
        cmocka_unit_test(test_convert_run__strips_one_slash_of_workdir),
        cmocka_unit_test(test_convert_run__keeps_files_in_order),
        cmocka_unit_test(test_convert_run__sorts_env_and_the_last_of_a_name_wins),
        cmocka_unit_test(test_convert_run__settles_metadata_likewise),
        cmocka_unit_test(test_convert_run__borrows_lists),
        cmocka_unit_test(test_convert_run__inputs_become_canonical),
        cmocka_unit_test(test_convert_run__bounds_each_argument_for_exec),
        cmocka_unit_test(test_convert_run__bounds_by_the_documented_sizes),
        cmocka_unit_test(test_convert_run__bounds_numbers_of_things),
        cmocka_unit_test(test_convert_run__what_it_brings_must_fit_on_its_disk),
        cmocka_unit_test(test_convert_run__refuses_deep_inputs),
        cmocka_unit_test(test_convert_run__bounds_the_values_of_inputs),
        cmocka_unit_test(test_convert_run__says_when_the_arena_is_too_small),
        cmocka_unit_test(test_convert_run__names_no_backend_when_there_is_none),
        cmocka_unit_test(test_convert_run__terminal_needs_pty),
        cmocka_unit_test(test_convert_terminal__sides),
        cmocka_unit_test(test_convert_job_id__takes_sixteen_lower_case_digits),
    };
    return cmocka_run_group_tests_name("convert", single, set_up, NULL);
}
