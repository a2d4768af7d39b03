/*
 * Memory for one message: allocated piece by piece, within a budget, and freed all at once.
 *
 * Not thread-safe: one thread at a time. Whatever an arena hands out belongs to it and lives until
 * al_arena_destroy().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

struct al_arena;

/*
 * Makes an arena that hands out at most `budget_bytes`, each allocation rounded up to 16. What it
 * takes from the system stays within nine eighths of that and one chunk (at most 256 KiB). A small
 * message costs one malloc. NULL when memory is out.
 */
struct al_arena *al_arena_create(size_t budget_bytes);

/* Frees everything that the arena handed out. NULL is ignored. */
void al_arena_destroy(struct al_arena *arena);

/*
 * Returns `size` uninitialised bytes, aligned for any type; a distinct pointer for zero too. NULL
 * when the budget or memory is out: the arena is exhausted from then on, although smaller
 * allocations may still succeed.
 */
void *al_arena_alloc(struct al_arena *arena, size_t size);

/* As al_arena_alloc() for `count` elements of `size` bytes, zeroed. NULL on overflow too. */
void *al_arena_alloc_array(struct al_arena *arena, size_t count, size_t size);

/* A copy of the string, or NULL as in al_arena_alloc(). */
char *al_arena_strdup(struct al_arena *arena, const char *string);

/* Whether any allocation failed so far. */
bool al_arena_is_exhausted(const struct al_arena *arena);

/* The bytes handed out so far, roundings included. */
size_t al_arena_used_bytes(const struct al_arena *arena);

/* An allocator for protobuf-c that takes from the arena and frees nothing; it lives as long. */
ProtobufCAllocator *al_arena_allocator(struct al_arena *arena);

static inline void al_arena_destroyp(struct al_arena **arena)
{
    al_arena_destroy(*arena);
}

/* Owns an arena for the rest of the scope. */
#define al_auto_arena __attribute__((cleanup(al_arena_destroyp)))
