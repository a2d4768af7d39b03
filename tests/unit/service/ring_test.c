#include "service/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)

static size_t append(struct al_ring *ring, enum al_channel channel, const char *text)
{
    int error = 0;
    size_t taken = al_ring_append(ring, channel, (const uint8_t *)text, strlen(text), &error);
    assert_int_equal(error, 0);
    return taken;
}

static size_t append_zeros(struct al_ring *ring, size_t n)
{
    int error = 0;
    uint8_t *zeros = calloc(1, n);
    assert_non_null(zeros);
    size_t taken = al_ring_append(ring, AL_STDOUT, zeros, n, &error);
    assert_int_equal(error, 0);
    free(zeros);
    return taken;
}

/* Takes the next event, checks it and is done with it; whether the writer must be told. */
static bool assert_next(struct al_ring *ring, uint64_t sequence, enum al_event_kind kind,
                        const char *text)
{
    struct al_event *event = al_ring_take(ring);
    assert_non_null(event);
    assert_int_equal(event->sequence, sequence);
    assert_int_equal(event->kind, kind);
    assert_int_equal(event->bytes.len, strlen(text));
    assert_memory_equal(event->bytes.data, text, strlen(text));
    bool tell = al_ring_release(ring, al_event_cost(event));
    al_event_unref(event);
    return tell;
}

static void test_ring__numbers_all_events(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB);
    al_ring_append_status(&ring, AL_EVENT_STATUS, AL_STATUS_PENDING);
    assert_int_equal(append(&ring, AL_STDOUT, "out"), 3);
    assert_int_equal(append(&ring, AL_STDERR, "err"), 3);
    al_ring_append_status(&ring, AL_EVENT_RESULT, AL_STATUS_FAILED);
    struct al_event *first = al_ring_take(&ring);
    assert_int_equal(first->sequence, 1);
    assert_int_equal(first->status, AL_STATUS_PENDING);
    assert_true(first->wall_ns > 0);
    al_ring_release(&ring, al_event_cost(first));
    al_event_unref(first);
    assert_next(&ring, 2, AL_EVENT_STDOUT, "out");
    assert_next(&ring, 3, AL_EVENT_STDERR, "err");
    assert_next(&ring, 4, AL_EVENT_RESULT, "");
    assert_null(al_ring_take(&ring));
    assert_int_equal(ring.used, 0);
    al_ring_finish(&ring);
}

static void test_ring__coalesces_what_nobody_has_read(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB);
    append(&ring, AL_STDOUT, "a");
    append(&ring, AL_STDOUT, "b");
    append(&ring, AL_STDERR, "c");
    append(&ring, AL_STDOUT, "d"); /* not to the first: the order would be another */
    append(&ring, AL_STDOUT, "e");
    assert_next(&ring, 1, AL_EVENT_STDOUT, "ab");
    assert_next(&ring, 2, AL_EVENT_STDERR, "c");
    assert_next(&ring, 3, AL_EVENT_STDOUT, "de");
    al_ring_finish(&ring);
}

static void test_ring__leaves_a_taken_event_alone(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB);
    append(&ring, AL_STDOUT, "a");
    struct al_event *taken = al_ring_take(&ring);
    append(&ring, AL_STDOUT, "b");
    assert_int_equal(taken->bytes.len, 1);
    assert_next(&ring, 2, AL_EVENT_STDOUT, "b");
    al_ring_release(&ring, al_event_cost(taken));
    al_event_unref(taken);
    al_ring_finish(&ring);
}

static void test_ring__by_channel_has_one_event_each(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_BY_CHANNEL, al_ring_bytes_for(100 * KIB));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(append_zeros(&ring, KIB), KIB);
        assert_int_equal(append(&ring, AL_STDERR, "x"), 1);
    }
    struct al_event *out = al_ring_take(&ring);
    struct al_event *err = al_ring_take(&ring);
    assert_int_equal(out->bytes.len, 100 * KIB);
    assert_int_equal(err->bytes.len, 100);
    assert_null(al_ring_take(&ring));
    assert_true(ring.used <= ring.capacity);
    al_event_unref(out);
    al_event_unref(err);
    al_ring_finish(&ring);
}

