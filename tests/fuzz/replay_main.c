/*
 * Theory of operation
 *
 * Runs a fuzz target without a fuzzer: each file named on the command line, or found below a folder
 * named there, and a fixed number of mutations of each. The order of files is sorted and the
 * generator is seeded with a constant and the seed's bytes, so two runs do the same work and a
 * failure repeats.
 *
 * An input lives in a heap block of exactly its length, so that AddressSanitizer sees a read one
 * byte past its end.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MUTATIONS_PER_SEED 4000
#define MAX_SEED_BYTES     (1 << 20)
#define MAX_EDITS          6
#define MAX_GROWTH_BYTES   64

struct totals {
    unsigned long seeds;
    unsigned long mutations;
};

static void die(const char *what, const char *path)
{
    fprintf(stderr, "replay: %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

/* xorshift64*: small, and the same everywhere. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static size_t random_below(uint64_t *state, size_t bound)
{
    return bound == 0 ? 0 : (size_t)(next_random(state) % bound);
}

static uint64_t hash_bytes(const uint8_t *data, size_t len)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ data[i]) * UINT64_C(1099511628211);
    }
    return hash | 1;
}

/* Bytes at which parsers tend to go wrong: varint and sign boundaries, tags, line ends. */
static uint8_t interesting_byte(uint64_t *state)
{
    static const uint8_t bytes[] = {0x00, 0x01, 0x0a, 0x0d, 0x22, 0x7f, 0x80,
                                    0xc0, 0xed, 0xf4, 0xfe, 0xff, '/',  '.'};
    return bytes[random_below(state, sizeof(bytes))];
}

/* Returns the new length, at most `capacity`. */
static size_t edit_once(uint8_t *data, size_t len, size_t capacity, uint64_t *state)
{
    size_t at = random_below(state, len);
    size_t run = 1 + random_below(state, 16);
    switch (random_below(state, 6)) {
    case 0:
        if (len > 0) {
            data[at] ^= (uint8_t)(1U << random_below(state, 8));
        }
        return len;
    case 1:
        if (len > 0) {
            data[at] = interesting_byte(state);
        }
        return len;
    case 2:
        if (len > 0) {
            data[at] = (uint8_t)next_random(state);
        }
        return len;
    case 3:
        return at;
    case 4:
        run = run < len - at ? run : len - at;
        memmove(data + at, data + at + run, len - at - run);
        return len - run;
    default:
        run = run < capacity - len ? run : capacity - len;
        memmove(data + at + run, data + at, len - at);
        memset(data + at, interesting_byte(state), run);
        return len + run;
    }
}

static void run_exact(const uint8_t *data, size_t len)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    if (exact == NULL) {
        die("allocating for", "an input");
    }
    if (len > 0) {
        memcpy(exact, data, len);
    }
    (void)LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

static void run_mutations(const uint8_t *seed, size_t len)
{
    size_t capacity = len + MAX_GROWTH_BYTES;
    uint8_t *work = malloc(capacity);
    if (work == NULL) {
        die("allocating for", "mutations");
    }
    uint64_t state = hash_bytes(seed, len);
    for (int i = 0; i < MUTATIONS_PER_SEED; i++) {
        size_t work_len = len;
        memcpy(work, seed, len);
        for (size_t edits = 1 + random_below(&state, MAX_EDITS); edits > 0; edits--) {
            work_len = edit_once(work, work_len, capacity, &state);
        }
        run_exact(work, work_len);
    }
    free(work);
}

static void replay_file(const char *path, struct totals *totals)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        die("opening", path);
    }
    uint8_t *seed = malloc(MAX_SEED_BYTES);
    if (seed == NULL) {
        die("allocating for", path);
    }
    size_t len = fread(seed, 1, MAX_SEED_BYTES, file);
    if (ferror(file)) {
        die("reading", path);
    }
    fclose(file);
    run_exact(seed, len);
    run_mutations(seed, len);
    free(seed);
    totals->seeds++;
    totals->mutations += MUTATIONS_PER_SEED;
}

static int compare_names(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Test runners lay out data as symbolic links, so they are followed. */
static void replay_tree(char *const *paths, struct totals *totals)
{
    FTS *tree = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, compare_names);
    if (tree == NULL) {
        die("opening", paths[0]);
    }
    for (FTSENT *entry = fts_read(tree); entry != NULL; entry = fts_read(tree)) {
        if (entry->fts_info == FTS_F) {
            replay_file(entry->fts_path, totals);
        } else if (entry->fts_info != FTS_D && entry->fts_info != FTS_DP) {
            errno = entry->fts_errno;
            die("walking", entry->fts_path);
        }
    }
    fts_close(tree);
}

int main(int argc, char **argv)
{
    struct totals totals = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE-OR-FOLDER...\n", argv[0]);
        return 2;
    }
    run_exact((const uint8_t *)"", 0);
    replay_tree(argv + 1, &totals);
    if (totals.seeds == 0) {
        fprintf(stderr, "replay: no seeds found\n");
        return 1;
    }
    printf("replay: %lu seeds and %lu mutations passed\n", totals.seeds, totals.mutations);
    return 0;
}
