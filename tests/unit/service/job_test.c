#include "service/job.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/service/job_support.h"

#define KIB ((size_t)1 << 10)

/* A reader that, once woken, may take events; the test plays its thread. */
struct test_reader {
    struct al_reader base;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    unsigned wakes;
};

static void count_wake(struct al_reader *base)
{
    struct test_reader *reader = (struct test_reader *)base;
    pthread_mutex_lock(&reader->lock);
    reader->wakes++;
    pthread_cond_signal(&reader->woken);
    pthread_mutex_unlock(&reader->lock);
}

static struct test_reader make_reader(void)
{
    return (struct test_reader){
        .base.wake = count_wake,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .woken = PTHREAD_COND_INITIALIZER,
    };
}

static size_t print(struct al_job *job, const char *text)
{
    return al_sink_append(al_job_sink(job), AL_STDOUT, (const uint8_t *)text, strlen(text));
}

/* The next event must be of that kind; what it carries, for a status. */
static int assert_next(struct al_job *job, const struct test_reader *reader,
                       enum al_event_kind kind)
{
    enum al_reader_state state;
    struct al_event *event = al_job_next(job, &reader->base, &state);
    assert_non_null(event);
    assert_int_equal(event->kind, kind);
    int what = kind == AL_EVENT_STATUS ? (int)event->status : (int)event->bytes.len;
    al_job_event_done(job, &reader->base, event);
    return what;
}

static void assert_none(struct al_job *job, const struct al_reader *reader,
                        enum al_reader_state want)
{
    enum al_reader_state state;
    assert_null(al_job_next(job, reader, &state));
    assert_int_equal(state, want);
}

static void test_job__tells_its_whole_life(void **state)
{
    (void)state;
    struct test_reader reader = make_reader();
    struct al_job *job =
        al_test_job_create(&(struct al_test_job){.lane = AL_LANE_STREAMS, .ring_bytes = 64 * KIB});
    struct al_job_info info;
    al_job_set_reader(job, &reader.base);
    assert_int_equal(assert_next(job, &reader, AL_EVENT_STATUS), AL_STATUS_PENDING);
    assert_none(job, &reader.base, AL_READER_IDLE);
    al_job_begin(job);
    assert_int_equal(reader.wakes, 1);
    print(job, "hello");
    assert_int_equal(reader.wakes, 1); /* it has not come back yet */
    assert_int_equal(assert_next(job, &reader, AL_EVENT_STATUS), AL_STATUS_RUNNING);
    assert_int_equal(assert_next(job, &reader, AL_EVENT_STDOUT), 5);
    assert_none(job, &reader.base, AL_READER_IDLE);
    al_job_info(job, &info);
    assert_null(info.result);
    assert_int_equal(info.status, AL_STATUS_RUNNING);

    struct al_result result;
    al_result_init(&result);
    result.status = AL_STATUS_TIMEOUT;
    al_job_end(job, &result);
    assert_int_equal(reader.wakes, 2);
    assert_int_equal(assert_next(job, &reader, AL_EVENT_STATUS), AL_STATUS_TIMEOUT);
    assert_next(job, &reader, AL_EVENT_RESULT);
    al_job_drop_output(job);
    al_job_info(job, &info);
    assert_int_equal(info.result->status, AL_STATUS_TIMEOUT);
    assert_true(info.created_wall_ns <= info.started_wall_ns);
    assert_true(info.started_wall_ns <= info.finished_wall_ns);
    assert_string_equal(info.tenant_id, "t");
    assert_string_equal(info.user_id, "user");
    assert_int_equal(info.n_metadata, 2);
    assert_string_equal(info.metadata[0].value, "1");
    assert_int_equal(strspn(info.id, "0123456789abcdef"), AL_JOB_ID_LEN);
    al_job_unref(job);
}

static void test_job__a_byte_reaches_an_idle_reader_at_once(void **state)
{
    (void)state;
    struct test_reader reader = make_reader();
    struct al_job *job =
        al_test_job_create(&(struct al_test_job){.lane = AL_LANE_STREAMS, .ring_bytes = 64 * KIB});
    al_job_set_reader(job, &reader.base);
    assert_next(job, &reader, AL_EVENT_STATUS);
    for (unsigned i = 1; i <= 3; i++) {
        assert_none(job, &reader.base, AL_READER_IDLE);
        print(job, "x");
        assert_int_equal(reader.wakes, i);
        assert_int_equal(assert_next(job, &reader, AL_EVENT_STDOUT), 1);
    }
    al_test_job_end(job, AL_STATUS_SUCCEEDED);
    al_job_unref(job);
}

