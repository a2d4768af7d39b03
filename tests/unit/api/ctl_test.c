#include "backends/api/ctl.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int set_up(void **state)
{
    *state = al_ctl_create();
    return *state ? 0 : -1;
}

static int tear_down(void **state)
{
    al_ctl_destroy(*state);
    return 0;
}

static bool is_awake(const struct al_ctl *ctl)
{
    struct pollfd pfd = {.fd = al_ctl_fd(ctl), .events = POLLIN};
    return poll(&pfd, 1, 0) == 1;
}

static size_t push(struct al_ctl *ctl, const char *text)
{
    return al_ctl_stdin_push(ctl, (const uint8_t *)text, strlen(text));
}

static void assert_waiting(struct al_ctl *ctl, const char *text, bool want_eof)
{
    uint8_t data[64];
    bool eof = !want_eof;
    size_t n = al_ctl_stdin_peek(ctl, data, sizeof data, &eof);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(data, text, n);
    assert_int_equal(eof, want_eof);
}

static void fill(struct al_ctl *ctl)
{
    static const uint8_t zeros[AL_CTL_STDIN_MAX];
    assert_int_equal(al_ctl_stdin_push(ctl, zeros, sizeof zeros), AL_CTL_STDIN_MAX);
}

/* --- waking --- */

static void test_new__sleeps(void **state)
{
    struct al_ctl *ctl = *state;
    assert_false(is_awake(ctl));
    assert_false(al_ctl_cancelled(ctl));
    assert_int_equal(al_ctl_take_signal(ctl), 0);
    assert_waiting(ctl, "", false);
}

static void test_cancel__wakes_and_stays(void **state)
{
    struct al_ctl *ctl = *state;
    al_ctl_cancel(ctl);
    al_ctl_cancel(ctl);
    assert_true(is_awake(ctl));
    al_ctl_clear(ctl);
    assert_false(is_awake(ctl));
    assert_true(al_ctl_cancelled(ctl));
}

static void test_everything__wakes(void **state)
{
    struct al_ctl *ctl = *state;
    al_ctl_room(ctl);
    assert_true(is_awake(ctl));
    al_ctl_clear(ctl);
    push(ctl, "x");
    assert_true(is_awake(ctl));
    al_ctl_clear(ctl);
    al_ctl_stdin_eof(ctl);
    assert_true(is_awake(ctl));
    al_ctl_clear(ctl);
    al_ctl_signal(ctl, 10);
    assert_true(is_awake(ctl));
}

static void test_clear__of_nothing_does_not_block(void **state)
{
    al_ctl_clear(*state);
    assert_false(is_awake(*state));
}

static void test_destroy__accepts_null(void **state)
{
    (void)state;
    al_ctl_destroy(NULL);
}

/* --- stdin --- */

static void test_stdin__peek_takes_nothing_drop_does(void **state)
{
    struct al_ctl *ctl = *state;
    assert_int_equal(push(ctl, "abcdef"), 6);
    assert_waiting(ctl, "abcdef", false);
    assert_waiting(ctl, "abcdef", false);
    al_ctl_stdin_drop(ctl, 4);
    assert_waiting(ctl, "ef", false);
    push(ctl, "gh");
    assert_waiting(ctl, "efgh", false);
    al_ctl_stdin_drop(ctl, 4);
    assert_waiting(ctl, "", false);
    al_ctl_stdin_drop(ctl, 0);
}

static void test_stdin__eof_comes_after_the_bytes(void **state)
{
    struct al_ctl *ctl = *state;
    uint8_t data[2];
    bool eof = true;
    push(ctl, "abc");
    al_ctl_stdin_eof(ctl);
    assert_int_equal(al_ctl_stdin_peek(ctl, data, sizeof data, &eof), 2);
    assert_false(eof);
    assert_waiting(ctl, "abc", true);
    al_ctl_stdin_drop(ctl, 3);
    assert_waiting(ctl, "", true);
}

static void test_stdin__after_eof_is_taken_and_dropped(void **state)
{
    struct al_ctl *ctl = *state;
    push(ctl, "abc");
    al_ctl_stdin_eof(ctl);
    assert_int_equal(push(ctl, "def"), 3);
    assert_waiting(ctl, "abc", true);
}

