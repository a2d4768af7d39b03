#include "backends/launcher/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

struct waiter {
    struct al_source source; /* first: handlers cast back */
    struct al_loop *loop;
    struct waiter *other;
    int calls;
    int stop_after;
};

static void on_ready(struct al_source *source)
{
    struct waiter *w = (struct waiter *)source;
    w->calls++;
    w->loop->stop = w->stop_after > 0 && w->calls >= w->stop_after;
}

/* As a job that ends frees the sources that are ready too. */
static void on_ready_free_other(struct al_source *source)
{
    struct waiter *w = (struct waiter *)source;
    if (w->other) {
        al_loop_remove(w->loop, &w->other->source);
        close(w->other->source.fd);
        free(w->other);
        w->other = NULL;
    }
    on_ready(source);
}

static void watch(struct al_loop *loop, struct waiter *w, void (*fn)(struct al_source *))
{
    *w = (struct waiter){.source = {.fd = eventfd(1, EFD_CLOEXEC), .fn = fn}, .loop = loop};
    assert_true(w->source.fd >= 0);
    assert_int_equal(al_loop_add(loop, &w->source), 0);
}

static void test_run__calls_until_stopped(void **state)
{
    (void)state;
    struct al_loop loop;
    struct waiter w;
    assert_int_equal(al_loop_init(&loop), 0);
    watch(&loop, &w, on_ready);
    w.stop_after = 3;
    assert_int_equal(al_loop_run(&loop), 0);
    assert_int_equal(w.calls, 3);
    close(w.source.fd);
    close(loop.epoll_fd);
}

static void test_run__stops_at_once_when_told_before(void **state)
{
    (void)state;
    struct al_loop loop;
    struct waiter w;
    assert_int_equal(al_loop_init(&loop), 0);
    watch(&loop, &w, on_ready);
    loop.stop = true;
    assert_int_equal(al_loop_run(&loop), 0);
    assert_int_equal(w.calls, 0);
    close(w.source.fd);
    close(loop.epoll_fd);
}

static void test_remove__drops_what_was_fetched_already(void **state)
{
    (void)state;
    struct al_loop loop;
    struct waiter first;
    struct waiter *second = malloc(sizeof *second);
    assert_non_null(second);
    assert_int_equal(al_loop_init(&loop), 0);
    watch(&loop, &first, on_ready_free_other);
    watch(&loop, second, on_ready_free_other);
    /* Whichever comes first frees the other; both are in one batch. */
    first.other = second;
    first.stop_after = 2;
    second->source.fn = on_ready;
    assert_int_equal(al_loop_run(&loop), 0);
    assert_int_equal(first.calls, 2);
    close(first.source.fd);
    close(loop.epoll_fd);
}

static void test_remove__of_what_was_never_added(void **state)
{
    (void)state;
    struct al_loop loop;
    struct al_source none = {.fd = -1};
    assert_int_equal(al_loop_init(&loop), 0);
    al_loop_remove(&loop, &none);
    close(loop.epoll_fd);
}

static void test_add__a_bad_fd(void **state)
{
    (void)state;
    struct al_loop loop;
    struct al_source bad = {.fd = 9999};
    assert_int_equal(al_loop_init(&loop), 0);
    assert_true(al_loop_add(&loop, &bad) < 0);
    close(loop.epoll_fd);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run__calls_until_stopped),
        cmocka_unit_test(test_run__stops_at_once_when_told_before),
        cmocka_unit_test(test_remove__drops_what_was_fetched_already),
        cmocka_unit_test(test_remove__of_what_was_never_added),
        cmocka_unit_test(test_add__a_bad_fd),
    };
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
