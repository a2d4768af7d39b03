/* A job that outlives its readers. */
#include "service/job.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/service/job_support.h"

#define KIB ((size_t)1 << 10)

/* A reader and the turns that it has got. */
struct test_reader {
    struct al_reader base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned turns;
};

static void give_turn(struct test_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    reader->turns++;
    pthread_cond_signal(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
}

static void wake(struct al_reader *base)
{
    give_turn((struct test_reader *)base);
}

static void wait_turn(struct test_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    while (reader->turns == 0) {
        pthread_cond_wait(&reader->changed, &reader->lock);
    }
    reader->turns--;
    pthread_mutex_unlock(&reader->lock);
}

static void init_reader(struct test_reader *reader)
{
    *reader = (struct test_reader){
        .base.wake = wake,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
}

static struct al_job *create(size_t ring_bytes, size_t keep_bytes)
{
    return al_test_job_create(&(struct al_test_job){
        .lane = AL_LANE_STREAMS, .ring_bytes = ring_bytes, .keep_bytes = keep_bytes});
}

static size_t print(struct al_job *job, const char *text)
{
    return al_sink_append(al_job_sink(job), AL_STDOUT, (const uint8_t *)text, strlen(text));
}

static struct al_event *next(struct al_job *job, const struct test_reader *reader)
{
    enum al_reader_state state;
    return al_job_next(job, &reader->base, &state);
}

static enum al_reader_state state_of(struct al_job *job, const struct test_reader *reader)
{
    enum al_reader_state state = AL_READER_IDLE;
    assert_null(al_job_next(job, &reader->base, &state));
    return state;
}

static void assert_text(struct al_job *job, const struct test_reader *reader, uint64_t sequence,
                        const char *text)
{
    struct al_event *event = next(job, reader);
    assert_non_null(event);
    assert_int_equal(event->sequence, sequence);
    assert_int_equal(event->bytes.len, strlen(text));
    assert_memory_equal(event->bytes.data, text, strlen(text));
    al_job_event_done(job, &reader->base, event);
}

static void end(struct al_job *job)
{
    struct al_result result;
    al_result_init(&result);
    al_job_end(job, &result);
}

static void test_job__a_second_reader_goes_on_where_the_first_stopped(void **state)
{
    (void)state;
    struct test_reader first;
    struct test_reader second;
    bool was_idle = true;
    struct al_job *job = create(64 * KIB, 64 * KIB);
    init_reader(&first);
    init_reader(&second);
    al_job_set_reader(job, &first.base);
    assert_text(job, &first, 1, ""); /* PENDING */
    print(job, "one");
    assert_text(job, &first, 2, "one");
    print(job, "two");
    assert_text(job, &first, 3, "two");
    assert_false(al_job_detach(job, &first.base)); /* it has its turn */
    assert_int_equal(state_of(job, &first), AL_READER_DETACHED);
    print(job, "three");
    assert_int_equal(first.turns, 0);
    assert_int_equal(al_job_attach(job, &second.base, 2, &was_idle), 0);
    assert_false(was_idle);
    assert_text(job, &second, 3, "two");
    assert_text(job, &second, 4, "three");
    assert_int_equal(state_of(job, &second), AL_READER_IDLE);
    print(job, "four");
    assert_int_equal(second.turns, 1);
    assert_text(job, &second, 5, "four");
    end(job);
    assert_text(job, &second, 6, "");
    assert_text(job, &second, 7, "");
    assert_int_equal(state_of(job, &second), AL_READER_FINISHED);
    al_job_drop_output(job);
    al_job_unref(job);
}

static void test_job__the_reader_before_has_one_last_turn(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool idle;
    } rows[] = {{"it was idle", true}, {"it has an event on its way", false}};
    for (size_t i = 0; i < 2; i++) {
        struct test_reader first;
        struct test_reader second;
        bool was_idle = !rows[i].idle;
        struct al_job *job = create(64 * KIB, 64 * KIB);
        init_reader(&first);
        init_reader(&second);
        al_job_set_reader(job, &first.base);
        print_message("%s\n", rows[i].name);
        struct al_event *event = next(job, &first);
        if (rows[i].idle) {
            al_job_event_done(job, &first.base, event);
            assert_int_equal(state_of(job, &first), AL_READER_IDLE);
        }
        assert_int_equal(al_job_attach(job, &second.base, 0, &was_idle), 0);
        assert_int_equal(was_idle, rows[i].idle);
        if (!rows[i].idle) {
            al_job_event_done(job, &first.base, event); /* changes nothing for the second */
            assert_int_equal(state_of(job, &first), AL_READER_DETACHED);
        }
        assert_false(al_job_detach(job, &first.base));
        assert_text(job, &second, 1, "");
        assert_int_equal(state_of(job, &second), AL_READER_IDLE);
        print(job, "x");
        assert_int_equal(first.turns, 0);
        assert_int_equal(second.turns, 1);
        al_test_job_end(job, AL_STATUS_SUCCEEDED);
        al_job_unref(job);
    }
}

static void test_job__attach_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t keep_bytes;
        bool discard;
        uint64_t after;
        int r;
    } rows[] = {
        {"does not linger", 0, false, 0, -ENOENT},
        {"is given up", KIB, true, 0, -ENOENT},
        {"not there yet", KIB, false, 2, -ERANGE},
        {"the last event", KIB, false, 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct test_reader reader;
        bool was_idle;
        init_reader(&reader);
        struct al_job *job = create(64 * KIB, rows[i].keep_bytes);
        if (rows[i].discard) {
            al_job_discard(job);
        }
        print_message("%s\n", rows[i].name);
        assert_int_equal(al_job_attach(job, &reader.base, rows[i].after, &was_idle), rows[i].r);
        al_test_job_end(job, AL_STATUS_SUCCEEDED);
        al_job_unref(job);
    }
}