static void test_stdin__once_closed_is_taken_and_dropped(void **state)
{
    struct al_ctl *ctl = *state;
    push(ctl, "abc");
    al_ctl_stdin_closed(ctl);
    assert_waiting(ctl, "", false);
    fill(ctl);
    fill(ctl);
    assert_waiting(ctl, "", false);
}

static void test_stdin__is_bounded(void **state)
{
    struct al_ctl *ctl = *state;
    fill(ctl);
    assert_int_equal(push(ctl, "x"), 0);
    al_ctl_stdin_drop(ctl, AL_CTL_STDIN_MAX);
    assert_int_equal(push(ctl, "x"), 1);
}

/* --- the room callback --- */

static void count(void *arg)
{
    ++*(int *)arg;
}

static void test_room__not_told_when_nothing_was_refused(void **state)
{
    struct al_ctl *ctl = *state;
    int told = 0;
    al_ctl_on_stdin_room(ctl, count, &told);
    fill(ctl);
    al_ctl_stdin_drop(ctl, AL_CTL_STDIN_MAX);
    assert_int_equal(told, 0);
}

static void test_room__told_once_when_there_is_room(void **state)
{
    struct al_ctl *ctl = *state;
    int told = 0;
    al_ctl_on_stdin_room(ctl, count, &told);
    fill(ctl);
    push(ctl, "x");
    while (told == 0) {
        al_ctl_stdin_drop(ctl, 16 << 10);
    }
    assert_int_equal(push(ctl, "x"), 1);
    al_ctl_stdin_drop(ctl, 1);
    assert_int_equal(told, 1);
}

static void test_room__told_again_after_the_next_refusal(void **state)
{
    struct al_ctl *ctl = *state;
    int told = 0;
    al_ctl_on_stdin_room(ctl, count, &told);
    for (int i = 1; i <= 3; i++) {
        fill(ctl);
        push(ctl, "x");
        al_ctl_stdin_drop(ctl, AL_CTL_STDIN_MAX);
        assert_int_equal(told, i);
    }
}

static void test_room__told_when_the_program_closes(void **state)
{
    struct al_ctl *ctl = *state;
    int told = 0;
    al_ctl_on_stdin_room(ctl, count, &told);
    fill(ctl);
    push(ctl, "x");
    al_ctl_stdin_closed(ctl);
    assert_int_equal(told, 1);
}

/* Not called under the lock: it may push. */
struct pusher {
    struct al_ctl *ctl;
    size_t taken;
};

static void push_more(void *arg)
{
    struct pusher *p = arg;
    p->taken += push(p->ctl, "more");
}

static void test_room__callback_may_push(void **state)
{
    struct pusher p = {.ctl = *state};
    al_ctl_on_stdin_room(p.ctl, push_more, &p);
    fill(p.ctl);
    push(p.ctl, "x");
    al_ctl_stdin_drop(p.ctl, AL_CTL_STDIN_MAX);
    assert_int_equal(p.taken, 4);
    assert_waiting(p.ctl, "more", false);
}

/* --- signals --- */

static void test_signals__in_order_and_bounded(void **state)
{
    struct al_ctl *ctl = *state;
    for (int i = 1; i <= AL_CTL_SIGNALS_MAX; i++) {
        assert_true(al_ctl_signal(ctl, i));
    }
    assert_false(al_ctl_signal(ctl, 9));
    for (int i = 1; i <= AL_CTL_SIGNALS_MAX; i++) {
        assert_int_equal(al_ctl_take_signal(ctl), i);
    }
    assert_int_equal(al_ctl_take_signal(ctl), 0);
    assert_true(al_ctl_signal(ctl, 9));
    assert_int_equal(al_ctl_take_signal(ctl), 9);
}

/* --- threads --- */

#define STREAM_BYTES (8u << 20)
#define PUSHERS      3

