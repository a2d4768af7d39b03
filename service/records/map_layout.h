/* What LMDB 0.9 puts into a file, in the order of bytes of the machine. */
#pragma once

#include <stdint.h>

#define MAGIC        UINT32_C(0xbeefc0de)
#define DATA_VERSION 1
#define N_METAS      2
#define NO_PAGE      UINT64_MAX
#define DEPTH_MAX    32 /* of LMDB's own cursors */
#define KEY_MAX      511

#define PAGE_BYTES_MAX 32768

enum page_flag { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4, PAGE_META = 8 };
enum node_flag { NODE_BIG = 1, NODE_TREE = 2 };
enum tree_flag { TREE_INTEGER_KEYS = 8, TREE_FLAGS = 0x7f };

struct page {
    uint64_t number;
    uint16_t pad;
    uint16_t flags;
    union {
        struct {
            uint16_t lower; /* end of the offsets of nodes, which follow this head */
            uint16_t upper; /* where the nodes begin */
        };
        uint32_t pages; /* of an overflow */
    };
};

struct node {
    uint16_t low, high; /* a leaf: length of the value; a branch: page number, with the flags */
    uint16_t flags;
    uint16_t key_len;
};

struct tree {
    uint32_t page_size; /* in the free list's tree only */
    uint16_t flags;
    uint16_t depth;
    uint64_t branches, leaves, overflows, entries;
    uint64_t root;
};

struct meta {
    uint32_t magic;
    uint32_t version;
    uint64_t address, map_size;
    struct tree free, main;
    uint64_t last_page;
    uint64_t transaction;
};

_Static_assert(sizeof(struct page) == 16 && sizeof(struct node) == 8 && sizeof(struct tree) == 48 &&
                   sizeof(struct meta) == 136,
               "the format's own layout");
