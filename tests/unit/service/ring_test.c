#include "service/ring.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 0);
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
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 0);
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
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 0);
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
    al_ring_init(&ring, AL_RING_BY_CHANNEL, al_ring_bytes_for(100 * KIB), 0);
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
        al_ring_init(&ring, AL_RING_BY_CHANNEL, al_ring_bytes_for(caps[i]), 0);
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
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 0);
    size_t taken = 0;
    for (int i = 0; i < 10000; i++) { /* the worst: two channels in turn, byte by byte */
        taken += append(&ring, i % 2 ? AL_STDOUT : AL_STDERR, "x");
        assert_true(ring.used <= ring.capacity);
    }
    assert_in_range(taken, 10, 9999);
    assert_true(ring.was_full);
    al_ring_finish(&ring);
}

static void test_ring__tells_of_room_once_when_half_is_free(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 1024 * KIB, 0);
    size_t taken = append_zeros(&ring, 2048 * KIB);
    assert_in_range(taken, 1000 * KIB, 1024 * KIB);
    assert_int_equal(append_zeros(&ring, 2048 * KIB), 0);
    struct al_event *first = al_ring_take(&ring);
    struct al_event *second = al_ring_take(&ring);
    assert_int_equal(first->bytes.len, AL_SINK_CHUNK_BYTES);
    assert_int_equal(append_zeros(&ring, 1), 0); /* what is on its way counts */
    struct al_event *third = al_ring_take(&ring);
    assert_false(al_ring_release(&ring, al_event_cost(first)));
    assert_true(al_ring_release(&ring, al_event_cost(second)));
    assert_false(al_ring_release(&ring, al_event_cost(third)));
    assert_int_equal(append_zeros(&ring, 1), 1);
    al_event_unref(first);
    al_event_unref(second);
    al_event_unref(third);
    al_ring_finish(&ring);
    assert_int_equal(ring.used, 0);
}

static bool give_chunk(struct al_ring *ring)
{
    uint8_t *data = calloc(1, AL_SINK_CHUNK_BYTES);
    assert_non_null(data);
    bool taken = al_ring_give(ring, AL_STDOUT, data, AL_SINK_CHUNK_BYTES - 1, AL_SINK_CHUNK_BYTES);
    if (!taken) {
        free(data);
    }
    return taken;
}

static void test_ring__one_mib_takes_two_chunks_and_a_few_bytes_in_between(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 1024 * KIB, 0);
    assert_true(give_chunk(&ring));
    assert_int_equal(append_zeros(&ring, 1), 1); /* the last one that the chunk has room for */
    assert_int_equal(append_zeros(&ring, 2 * KIB), 2 * KIB);
    assert_true(give_chunk(&ring));
    assert_false(give_chunk(&ring));
    struct al_event *first = al_ring_take(&ring);
    assert_int_equal(first->bytes.len, AL_SINK_CHUNK_BYTES);
    (void)al_ring_release(&ring, al_event_cost(first));
    assert_true(give_chunk(&ring));
    al_event_unref(first);
    al_ring_finish(&ring);
}

static void test_ring__takes_no_buffer_larger_than_its_events(void **state)
{
    (void)state;
    struct al_ring ring;
    uint8_t byte = 0;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * 1024 * KIB, 0);
    assert_false(al_ring_give(&ring, AL_STDOUT, &byte, 1, AL_SINK_CHUNK_BYTES + 1));
    al_ring_finish(&ring);
    al_ring_init(&ring, AL_RING_ORDERED, 1024 * KIB, 300 * KIB);
    assert_false(al_ring_give(&ring, AL_STDOUT, &byte, 1, 150 * KIB + 1));
    al_ring_finish(&ring);
}

static void test_ring__clear_tells_the_writer(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 0);
    assert_false(al_ring_clear(&ring));
    append_zeros(&ring, 128 * KIB);
    struct al_event *on_its_way = al_ring_take(&ring); /* all that there is room for */
    assert_true(al_ring_clear(&ring));
    assert_null(al_ring_take(&ring));
    assert_false(al_ring_release(&ring, al_event_cost(on_its_way)));
    assert_int_equal(ring.used, 0);
    al_event_unref(on_its_way);
    al_ring_finish(&ring);
}