static void test_job__a_run_keeps_output_only(void **state)
{
    (void)state;
    struct al_job *job = al_test_job_create(
        &(struct al_test_job){.lane = AL_LANE_RUNS, .ring_bytes = al_ring_bytes_for(100)});
    al_job_begin(job);
    print(job, "one");
    al_sink_append(al_job_sink(job), AL_STDERR, (const uint8_t *)"e", 1);
    print(job, "two");
    struct al_result result;
    al_result_init(&result);
    al_job_end(job, &result);
    static const size_t lengths[] = {6, 1};
    for (int i = 0; i < 2; i++) {
        enum al_reader_state none;
        struct al_event *event = al_job_next(job, NULL, &none);
        assert_non_null(event);
        assert_int_equal(event->bytes.len, lengths[i]);
        al_job_event_done(job, NULL, event);
    }
    assert_none(job, NULL, AL_READER_FINISHED);
    al_job_drop_output(job);
    al_job_unref(job);
}

static void test_job__detached_drops_everything(void **state)
{
    (void)state;
    struct test_reader reader = make_reader();
    struct al_job *job =
        al_test_job_create(&(struct al_test_job){.lane = AL_LANE_STREAMS, .ring_bytes = 2 * KIB});
    char text[4096];
    memset(text, 'x', sizeof text);
    al_job_set_reader(job, &reader.base);
    assert_true(al_sink_append(al_job_sink(job), AL_STDOUT, (uint8_t *)text, sizeof text) <
                sizeof text);
    assert_false(al_job_detach(job, &reader.base)); /* it was busy */
    struct pollfd pfd = {.fd = al_ctl_fd(al_job_ctl(job)), .events = POLLIN};
    assert_int_equal(poll(&pfd, 1, 0), 1); /* there is room */
    for (int i = 0; i < 100; i++) {
        assert_int_equal(al_sink_append(al_job_sink(job), AL_STDOUT, (uint8_t *)text, sizeof text),
                         sizeof text);
    }
    assert_none(job, &reader.base, AL_READER_DETACHED);
    assert_int_equal(reader.wakes, 0);
    al_test_job_end(job, AL_STATUS_KILLED);
    al_job_unref(job);
}

static void test_job__detach_gives_an_idle_readers_turn_away_once(void **state)
{
    (void)state;
    struct test_reader reader = make_reader();
    struct al_job *job =
        al_test_job_create(&(struct al_test_job){.lane = AL_LANE_STREAMS, .ring_bytes = 2 * KIB});
    al_job_set_reader(job, &reader.base);
    assert_next(job, &reader, AL_EVENT_STATUS);
    assert_none(job, &reader.base, AL_READER_IDLE);
    assert_true(al_job_detach(job, &reader.base));
    assert_false(al_job_detach(job, &reader.base));
    print(job, "x");
    al_test_job_end(job, AL_STATUS_KILLED);
    assert_int_equal(reader.wakes, 0);
    al_job_unref(job);
}

struct flow {
    struct al_job *job;
    struct test_reader reader;
    size_t total;
};

/* A program that prints numbered bytes, and waits on its ctl when the ring is full. */
static void *write_all(void *arg)
{
    struct flow *flow = arg;
    struct al_ctl *ctl = al_job_ctl(flow->job);
    uint8_t chunk[5000];
    size_t sent = 0;
    al_job_begin(flow->job);
    while (sent < flow->total) {
        size_t n = sent % sizeof chunk + 1;
        n = n < flow->total - sent ? n : flow->total - sent;
        for (size_t i = 0; i < n; i++) {
            chunk[i] = (uint8_t)((sent + i) * 31 >> 3);
        }
        size_t taken = al_sink_append(al_job_sink(flow->job), AL_STDOUT, chunk, n);
        sent += taken;
        if (taken < n) {
            struct pollfd pfd = {.fd = al_ctl_fd(ctl), .events = POLLIN};
            (void)poll(&pfd, 1, -1);
            al_ctl_clear(ctl);
        }
    }
    struct al_result result;
    al_result_init(&result);
    al_job_end(flow->job, &result);
    return NULL;
}