static void test_ring__by_channel_holds_both_caps(void **state)
{
    (void)state;
    static const size_t caps[] = {1, 511, 512, 513, 4096, 100000, 1 << 20};
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        struct al_ring ring;
        int error = 0;
        uint8_t *zeros = calloc(1, caps[i] + 1);
        assert_non_null(zeros);
        al_ring_init(&ring, AL_RING_BY_CHANNEL, al_ring_bytes_for(caps[i]));
        assert_int_equal(al_ring_append(&ring, AL_STDOUT, zeros, caps[i], &error), caps[i]);
        assert_int_equal(al_ring_append(&ring, AL_STDERR, zeros, caps[i], &error), caps[i]);
        assert_true(ring.used <= ring.capacity);
        assert_int_equal(al_ring_append(&ring, AL_STDERR, zeros, 1, &error), 0);
        free(zeros);
        al_ring_finish(&ring);
    }
}

static void test_ring__never_passes_its_bound(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB);
    size_t taken = 0;
    for (int i = 0; i < 10000; i++) { /* the worst: two channels in turn, byte by byte */
        taken += append(&ring, i % 2 ? AL_STDOUT : AL_STDERR, "x");
        assert_true(ring.used <= ring.capacity);
    }
    assert_in_range(taken, 10, 9999);
    assert_true(ring.was_full);
    al_ring_finish(&ring);
}

static void test_ring__tells_of_room_once(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 1024 * KIB);
    size_t taken = append_zeros(&ring, 2048 * KIB);
    assert_in_range(taken, 1000 * KIB, 1024 * KIB);
    assert_int_equal(append_zeros(&ring, 2048 * KIB), 0);
    struct al_event *first = al_ring_take(&ring);
    struct al_event *second = al_ring_take(&ring);
    assert_int_equal(first->bytes.len, AL_RING_EVENT_BYTES_MAX);
    assert_int_equal(append_zeros(&ring, 1), 0); /* what is on its way counts */
    assert_true(al_ring_release(&ring, al_event_cost(first)));
    assert_false(al_ring_release(&ring, al_event_cost(second)));
    assert_int_equal(append_zeros(&ring, 1), 1);
    al_event_unref(first);
    al_event_unref(second);
    al_ring_finish(&ring);
    assert_int_equal(ring.used, 0);
}

static void test_ring__clear_tells_the_writer(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB);
    assert_false(al_ring_clear(&ring));
    append_zeros(&ring, 128 * KIB);
    assert_true(al_ring_clear(&ring));
    assert_int_equal(ring.used, 0);
    assert_null(al_ring_take(&ring));
    al_ring_finish(&ring);
}

static void test_ring__small_output_takes_little_memory(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 1024 * KIB);
    append(&ring, AL_STDOUT, "hello");
    assert_true(ring.used <= KIB);
    al_ring_finish(&ring);
}

static void test_ring__takes_over_a_whole_buffer_if_it_fits(void **state)
{
    (void)state;
    struct al_ring ring;
    uint8_t *data = calloc(1, 40 * KIB);
    assert_non_null(data);
    memcpy(data, "whole", 5);
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB);
    assert_true(al_ring_give(&ring, AL_STDOUT, data, 5, 40 * KIB));
    assert_true(ring.used >= 40 * KIB);
    uint8_t *more = calloc(1, 40 * KIB);
    assert_non_null(more);
    assert_false(al_ring_give(&ring, AL_STDOUT, more, 5, 40 * KIB));
    struct al_event *event = al_ring_take(&ring);
    assert_ptr_equal(event->bytes.data, data);
    assert_int_equal(event->sequence, 1);
    assert_int_equal(event->bytes.len, 5);
    al_ring_release(&ring, al_event_cost(event));
    al_event_unref(event);
    assert_int_equal(ring.used, 0);
    al_ring_finish(&ring);
    al_ring_init(&ring, AL_RING_BY_CHANNEL, 64 * KIB);
    assert_false(al_ring_give(&ring, AL_STDOUT, more, 5, 40 * KIB));
    al_ring_finish(&ring);
    free(more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring__numbers_all_events),
        cmocka_unit_test(test_ring__coalesces_what_nobody_has_read),
        cmocka_unit_test(test_ring__leaves_a_taken_event_alone),
        cmocka_unit_test(test_ring__by_channel_has_one_event_each),
        cmocka_unit_test(test_ring__by_channel_holds_both_caps),
        cmocka_unit_test(test_ring__never_passes_its_bound),
        cmocka_unit_test(test_ring__tells_of_room_once),
        cmocka_unit_test(test_ring__clear_tells_the_writer),
        cmocka_unit_test(test_ring__small_output_takes_little_memory),
        cmocka_unit_test(test_ring__takes_over_a_whole_buffer_if_it_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