static void test_ring__small_output_takes_little_memory(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 1024 * KIB, 0);
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
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 0);
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
    al_ring_init(&ring, AL_RING_BY_CHANNEL, 64 * KIB, 0);
    assert_false(al_ring_give(&ring, AL_STDOUT, more, 5, 40 * KIB));
    al_ring_finish(&ring);
    free(more);
}

/* --- a ring that keeps --- */

/* Appends a line that is its own number, and lets the reader have it. */
static void say(struct al_ring *ring, unsigned number, bool read)
{
    char text[600];
    (void)snprintf(text, sizeof text, "%599u", number);
    assert_int_equal(append(ring, number % 2 ? AL_STDOUT : AL_STDERR, text), 599);
    if (read) {
        struct al_event *event = al_ring_take(ring);
        al_ring_release(ring, al_event_cost(event));
        al_event_unref(event);
    }
}

/* Takes all events; the numbers in them, which must be those of their sequence, one after the
 * other. How many. */
static size_t take_all(struct al_ring *ring, uint64_t after)
{
    size_t n = 0;
    struct al_event *event;
    while ((event = al_ring_take(ring))) {
        n++;
        assert_int_equal(event->sequence, after + n);
        assert_int_equal(event->bytes.len, 599);
        char digits[7] = "";
        memcpy(digits, event->bytes.data + 599 - 6, 6);
        assert_int_equal(strtoul(digits, NULL, 10), event->sequence);
        al_ring_release(ring, al_event_cost(event));
        al_event_unref(event);
    }
    return n;
}

static void test_ring__keeps_what_was_read_within_its_bound(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 16 * KIB);
    for (unsigned i = 1; i <= 1000; i++) {
        say(&ring, i, true);
        assert_in_range(ring.kept, 1, 16 * KIB);
        assert_int_equal(ring.used, 0);
    }
    assert_in_range(1000 - ring.head->sequence, 10, 27); /* 599 bytes and what they cost */
    assert_false(al_ring_clear(&ring));
    assert_int_equal(al_ring_memory(&ring), 0);
    al_ring_finish(&ring);
}

static void test_ring__rewinds_to_what_it_holds(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t after;
        int r;
        uint64_t first; /* that follows */
    } rows[] = {
        {"all that is kept", 0, 0, 0},
        {"before the oldest", 1, -ERANGE, 0},
        {"the last that was read", 50, 0, 51},
        {"one before it", 49, 0, 50},
        {"beyond it", 55, 0, 56},
        {"the last of all", 60, 0, 61},
        {"one that is yet to come", 61, -ERANGE, 0},
        {"the largest", UINT64_MAX, -ERANGE, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool tell = true;
        struct al_ring ring;
        al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 16 * KIB);
        for (unsigned n = 1; n <= 60; n++) {
            say(&ring, n, n <= 50);
        }
        uint64_t first = rows[i].first ? rows[i].first : ring.head->sequence;
        size_t memory = al_ring_memory(&ring);
        print_message("%s\n", rows[i].name);
        assert_int_equal(al_ring_rewind(&ring, rows[i].after, &tell), rows[i].r);
        assert_true(al_ring_memory(&ring) <= memory);
        assert_true(ring.kept <= 16 * KIB);
        if (rows[i].r == 0) {
            assert_false(tell);
            assert_int_equal(take_all(&ring, first - 1), 61 - first);
        } else {
            assert_int_equal(take_all(&ring, 50), 10); /* nothing has changed */
        }
        assert_int_equal(ring.used, 0);
        al_ring_finish(&ring);
    }
}

static void test_ring__rewinds_to_its_oldest_event_exactly(void **state)
{
    (void)state;
    bool tell;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 16 * KIB);
    for (unsigned n = 1; n <= 100; n++) {
        say(&ring, n, true);
    }
    uint64_t oldest = ring.head->sequence;
    assert_int_equal(al_ring_rewind(&ring, oldest - 2, &tell), -ERANGE);
    assert_int_equal(al_ring_rewind(&ring, oldest - 1, &tell), 0);
    assert_int_equal(take_all(&ring, oldest - 1), 101 - oldest);
    al_ring_finish(&ring);
}