static struct al_event *wait_event(struct flow *flow, unsigned *seen)
{
    struct al_event *event;
    enum al_reader_state state;
    while (!(event = al_job_next(flow->job, &flow->reader.base, &state))) {
        pthread_mutex_lock(&flow->reader.lock);
        while (flow->reader.wakes == *seen) {
            pthread_cond_wait(&flow->reader.woken, &flow->reader.lock);
        }
        *seen = flow->reader.wakes;
        pthread_mutex_unlock(&flow->reader.lock);
    }
    return event;
}

static void test_job__a_slow_reader_stops_the_program_and_loses_nothing(void **state)
{
    (void)state;
    struct flow flow = {.reader = make_reader(), .total = 3 << 20};
    flow.job =
        al_test_job_create(&(struct al_test_job){.lane = AL_LANE_STREAMS, .ring_bytes = 20 * KIB});
    al_job_set_reader(flow.job, &flow.reader.base);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_all, &flow), 0);
    size_t got = 0;
    uint64_t sequence = 0;
    unsigned seen = 0;
    bool last = false;
    while (!last) {
        struct al_event *event = wait_event(&flow, &seen);
        assert_int_equal(event->sequence, ++sequence);
        for (size_t i = 0; i < event->bytes.len; i++) {
            assert_int_equal(event->bytes.data[i], (uint8_t)((got + i) * 31 >> 3));
        }
        got += event->bytes.len;
        last = event->kind == AL_EVENT_RESULT;
        al_job_event_done(flow.job, &flow.reader.base, event);
    }
    assert_int_equal(got, flow.total);
    pthread_join(thread, NULL);
    al_job_drop_output(flow.job);
    al_job_unref(flow.job);
}

struct test_waiter {
    struct al_job_waiter base;
    enum al_status status;
    int calls;
};

static void note_end(struct al_job_waiter *base, enum al_status status)
{
    struct test_waiter *waiter = (struct test_waiter *)base;
    waiter->status = status;
    waiter->calls++;
}

static void test_job__tells_all_waiters_once(void **state)
{
    (void)state;
    enum al_status status = AL_STATUS_PENDING;
    struct test_waiter waiters[2] = {{.base.ended = note_end}, {.base.ended = note_end}};
    struct al_job *job = al_test_job_create(&(struct al_test_job){.ring_bytes = 2 * KIB});
    assert_true(al_job_wait(job, &waiters[0].base, &status));
    assert_true(al_job_wait(job, &waiters[1].base, &status));
    al_test_job_end(job, AL_STATUS_KILLED);
    assert_int_equal(waiters[0].calls + waiters[1].calls, 2);
    assert_int_equal(waiters[1].status, AL_STATUS_KILLED);
    assert_false(al_job_wait(job, &waiters[0].base, &status));
    assert_int_equal(status, AL_STATUS_KILLED);
    assert_false(al_job_cancel(job));
    al_job_unref(job);
}

static void test_job__cancel_fires_its_ctl(void **state)
{
    (void)state;
    const struct al_executor_limits limits = {.slots = {1, 1}};
    struct al_executor *executor = al_executor_create(&limits);
    assert_non_null(executor);
    struct al_job *job =
        al_test_job_create(&(struct al_test_job){.ring_bytes = 2 * KIB, .executor = executor});
    al_job_begin(job);
    assert_true(al_job_cancel(job));
    assert_true(al_ctl_cancelled(al_job_ctl(job)));
    al_test_job_end(job, AL_STATUS_KILLED);
    al_job_unref(job);
    al_executor_destroy(executor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job__tells_its_whole_life),
        cmocka_unit_test(test_job__a_byte_reaches_an_idle_reader_at_once),
        cmocka_unit_test(test_job__a_run_keeps_output_only),
        cmocka_unit_test(test_job__detached_drops_everything),
        cmocka_unit_test(test_job__detach_gives_an_idle_readers_turn_away_once),
        cmocka_unit_test(test_job__a_slow_reader_stops_the_program_and_loses_nothing),
        cmocka_unit_test(test_job__tells_all_waiters_once),
        cmocka_unit_test(test_job__cancel_fires_its_ctl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