static bool is_told_of_room(struct al_job *job)
{
    struct pollfd pfd = {.fd = al_ctl_fd(al_job_ctl(job)), .events = POLLIN};
    return poll(&pfd, 1, 0) == 1;
}

static void test_job__without_a_reader_a_full_ring_stops_the_program(void **state)
{
    (void)state;
    static uint8_t zeros[128 << 10];
    struct test_reader reader;
    init_reader(&reader);
    struct al_job *job = create(64 * KIB, 64 * KIB);
    al_job_set_reader(job, &reader.base);
    (void)al_job_detach(job, &reader.base);
    size_t taken = al_sink_append(al_job_sink(job), AL_STDOUT, zeros, sizeof zeros);
    assert_in_range(taken, 32 * KIB, 64 * KIB);
    assert_int_equal(al_sink_append(al_job_sink(job), AL_STDOUT, zeros, 1), 0);
    assert_false(is_told_of_room(job));
    assert_in_range(al_job_memory(job), taken, 64 * KIB);
    al_job_discard(job);
    assert_true(is_told_of_room(job));
    assert_int_equal(al_job_memory(job), 0);
    assert_int_equal(al_sink_append(al_job_sink(job), AL_STDOUT, zeros, sizeof zeros),
                     sizeof zeros);
    al_test_job_end(job, AL_STATUS_KILLED);
    al_job_unref(job);
}

/* --- races --- */

#define TOTAL   (2u << 20)
#define READERS 40

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 >> 3);
}

/* A program that prints known bytes, and waits on its ctl when the ring is full. */
static void *write_all(void *arg)
{
    struct al_job *job = arg;
    uint8_t chunk[3000];
    size_t sent = 0;
    al_job_begin(job);
    while (sent < TOTAL) {
        size_t n = sent % sizeof chunk + 1;
        n = n < TOTAL - sent ? n : TOTAL - sent;
        for (size_t i = 0; i < n; i++) {
            chunk[i] = byte_at(sent + i);
        }
        size_t taken = al_sink_append(al_job_sink(job), AL_STDOUT, chunk, n);
        sent += taken;
        if (taken < n) {
            struct pollfd pfd = {.fd = al_ctl_fd(al_job_ctl(job)), .events = POLLIN};
            (void)poll(&pfd, 1, -1);
            al_ctl_clear(al_job_ctl(job));
        }
    }
    end(job);
    return NULL;
}

/* What all readers together have heard, in the order of the readers. */
struct heard {
    uint64_t sequence;
    size_t bytes;
    bool result;
};

struct follower {
    struct test_reader reader; /* first */
    struct al_job *job;
    struct heard heard; /* what it begins with, and then what it has come to */
    size_t patience;    /* events after which it is to be replaced */
    pthread_mutex_t *lock;
    pthread_cond_t *tired;
    bool is_tired;
    bool is_replaced;
};

static void hear(struct heard *heard, const struct al_event *event)
{
    assert_int_equal(event->sequence, heard->sequence + 1);
    heard->sequence = event->sequence;
    for (size_t i = 0; i < event->bytes.len; i++) {
        assert_int_equal(event->bytes.data[i], byte_at(heard->bytes + i));
    }
    heard->bytes += event->bytes.len;
    heard->result = event->kind == AL_EVENT_RESULT;
}

static void get_tired(struct follower *f, const struct heard *heard)
{
    pthread_mutex_lock(f->lock);
    if (!f->is_tired) {
        f->heard = *heard;
        f->is_tired = true;
        pthread_cond_broadcast(f->tired);
    }
    pthread_mutex_unlock(f->lock);
}

static void wait_replaced(struct follower *f)
{
    pthread_mutex_lock(f->lock);
    while (!f->is_replaced) {
        pthread_cond_wait(f->tired, f->lock);
    }
    pthread_mutex_unlock(f->lock);
}