static void test_ring__an_event_that_was_read_once_grows_no_more(void **state)
{
    (void)state;
    bool tell;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 16 * KIB);
    append(&ring, AL_STDOUT, "one");
    struct al_event *on_its_way = al_ring_take(&ring);
    assert_int_equal(al_ring_rewind(&ring, 0, &tell), 0);
    append(&ring, AL_STDOUT, "two");
    append(&ring, AL_STDOUT, "three");
    assert_int_equal(on_its_way->bytes.len, 3);
    al_event_unref(on_its_way);
    assert_next(&ring, 1, AL_EVENT_STDOUT, "one");
    assert_next(&ring, 2, AL_EVENT_STDOUT, "twothree");
    assert_int_equal(ring.used, 0);
    al_ring_finish(&ring);
}

static void test_ring__skipping_what_waits_tells_the_writer(void **state)
{
    (void)state;
    bool tell = false;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 64 * KIB, 16 * KIB);
    append_zeros(&ring, 256 * KIB);
    assert_int_equal(append_zeros(&ring, 1), 0);
    assert_int_equal(al_ring_rewind(&ring, ring.last_sequence, &tell), 0);
    assert_true(tell);
    assert_int_equal(append_zeros(&ring, 1), 1);
    al_ring_finish(&ring);
}

static void test_ring__keeps_something_however_much_comes(void **state)
{
    (void)state;
    struct al_ring ring;
    bool tell = false;
    al_ring_init(&ring, AL_RING_ORDERED, 1024 * KIB, 300 * KIB);
    append_zeros(&ring, 400 * KIB);
    for (uint64_t sequence = 1; sequence <= 2; sequence++) {
        struct al_event *event = al_ring_take(&ring);
        assert_int_equal(event->sequence, sequence);
        assert_int_equal(event->bytes.len, 150 * KIB);
        (void)al_ring_release(&ring, al_event_cost(event));
        al_event_unref(event);
    }
    assert_int_equal(al_ring_rewind(&ring, 1, &tell), 0);
    struct al_event *again = al_ring_take(&ring);
    assert_int_equal(again->sequence, 2);
    (void)al_ring_release(&ring, al_event_cost(again));
    al_event_unref(again);
    al_ring_finish(&ring);
}

static void test_ring__keeps_no_more_memory_than_bytes_need(void **state)
{
    (void)state;
    struct al_ring ring;
    al_ring_init(&ring, AL_RING_ORDERED, 1024 * KIB, 256 * KIB);
    append(&ring, AL_STDERR, "the reader is behind");
    append_zeros(&ring, 5 * KIB); /* gets room for more, in case more comes */
    assert_true(ring.used > 100 * KIB);
    for (int i = 0; i < 2; i++) {
        struct al_event *event = al_ring_take(&ring);
        al_ring_release(&ring, al_event_cost(event));
        al_event_unref(event);
    }
    assert_in_range(ring.kept, 5 * KIB, 7 * KIB);
    assert_int_equal(ring.used, 0);
    al_ring_finish(&ring);
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
        cmocka_unit_test(test_ring__tells_of_room_once_when_half_is_free),
        cmocka_unit_test(test_ring__one_mib_takes_two_chunks_and_a_few_bytes_in_between),
        cmocka_unit_test(test_ring__takes_no_buffer_larger_than_its_events),
        cmocka_unit_test(test_ring__clear_tells_the_writer),
        cmocka_unit_test(test_ring__small_output_takes_little_memory),
        cmocka_unit_test(test_ring__takes_over_a_whole_buffer_if_it_fits),
        cmocka_unit_test(test_ring__keeps_what_was_read_within_its_bound),
        cmocka_unit_test(test_ring__rewinds_to_what_it_holds),
        cmocka_unit_test(test_ring__rewinds_to_its_oldest_event_exactly),
        cmocka_unit_test(test_ring__an_event_that_was_read_once_grows_no_more),
        cmocka_unit_test(test_ring__skipping_what_waits_tells_the_writer),
        cmocka_unit_test(test_ring__keeps_something_however_much_comes),
        cmocka_unit_test(test_ring__keeps_no_more_memory_than_bytes_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
