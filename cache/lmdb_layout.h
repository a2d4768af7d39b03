/* How LMDB 0.9 (data version 1) lays out its file, in the host's byte order. */
#pragma once

#include <stdint.h>

#define META_MAGIC     0xBEEFC0DEu
#define META_VERSION   1
#define NO_PAGE        UINT64_MAX
#define PAGE_BYTES_MIN 512
#define PAGE_BYTES_MAX 32768

enum {
    PAGE_BRANCH = 0x01,
    PAGE_LEAF = 0x02,
    PAGE_OVERFLOW = 0x04,
    PAGE_META = 0x08,
};

enum {
    NODE_BIG = 0x01, /* the data is the number of its first overflow page */
};

enum {
    TREE_FREE,
    TREE_RECORDS,
    TREES,
};

#define FLAG_INTEGER_KEY 0x08

struct page_head {
    uint64_t number;
    uint16_t pad;
    uint16_t flags;
    union {
        struct {
            uint16_t lower;
            uint16_t upper;
        };
        uint32_t pages; /* of an overflow run */
    };
};
_Static_assert(sizeof(struct page_head) == 16, "LMDB's layout");

struct node_head {
    uint16_t low;
    uint16_t high;
    uint16_t flags;
    uint16_t key_len;
};
_Static_assert(sizeof(struct node_head) == 8, "LMDB's layout");

struct tree {
    uint32_t pad; /* in the free tree: the page size */
    uint16_t flags;
    uint16_t depth;
    uint64_t branch_pages;
    uint64_t leaf_pages;
    uint64_t overflow_pages;
    uint64_t entries;
    uint64_t root;
};

struct meta {
    uint32_t magic;
    uint32_t version;
    uint64_t address;
    uint64_t map_bytes;
    struct tree trees[TREES];
    uint64_t last_page;
    uint64_t txn;
};
_Static_assert(sizeof(struct meta) == 136, "LMDB's layout");
