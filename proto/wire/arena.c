/*
 * Theory of operation
 *
 * Allocations are cut from the current chunk. The first chunk lies inside the arena itself; each
 * further one is twice as large, up to a maximum. An allocation larger than an eighth of the next
 * chunk gets a chunk of its own and leaves the current one in place, so what is lost at the ends of
 * chunks stays below an eighth of what they hold.
 *
 * Under AddressSanitizer all memory that is not handed out is poisoned, so an overrun is seen as
 * with malloc.
 */
#include "proto/wire/arena.h"

#include <sanitizer/asan_interface.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT         alignof(max_align_t)
#define FIRST_CHUNK_BYTES ((size_t)4000) /* the whole arena stays within a page */
#define MAX_CHUNK_BYTES   ((size_t)256 * 1024)
#define OWN_CHUNK_SHARE   8

struct chunk {
    struct chunk *next;
    alignas(ALIGNMENT) uint8_t data[];
};

struct al_arena {
    ProtobufCAllocator allocator;
    struct chunk *chunks;
    uint8_t *at; /* free bytes of the current chunk */
    size_t left;
    size_t next_chunk_bytes;
    size_t budget;
    size_t used;
    bool exhausted;
    alignas(ALIGNMENT) uint8_t first[FIRST_CHUNK_BYTES];
};

static void *allocate(void *arena, size_t size)
{
    return al_arena_alloc(arena, size);
}

static void keep(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

struct al_arena *al_arena_create(size_t budget_bytes)
{
    struct al_arena *arena = malloc(sizeof(*arena));
    if (!arena) {
        return NULL;
    }
    arena->allocator =
        (ProtobufCAllocator){.alloc = allocate, .free = keep, .allocator_data = arena};
    arena->chunks = NULL;
    arena->at = arena->first;
    arena->left = sizeof(arena->first);
    arena->next_chunk_bytes = 2 * FIRST_CHUNK_BYTES;
    arena->budget = budget_bytes;
    arena->used = 0;
    arena->exhausted = false;
    ASAN_POISON_MEMORY_REGION(arena->first, sizeof(arena->first));
    return arena;
}

void al_arena_destroy(struct al_arena *arena)
{
    if (!arena) {
        return;
    }
    struct chunk *chunk = arena->chunks;
    while (chunk) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    free(arena);
}

static struct chunk *add_chunk(struct al_arena *arena, size_t bytes)
{
    struct chunk *chunk = malloc(sizeof(*chunk) + bytes);
    if (!chunk) {
        return NULL;
    }
    ASAN_POISON_MEMORY_REGION(chunk->data, bytes);
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

static bool renew_current(struct al_arena *arena)
{
    struct chunk *chunk = add_chunk(arena, arena->next_chunk_bytes);
    if (!chunk) {
        return false;
    }
    arena->at = chunk->data;
    arena->left = arena->next_chunk_bytes;
    if (arena->next_chunk_bytes < MAX_CHUNK_BYTES) {
        arena->next_chunk_bytes *= 2;
    }
    return true;
}

/* `need` is within the budget and a multiple of the alignment. */
static uint8_t *take(struct al_arena *arena, size_t need)
{
    if (need > arena->left) {
        if (need > arena->next_chunk_bytes / OWN_CHUNK_SHARE) {
            struct chunk *own = add_chunk(arena, need);
            return own ? own->data : NULL;
        }
        if (!renew_current(arena)) {
            return NULL;
        }
    }
    uint8_t *taken = arena->at;
    arena->at += need;
    arena->left -= need;
    return taken;
}

void *al_arena_alloc(struct al_arena *arena, size_t size)
{
    size_t left = arena->budget - arena->used;
    if (size > left) {
        arena->exhausted = true;
        return NULL;
    }
    size_t need = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint8_t *taken = need <= left ? take(arena, need) : NULL;
    if (!taken) {
        arena->exhausted = true;
        return NULL;
    }
    arena->used += need;
    ASAN_UNPOISON_MEMORY_REGION(taken, size);
    return taken;
}

void *al_arena_alloc_array(struct al_arena *arena, size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        arena->exhausted = true;
        return NULL;
    }
    void *array = al_arena_alloc(arena, bytes);
    if (array) {
        memset(array, 0, bytes);
    }
    return array;
}

char *al_arena_strdup(struct al_arena *arena, const char *string)
{
    size_t size = strlen(string) + 1;
    char *copy = al_arena_alloc(arena, size);
    if (copy) {
        memcpy(copy, string, size);
    }
    return copy;
}

bool al_arena_is_exhausted(const struct al_arena *arena)
{
    return arena->exhausted;
}

size_t al_arena_used_bytes(const struct al_arena *arena)
{
    return arena->used;
}

ProtobufCAllocator *al_arena_allocator(struct al_arena *arena)
{
    return &arena->allocator;
}
