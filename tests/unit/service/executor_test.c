#include "service/executor.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TASKS_MAX 64

/* Tasks that wait at a gate while they run, and the order in which they came to it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int open_gates;
static int n_running;
static int n_running_max;
static char order[TASKS_MAX + 1];
static size_t n_order;

struct test_task {
    struct al_task base;
    char name;
    bool done;
    bool removed;
};

static struct test_task tasks[TASKS_MAX];
static size_t n_tasks;

static void run_gated(struct al_task *base, bool removed)
{
    struct test_task *task = (struct test_task *)base;
    pthread_mutex_lock(&lock);
    task->removed = removed;
    if (!removed) {
        order[n_order++] = task->name;
        n_running++;
        n_running_max = n_running > n_running_max ? n_running : n_running_max;
        pthread_cond_broadcast(&changed);
        while (open_gates == 0) {
            pthread_cond_wait(&changed, &lock);
        }
        open_gates--;
        n_running--;
    }
    task->done = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int setup(void **state)
{
    (void)state;
    memset(tasks, 0, sizeof tasks);
    memset(order, 0, sizeof order);
    n_tasks = n_order = 0;
    open_gates = n_running = n_running_max = 0;
    return 0;
}

static struct al_executor *make(uint32_t runs, uint32_t streams, uint64_t memory_bytes)
{
    const struct al_executor_limits limits = {
        .slots = {runs, streams},
        .queue_max = 8,
        .queue_tenant_max = 4,
        .memory_bytes = memory_bytes,
    };
    struct al_executor *executor = al_executor_create(&limits);
    assert_non_null(executor);
    return executor;
}

static struct test_task *new_task(const char *tenant, char name)
{
    struct test_task *task = &tasks[n_tasks++];
    task->base = (struct al_task){.run = run_gated, .tenant = tenant, .memory_bytes = 1};
    task->name = name;
    return task;
}

static struct test_task *submit(struct al_executor *executor, const char *tenant, char name)
{
    struct test_task *task = new_task(tenant, name);
    assert_int_equal(al_executor_submit(executor, &task->base, NULL), 0);
    return task;
}

static void wait_order(size_t n)
{
    pthread_mutex_lock(&lock);
    while (n_order < n) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void open_gate(int n)
{
    pthread_mutex_lock(&lock);
    open_gates += n;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_done(const struct test_task *task)
{
    pthread_mutex_lock(&lock);
    while (!task->done) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

/* Lets `n` tasks end, one after the other, when `started` have started in all. */
static void let_end_one_by_one(size_t started, size_t all)
{
    for (size_t i = started; i <= all; i++) {
        wait_order(i);
        open_gate(1);
    }
}

static void test_executor__takes_tenants_in_turn(void **state)
{
    (void)state;
    struct al_executor *executor = make(1, 1, 1000);
    submit(executor, "a", '1');
    submit(executor, "a", '2');
    submit(executor, "a", '3');
    submit(executor, "a", '4');
    submit(executor, "b", '5');
    submit(executor, "b", '6');
    submit(executor, "c", '7');
    let_end_one_by_one(1, 7);
    al_executor_destroy(executor);
    assert_string_equal(order, "1257364");
}

static void test_executor__runs_as_many_as_there_are_slots(void **state)
{
    (void)state;
    struct al_executor *executor = make(3, 1, 1000);
    for (int i = 0; i < 7; i++) {
        submit(executor, i % 2 ? "a" : "b", (char)('1' + i));
    }
    wait_order(3);
    open_gate(7);
    al_executor_destroy(executor);
    assert_int_equal(n_order, 7);
    assert_int_equal(n_running_max, 3);
}

static void test_executor__lanes_have_their_own_slots(void **state)
{
    (void)state;
    struct al_executor *executor = make(1, 1, 1000);
    submit(executor, "a", '1');
    submit(executor, "a", '2');
    struct test_task *stream = new_task("a", 's');
    stream->base.lane = AL_LANE_STREAMS;
    assert_int_equal(al_executor_submit(executor, &stream->base, NULL), 0);
    wait_order(2);
    assert_non_null(strchr(order, 's'));
    open_gate(3);
    al_executor_destroy(executor);
    assert_int_equal(n_order, 3);
}

static void test_executor__refuses_beyond_its_bounds(void **state)
{
    (void)state;
    struct al_executor *executor = make(1, 1, 1000);
    struct al_err err = {0};
    submit(executor, "a", 'x');
    wait_order(1);
    for (int i = 0; i < 4; i++) {
        submit(executor, "a", 'a');
    }
    struct test_task *task = new_task("a", 'n');
    assert_true(al_executor_submit(executor, &task->base, &err) < 0);
    assert_int_equal(err.code, AL_ERR_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(err.text, "tenant a"));
    for (int i = 0; i < 4; i++) {
        submit(executor, "b", 'b');
    }
    err = (struct al_err){0};
    task = new_task("c", 'n');
    assert_true(al_executor_submit(executor, &task->base, &err) < 0);
    assert_int_equal(err.code, AL_ERR_RESOURCE_EXHAUSTED);
    let_end_one_by_one(1, 9);
    al_executor_destroy(executor);
    assert_null(strchr(order, 'n'));
}

