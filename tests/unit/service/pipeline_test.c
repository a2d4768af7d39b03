#include "service/pipeline.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "tests/unit/service/job_support.h"

struct test_backend {
    struct al_backend base;
    int runs;
    int64_t wall_ms; /* that the run got */
    const char *error;
};

static int run(struct al_backend *base, const struct al_job_spec *spec, struct al_ctl *ctl,
               struct al_sink *sink, struct al_result *result, struct al_err *err)
{
    (void)ctl;
    struct test_backend *backend = (struct test_backend *)base;
    backend->runs++;
    backend->wall_ms = spec->quotas.wall_ms;
    if (backend->error) {
        return al_err_set(err, AL_ERR_INTERNAL, "%s", backend->error);
    }
    al_sink_append(sink, AL_STDOUT, (const uint8_t *)"out", 3);
    result->status = AL_STATUS_SUCCEEDED;
    result->reason = AL_REASON_EXIT;
    return 0;
}

static const struct al_backend_ops ops = {.run = run};

/* Runs a job with these settings; its record is in *ret. The caller drops the reference. */
static struct al_job *run_job(struct test_backend *backend, struct al_test_job settings,
                              bool cancelled, bool skip, struct al_job_info *ret)
{
    struct al_jobs *jobs = al_jobs_create(1);
    struct al_pipeline pipeline = {.jobs = jobs, .deadline_margin_ms = 250};
    assert_int_equal(al_pipeline_init(&pipeline), 0);
    backend->base = (struct al_backend){.ops = &ops, .name = "b", .version = "1"};
    settings.backend = &backend->base;
    settings.ring_bytes = al_ring_bytes_for(1000);
    struct al_job *job = al_test_job_create(&settings);
    al_jobs_insert(jobs, job);
    if (cancelled) {
        al_ctl_cancel(al_job_ctl(job));
    }
    if (skip) {
        al_pipeline_skip(&pipeline, job);
    } else {
        al_pipeline_run(&pipeline, job);
    }
    al_job_drop_output(job);
    al_job_info(job, ret);
    struct al_job *found = al_jobs_find(jobs, "t", al_job_id(job));
    assert_ptr_equal(found, job);
    al_job_unref(found);
    al_pipeline_finish(&pipeline);
    al_jobs_destroy(jobs);
    return job;
}

static void test_pipeline__returns_the_backends_result(void **state)
{
    (void)state;
    struct test_backend backend = {0};
    struct al_job_info info;
    struct al_job *job =
        run_job(&backend, (struct al_test_job){.code = "x", .wall_ms = 1000}, false, false, &info);
    static const uint8_t sha256_x[] = {0x2d, 0x71, 0x16, 0x42};
    assert_int_equal(info.status, AL_STATUS_SUCCEEDED);
    assert_int_equal(info.quotas.wall_ms, 1000);
    assert_memory_equal(info.code_sha256, sha256_x, sizeof sha256_x);
    assert_true(info.started_wall_ns > 0);
    al_job_unref(job);
}

static void test_pipeline__a_backends_error_is_a_result(void **state)
{
    (void)state;
    struct test_backend backend = {.error = "no cell"};
    struct al_job_info info;
    struct al_job *job = run_job(&backend, (struct al_test_job){0}, false, false, &info);
    assert_int_equal(info.status, AL_STATUS_FAILED);
    assert_int_equal(info.result->reason, AL_REASON_BACKEND);
    assert_string_equal(info.result->error, "no cell");
    al_job_unref(job);
}

static void test_pipeline__the_deadline_shortens_the_wall_limit(void **state)
{
    (void)state;
    struct test_backend backend = {0};
    struct al_job_info info;
    struct al_test_job settings = {.wall_ms = 10000, .deadline_ms = al_now_ms() + 5000};
    struct al_job *job = run_job(&backend, settings, false, false, &info);
    assert_in_range(backend.wall_ms, 3000, 4750);
    assert_int_equal(info.quotas.wall_ms, backend.wall_ms);
    al_job_unref(job);

    settings.wall_ms = 100;
    job = run_job(&backend, settings, false, false, &info);
    assert_int_equal(backend.wall_ms, 100);
    al_job_unref(job);
}

static void assert_never_ran(const struct test_backend *backend, const struct al_job_info *info)
{
    assert_int_equal(backend->runs, 0);
    assert_int_equal(info->status, AL_STATUS_KILLED);
    assert_int_equal(info->result->reason, AL_REASON_CANCELLED);
    assert_int_equal(info->started_wall_ns, 0);
    assert_true(info->finished_wall_ns > 0);
}

static void test_pipeline__does_not_run_what_is_lost_already(void **state)
{
    (void)state;
    struct test_backend backend = {0};
    struct al_job_info info;
    struct al_test_job late = {.wall_ms = 10000, .deadline_ms = al_now_ms() + 200};
    struct al_job *job = run_job(&backend, late, false, false, &info);
    assert_int_equal(backend.runs, 0);
    assert_int_equal(info.status, AL_STATUS_TIMEOUT);
    assert_int_equal(info.result->limit_hit, AL_LIMIT_WALL);
    assert_int_equal(info.quotas.wall_ms, 10000);
    al_job_unref(job);
    job = run_job(&backend, (struct al_test_job){0}, true, false, &info);
    assert_never_ran(&backend, &info);
    al_job_unref(job);
    job = run_job(&backend, (struct al_test_job){0}, true, true, &info);
    assert_never_ran(&backend, &info);
    al_job_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline__returns_the_backends_result),
        cmocka_unit_test(test_pipeline__a_backends_error_is_a_result),
        cmocka_unit_test(test_pipeline__the_deadline_shortens_the_wall_limit),
        cmocka_unit_test(test_pipeline__does_not_run_what_is_lost_already),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
