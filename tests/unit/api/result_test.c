#include "backends/api/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Whoever forgets to fill it in has not reported a success. */
static void test_init__is_a_failure_of_the_backend(void **state)
{
    (void)state;
    struct al_result r;
    memset(&r, 0xff, sizeof r);
    al_result_init(&r);
    assert_int_equal(r.status, AL_STATUS_FAILED);
    assert_int_equal(r.reason, AL_REASON_BACKEND);
    assert_int_equal(r.limit_hit, AL_LIMIT_NONE);
    assert_int_equal(r.exit_kind, AL_EXIT_NONE);
    assert_false(r.compile.present || r.stdout_truncated || r.stderr_truncated);
    assert_string_equal(r.error, "");
    al_result_finish(&r);
}

static void test_compile_output__is_bounded(void **state)
{
    (void)state;
    static const char block[4096];
    struct al_result r;
    al_result_init(&r);
    for (size_t i = 0; i < 20; i++) {
        al_buf_append_some(&r.compile.output, block, sizeof block);
    }
    assert_int_equal(r.compile.output.len, AL_COMPILE_OUTPUT_MAX);
    al_result_finish(&r);
}

static void test_terminal__all_but_pending_and_running(void **state)
{
    (void)state;
    assert_false(al_status_is_terminal(AL_STATUS_PENDING));
    assert_false(al_status_is_terminal(AL_STATUS_RUNNING));
    for (int s = AL_STATUS_SUCCEEDED; s <= AL_STATUS_EGRESS_BLOCKED; s++) {
        assert_true(al_status_is_terminal((enum al_status)s));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init__is_a_failure_of_the_backend),
        cmocka_unit_test(test_compile_output__is_bounded),
        cmocka_unit_test(test_terminal__all_but_pending_and_running),
    };
    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
