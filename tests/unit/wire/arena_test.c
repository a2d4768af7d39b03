#include "proto/wire/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((size_t)1024 * 1024)

static void assert_aligned(const void *pointer)
{
    assert_int_equal((uintptr_t)pointer % alignof(max_align_t), 0);
}

static void test_alloc__gives_separate_aligned_memory(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(MIB);
    uint8_t *blocks[1000];
    for (size_t i = 0; i < 1000; i++) {
        blocks[i] = al_arena_alloc(arena, i);
        assert_non_null(blocks[i]);
        assert_aligned(blocks[i]);
        memset(blocks[i], (int)(i & 0xff), i);
    }
    for (size_t i = 1; i < 1000; i++) {
        assert_int_equal(blocks[i][0], i & 0xff);
        assert_int_equal(blocks[i][i - 1], i & 0xff);
    }
}

static void test_alloc__of_nothing_gives_distinct_pointers(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(64);
    void *first = al_arena_alloc(arena, 0);
    void *second = al_arena_alloc(arena, 0);
    assert_non_null(first);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
}

static void test_alloc__takes_the_whole_budget(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(MIB);
    assert_non_null(al_arena_alloc(arena, MIB));
    assert_int_equal(al_arena_used_bytes(arena), MIB);
    assert_false(al_arena_is_exhausted(arena));
    assert_null(al_arena_alloc(arena, 1));
    assert_true(al_arena_is_exhausted(arena));
}

static void test_alloc__over_the_budget_changes_nothing_else(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(4096);
    assert_null(al_arena_alloc(arena, 4097));
    assert_null(al_arena_alloc(arena, SIZE_MAX));
    assert_null(al_arena_alloc(arena, SIZE_MAX - 8));
    assert_true(al_arena_is_exhausted(arena));
    assert_int_equal(al_arena_used_bytes(arena), 0);
    assert_non_null(al_arena_alloc(arena, 4096));
}

static void test_alloc__small_ones_stop_at_the_budget(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(MIB);
    size_t count = 0;
    while (al_arena_alloc(arena, 1)) {
        count++;
    }
    assert_int_equal(count, MIB / alignof(max_align_t));
}

static void test_alloc__a_budget_of_nothing_refuses_all(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(0);
    assert_null(al_arena_alloc(arena, 0));
    assert_null(al_arena_alloc(arena, 1));
}

static void test_alloc_array__is_zeroed_and_refuses_overflow(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(MIB);
    uint64_t *array = al_arena_alloc_array(arena, 1000, sizeof(*array));
    assert_non_null(array);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(array[i], 0);
    }
    assert_null(al_arena_alloc_array(arena, SIZE_MAX / 2, 4));
    assert_true(al_arena_is_exhausted(arena));
}

static void test_strdup__copies(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(64);
    char original[] = "airlock";
    char *copy = al_arena_strdup(arena, original);
    original[0] = 'X';
    assert_string_equal(copy, "airlock");
}

static void test_allocator__is_the_arena(void **state)
{
    (void)state;
    al_auto_arena struct al_arena *arena = al_arena_create(64);
    ProtobufCAllocator *allocator = al_arena_allocator(arena);
    void *block = allocator->alloc(allocator->allocator_data, 48);
    assert_non_null(block);
    allocator->free(allocator->allocator_data, block);
    assert_null(allocator->alloc(allocator->allocator_data, 48));
    assert_true(al_arena_is_exhausted(arena));
}

static void test_destroy__accepts_null(void **state)
{
    (void)state;
    al_arena_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc__gives_separate_aligned_memory),
        cmocka_unit_test(test_alloc__of_nothing_gives_distinct_pointers),
        cmocka_unit_test(test_alloc__takes_the_whole_budget),
        cmocka_unit_test(test_alloc__over_the_budget_changes_nothing_else),
        cmocka_unit_test(test_alloc__small_ones_stop_at_the_budget),
        cmocka_unit_test(test_alloc__a_budget_of_nothing_refuses_all),
        cmocka_unit_test(test_alloc_array__is_zeroed_and_refuses_overflow),
        cmocka_unit_test(test_strdup__copies),
        cmocka_unit_test(test_allocator__is_the_arena),
        cmocka_unit_test(test_destroy__accepts_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