static void set_replaced(struct follower *f)
{
    pthread_mutex_lock(f->lock);
    f->is_replaced = true;
    pthread_cond_broadcast(f->tired);
    pthread_mutex_unlock(f->lock);
}

/* Reads until it is replaced: by then it may have read one event more than `patience` (the ring
 * keeps that one and this); what counts is what it had heard when it got tired. */
static void *follow(void *arg)
{
    struct follower *f = arg;
    struct heard heard = f->heard;
    size_t events = 0;
    for (;;) {
        enum al_reader_state state;
        if (events > f->patience) {
            wait_replaced(f);
        }
        struct al_event *event = al_job_next(f->job, &f->reader.base, &state);
        if (event) {
            hear(&heard, event);
            if (++events == f->patience || heard.result) {
                get_tired(f, &heard);
            }
            al_job_event_done(f->job, &f->reader.base, event);
        } else if (state == AL_READER_IDLE) {
            wait_turn(&f->reader);
        } else {
            return NULL;
        }
    }
}

static void init_follower(struct follower *f, struct al_job *job, pthread_mutex_t *lock,
                          pthread_cond_t *tired)
{
    *f = (struct follower){.job = job, .lock = lock, .tired = tired};
    init_reader(&f->reader);
}

/* Waits until the follower has had enough; what it had heard then. */
static struct heard wait_tired(struct follower *f)
{
    pthread_mutex_lock(f->lock);
    while (!f->is_tired) {
        pthread_cond_wait(f->tired, f->lock);
    }
    struct heard heard = f->heard;
    pthread_mutex_unlock(f->lock);
    return heard;
}

static void test_job__take_overs_lose_and_repeat_nothing(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t tired = PTHREAD_COND_INITIALIZER;
    static struct follower followers[READERS];
    pthread_t threads[READERS];
    pthread_t writer;
    struct heard heard = {0};
    struct al_job *job = create(40 * KIB, 80 * KIB);
    size_t n = 0;
    init_follower(&followers[0], job, &lock, &tired);
    al_job_set_reader(job, &followers[0].reader.base);
    assert_int_equal(pthread_create(&writer, NULL, write_all, job), 0);
    for (; !heard.result; n++) {
        bool was_idle = false;
        if (n > 0) {
            init_follower(&followers[n], job, &lock, &tired);
            assert_int_equal(
                al_job_attach(job, &followers[n].reader.base, heard.sequence, &was_idle), 0);
            set_replaced(&followers[n - 1]);
            if (was_idle) {
                give_turn(&followers[n - 1].reader);
            }
        }
        followers[n].heard = heard;
        followers[n].patience = n == READERS - 1 ? SIZE_MAX : 1 + n % 5;
        assert_int_equal(pthread_create(&threads[n], NULL, follow, &followers[n]), 0);
        heard = wait_tired(&followers[n]);
    }
    pthread_join(writer, NULL);
    (void)al_job_detach(job, &followers[n - 1].reader.base);
    for (size_t i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(heard.bytes, TOTAL);
    al_job_drop_output(job);
    al_job_unref(job);
}

static void *detach_and_discard(void *arg)
{
    struct follower *f = arg;
    if (al_job_detach(f->job, &f->reader.base)) {
        give_turn(&f->reader);
    }
    al_job_discard(f->job);
    return NULL;
}

static void test_job__giving_up_while_it_prints_is_safe(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t tired = PTHREAD_COND_INITIALIZER;
    for (int round = 0; round < 20; round++) {
        struct follower f;
        pthread_t writer;
        pthread_t reader;
        pthread_t killer;
        struct al_job *job = create(40 * KIB, 40 * KIB);
        init_follower(&f, job, &lock, &tired);
        f.patience = (size_t)round + 1;
        f.is_replaced = true;
        al_job_set_reader(job, &f.reader.base);
        assert_int_equal(pthread_create(&writer, NULL, write_all, job), 0);
        assert_int_equal(pthread_create(&reader, NULL, follow, &f), 0);
        (void)wait_tired(&f);
        assert_int_equal(pthread_create(&killer, NULL, detach_and_discard, &f), 0);
        pthread_join(killer, NULL);
        pthread_join(reader, NULL);
        pthread_join(writer, NULL);
        al_job_drop_output(job);
        al_job_unref(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job__a_second_reader_goes_on_where_the_first_stopped),
        cmocka_unit_test(test_job__the_reader_before_has_one_last_turn),
        cmocka_unit_test(test_job__attach_is_refused),
        cmocka_unit_test(test_job__without_a_reader_a_full_ring_stops_the_program),
        cmocka_unit_test(test_job__take_overs_lose_and_repeat_nothing),
        cmocka_unit_test(test_job__giving_up_while_it_prints_is_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