static uint8_t stream_byte(size_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

struct feeder {
    struct al_ctl *ctl;
    _Atomic bool room;
};

static void tell_room(void *arg)
{
    struct feeder *f = arg;
    f->room = true;
}

static void *feed(void *arg)
{
    struct feeder *f = arg;
    uint8_t data[5000];
    size_t sent = 0;
    while (sent < STREAM_BYTES) {
        size_t n = sizeof data < STREAM_BYTES - sent ? sizeof data : STREAM_BYTES - sent;
        for (size_t i = 0; i < n; i++) {
            data[i] = stream_byte(sent + i);
        }
        f->room = false;
        size_t taken = al_ctl_stdin_push(f->ctl, data, n);
        sent += taken;
        while (taken < n && !f->room) {
            sched_yield();
        }
    }
    al_ctl_stdin_eof(f->ctl);
    return NULL;
}

/* Every byte, in order, though the feeder waits for room and the reader for the eventfd. */
static void test_threads__stream_arrives_whole(void **state)
{
    struct feeder f = {.ctl = *state};
    al_ctl_on_stdin_room(f.ctl, tell_room, &f);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, feed, &f), 0);
    uint8_t data[16 << 10];
    size_t got = 0, wrong = 0;
    bool eof = false;
    while (!eof || got < STREAM_BYTES) {
        struct pollfd pfd = {.fd = al_ctl_fd(f.ctl), .events = POLLIN};
        al_ctl_clear(f.ctl);
        size_t n = al_ctl_stdin_peek(f.ctl, data, sizeof data, &eof);
        for (size_t i = 0; i < n; i++) {
            wrong += data[i] != stream_byte(got + i);
        }
        got += n;
        if (n > 0) {
            al_ctl_stdin_drop(f.ctl, n);
        } else if (!eof && poll(&pfd, 1, 10000) != 1) {
            fail_msg("asleep at %zu bytes", got);
        }
    }
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(got, STREAM_BYTES);
}

static void *do_everything(void *arg)
{
    struct al_ctl *ctl = arg;
    for (int i = 0; i < 2000; i++) {
        push(ctl, "0123456789");
        al_ctl_signal(ctl, 1 + i % 31);
        al_ctl_room(ctl);
    }
    al_ctl_cancel(ctl);
    return NULL;
}

static void test_threads__callers_do_not_disturb_each_other(void **state)
{
    struct al_ctl *ctl = *state;
    pthread_t threads[PUSHERS];
    for (size_t i = 0; i < PUSHERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, do_everything, ctl), 0);
    }
    size_t got = 0;
    uint8_t data[4096];
    bool eof;
    for (size_t n; (n = al_ctl_stdin_peek(ctl, data, sizeof data, &eof)) > 0 ||
                   !al_ctl_cancelled(ctl) || got < PUSHERS * 20000;)
    {
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(data[i], '0' + (got + i) % 10);
        }
        got += n;
        al_ctl_stdin_drop(ctl, n);
        int signo = al_ctl_take_signal(ctl);
        assert_in_range(signo, 0, 31);
    }
    for (size_t i = 0; i < PUSHERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(got, PUSHERS * 20000);
    assert_false(eof);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_new__sleeps),
        TEST(test_cancel__wakes_and_stays),
        TEST(test_everything__wakes),
        TEST(test_clear__of_nothing_does_not_block),
        cmocka_unit_test(test_destroy__accepts_null),
        TEST(test_stdin__peek_takes_nothing_drop_does),
        TEST(test_stdin__eof_comes_after_the_bytes),
        TEST(test_stdin__after_eof_is_taken_and_dropped),
        TEST(test_stdin__once_closed_is_taken_and_dropped),
        TEST(test_stdin__is_bounded),
        TEST(test_room__not_told_when_nothing_was_refused),
        TEST(test_room__told_once_when_there_is_room),
        TEST(test_room__told_again_after_the_next_refusal),
        TEST(test_room__told_when_the_program_closes),
        TEST(test_room__callback_may_push),
        TEST(test_signals__in_order_and_bounded),
        TEST(test_threads__stream_arrives_whole),
        TEST(test_threads__callers_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests_name("ctl", tests, NULL, NULL);
}