static void test_executor__a_removed_task_never_runs(void **state)
{
    (void)state;
    struct al_executor *executor = make(1, 1, 1000);
    struct test_task *first = submit(executor, "a", '1');
    struct test_task *second = submit(executor, "a", '2');
    submit(executor, "a", '3');
    wait_order(1);
    assert_true(al_executor_remove(executor, &second->base));
    assert_true(second->done && second->removed);
    assert_false(al_executor_remove(executor, &second->base));
    assert_false(al_executor_remove(executor, &first->base));
    open_gate(2);
    al_executor_destroy(executor);
    assert_string_equal(order, "13");
}

static void test_executor__waits_for_memory(void **state)
{
    (void)state;
    struct al_executor *executor = make(4, 4, 10);
    struct test_task *big = new_task("a", '1');
    big->base.memory_bytes = 8;
    struct test_task *large = new_task("b", '2');
    large->base.memory_bytes = 100; /* more than there is: alone */
    struct test_task *small = new_task("c", '3');
    small->base.lane = AL_LANE_STREAMS; /* would fit, but came later */
    assert_int_equal(al_executor_submit(executor, &big->base, NULL), 0);
    assert_int_equal(al_executor_submit(executor, &large->base, NULL), 0);
    assert_int_equal(al_executor_submit(executor, &small->base, NULL), 0);
    open_gate(1);
    wait_done(big);
    assert_int_equal(n_order, 1);
    al_executor_return_memory(executor, &big->base, 1); /* `large` needs all of it */
    al_executor_return_memory(executor, &big->base, 2);
    assert_int_equal(n_order, 1);
    al_executor_return_memory(executor, &big->base, 0);
    al_executor_return_memory(executor, &big->base, 0);
    wait_order(2);
    open_gate(1);
    wait_done(large);
    al_executor_return_memory(executor, &large->base, 0);
    wait_order(3);
    open_gate(1);
    al_executor_destroy(executor);
    assert_string_equal(order, "123");
    assert_int_equal(n_running_max, 1);
}

static void test_executor__removing_the_one_that_waits_for_memory_lets_others_start(void **state)
{
    (void)state;
    struct al_executor *executor = make(4, 4, 10);
    struct test_task *big = new_task("a", '1');
    big->base.memory_bytes = 8;
    struct test_task *large = new_task("b", '2');
    large->base.memory_bytes = 8;
    assert_int_equal(al_executor_submit(executor, &big->base, NULL), 0);
    wait_order(1);
    assert_int_equal(al_executor_submit(executor, &large->base, NULL), 0);
    submit(executor, "c", '3');
    assert_true(al_executor_remove(executor, &large->base));
    wait_order(2);
    open_gate(2);
    al_executor_destroy(executor);
    assert_string_equal(order, "13");
}

struct flood {
    struct al_executor *executor;
    unsigned n_done;
    unsigned n_refused;
};

struct flood_task {
    struct al_task base;
    struct flood *flood;
};

static void count_and_free(struct al_task *base, bool removed)
{
    (void)removed;
    struct flood *flood = ((struct flood_task *)base)->flood;
    al_executor_return_memory(flood->executor, base, 0);
    free(base);
    pthread_mutex_lock(&lock);
    flood->n_done++;
    pthread_mutex_unlock(&lock);
}

static void *submit_many(void *arg)
{
    static const char *const tenants[] = {"a", "b", "c", "d", "e"};
    struct flood *flood = arg;
    for (int i = 0; i < 2000; i++) {
        struct flood_task *task = calloc(1, sizeof *task);
        if (!task) {
            abort();
        }
        task->flood = flood;
        task->base = (struct al_task){
            .run = count_and_free,
            .tenant = tenants[i % 5],
            .lane = (enum al_lane)(i % 2),
            .memory_bytes = (size_t)(i % 7),
        };
        if (al_executor_submit(flood->executor, &task->base, NULL) < 0) {
            free(task);
            pthread_mutex_lock(&lock);
            flood->n_refused++;
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

static void test_executor__loses_nothing_under_load(void **state)
{
    (void)state;
    struct flood flood = {.executor = make(3, 2, 20)};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, &flood), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    for (;;) {
        pthread_mutex_lock(&lock);
        bool all = flood.n_done + flood.n_refused == 8000;
        pthread_mutex_unlock(&lock);
        if (all) {
            break;
        }
        sched_yield();
    }
    al_executor_destroy(flood.executor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_executor__takes_tenants_in_turn, setup),
        cmocka_unit_test_setup(test_executor__runs_as_many_as_there_are_slots, setup),
        cmocka_unit_test_setup(test_executor__lanes_have_their_own_slots, setup),
        cmocka_unit_test_setup(test_executor__refuses_beyond_its_bounds, setup),
        cmocka_unit_test_setup(test_executor__a_removed_task_never_runs, setup),
        cmocka_unit_test_setup(test_executor__waits_for_memory, setup),
        cmocka_unit_test_setup(
            test_executor__removing_the_one_that_waits_for_memory_lets_others_start, setup),
        cmocka_unit_test_setup(test_executor__loses_nothing_under_load, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
