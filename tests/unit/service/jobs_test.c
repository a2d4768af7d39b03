#include "service/jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/service/job_support.h"

static struct al_job *insert(struct al_jobs *jobs, const char *tenant)
{
    struct al_job *job =
        al_test_job_create(&(struct al_test_job){.tenant = tenant, .ring_bytes = 2048});
    al_jobs_insert(jobs, job);
    return job;
}

static bool is_found(struct al_jobs *jobs, const char *tenant, const char *id)
{
    struct al_job *job = al_jobs_find(jobs, tenant, id);
    al_job_unref(job);
    return job;
}

static void test_jobs__another_tenants_job_is_not_found(void **state)
{
    (void)state;
    struct al_jobs *jobs = al_jobs_create(10);
    struct al_job *job = insert(jobs, "a");
    assert_true(is_found(jobs, "a", al_job_id(job)));
    assert_false(is_found(jobs, "b", al_job_id(job)));
    assert_false(is_found(jobs, "", al_job_id(job)));
    assert_false(is_found(jobs, "a", "0000000000000000"));
    al_test_job_end(job, AL_STATUS_SUCCEEDED);
    al_job_unref(job);
    al_jobs_destroy(jobs);
}

static void test_jobs__drops_the_oldest_of_its_history(void **state)
{
    (void)state;
    enum { N = 7 };
    static const uint32_t histories[] = {0, 1, 3, 100};
    for (size_t i = 0; i < sizeof histories / sizeof histories[0]; i++) {
        struct al_jobs *jobs = al_jobs_create(histories[i]);
        struct al_job *all[N];
        struct al_job *running = insert(jobs, "a");
        for (int k = 0; k < N; k++) {
            all[k] = insert(jobs, "a");
            al_test_job_end(all[k], AL_STATUS_SUCCEEDED);
            al_jobs_retire(jobs, all[k]);
        }
        for (int k = 0; k < N; k++) {
            assert_int_equal(is_found(jobs, "a", al_job_id(all[k])), k >= N - (int)histories[i]);
            al_job_unref(all[k]);
        }
        assert_true(is_found(jobs, "a", al_job_id(running)));
        al_test_job_end(running, AL_STATUS_SUCCEEDED);
        al_job_unref(running);
        al_jobs_destroy(jobs);
    }
}

static void test_jobs__remove_forgets(void **state)
{
    (void)state;
    struct al_jobs *jobs = al_jobs_create(10);
    struct al_job *job = insert(jobs, "a");
    al_jobs_remove(jobs, job);
    assert_false(is_found(jobs, "a", al_job_id(job)));
    al_job_unref(job);
    al_jobs_destroy(jobs);
}

static void test_jobs__cancel_all_spares_the_ended(void **state)
{
    (void)state;
    const struct al_executor_limits limits = {.slots = {1, 1}};
    struct al_executor *executor = al_executor_create(&limits);
    struct al_jobs *jobs = al_jobs_create(10);
    struct al_job *ended = insert(jobs, "a");
    struct al_job *running =
        al_test_job_create(&(struct al_test_job){.ring_bytes = 2048, .executor = executor});
    al_jobs_insert(jobs, running);
    al_test_job_end(ended, AL_STATUS_SUCCEEDED);
    al_jobs_retire(jobs, ended);
    al_jobs_cancel_all(jobs);
    assert_true(al_ctl_cancelled(al_job_ctl(running)));
    al_test_job_end(running, AL_STATUS_KILLED);
    al_job_unref(running);
    al_job_unref(ended);
    al_jobs_destroy(jobs);
    al_executor_destroy(executor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs__another_tenants_job_is_not_found),
        cmocka_unit_test(test_jobs__drops_the_oldest_of_its_history),
        cmocka_unit_test(test_jobs__remove_forgets),
        cmocka_unit_test(test_jobs__cancel_all_spares_the_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
