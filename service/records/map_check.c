#include "service/records/map_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "service/records/map_layout.h"

struct check {
    const uint8_t *data;
    size_t page_size;
    uint64_t n_pages; /* that may be in use and lie in the file */
    uint64_t n_known; /* n_pages, and those that are free beyond the end of the file */
    uint8_t *seen;    /* one bit a known page */
    const char *why;
};

static bool damaged(struct check *check, const char *why)
{
    if (!check->why) {
        check->why = why;
    }
    return false;
}

static const uint8_t *page_at(const struct check *check, uint64_t number)
{
    return check->data + number * check->page_size;
}

/* Each page has one place. */
static bool claim(struct check *check, uint64_t first, uint64_t n, uint64_t bound)
{
    if (first < N_METAS || first >= bound || n > bound - first) {
        return damaged(check, "a page lies outside of the file");
    }
    for (uint64_t i = first; i < first + n; i++) {
        uint8_t bit = (uint8_t)(1u << (i & 7));
        if (check->seen[i >> 3] & bit) {
            return damaged(check, "a page is used twice");
        }
        check->seen[i >> 3] |= bit;
    }
    return true;
}

/* It may be longer than its value, which was longer when it was first put. */
static bool check_overflow(struct check *check, uint64_t number, size_t value_len,
                           struct tree *found)
{
    struct page page;
    if (number < N_METAS || number >= check->n_pages) {
        return damaged(check, "a page lies outside of the file");
    }
    memcpy(&page, page_at(check, number), sizeof page);
    if (page.number != number || page.flags != PAGE_OVERFLOW ||
        page.pages < (sizeof page - 1 + value_len) / check->page_size + 1)
    {
        return damaged(check, "a long value is damaged");
    }
    found->overflows += page.pages;
    return claim(check, number, page.pages, check->n_pages);
}

/* A walk over one tree in the order of its keys, and what it has found so far. */
struct walk {
    struct check *check;
    const struct tree *tree;
    struct tree found;
    const uint8_t *floor; /* the next key must be greater, or equal if this was a branch's */
    size_t floor_len;
    bool floor_is_branch;
    /* Of each leaf's node, with its value. NULL: values are of no interest, and no trees. */
    bool (*value)(struct check *check, const struct node *node, const uint8_t *value, size_t len);
};

/* The free list's keys are numbers. */
static int compare_keys(const struct walk *walk, const uint8_t *key, size_t len)
{
    if (walk->tree->page_size != 0) {
        uint64_t a = 0;
        uint64_t b = 0;
        memcpy(&a, key, len < sizeof a ? len : sizeof a);
        memcpy(&b, walk->floor, walk->floor_len < sizeof b ? walk->floor_len : sizeof b);
        return a == b ? 0 : a < b ? -1 : 1;
    }
    int order = memcmp(key, walk->floor, len < walk->floor_len ? len : walk->floor_len);
    return order != 0 ? order : len == walk->floor_len ? 0 : len < walk->floor_len ? -1 : 1;
}

static bool check_key(struct walk *walk, const uint8_t *key, size_t len, bool leaf)
{
    if (walk->floor) {
        int order = compare_keys(walk, key, len);
        if (order < 0 || (order == 0 && !(leaf && walk->floor_is_branch))) {
            return damaged(walk->check, "keys are out of order");
        }
    }
    walk->floor = key;
    walk->floor_len = len;
    walk->floor_is_branch = !leaf;
    return true;
}

static bool walk_page(struct walk *walk, uint64_t number, unsigned depth);

static bool walk_child(struct walk *walk, const struct node *node, unsigned depth)
{
    return walk_page(walk, node->low | (uint64_t)node->high << 16 | (uint64_t)node->flags << 32,
                     depth + 1);
}

static bool walk_leaf_node(struct walk *walk, const struct node *node, const uint8_t *value,
                           size_t room)
{
    struct check *check = walk->check;
    size_t len = node->low | (size_t)node->high << 16;
    walk->found.entries++;
    if (node->flags & NODE_BIG) {
        uint64_t number;
        if (node->flags != NODE_BIG || room < sizeof number) {
            return damaged(check, "a node is damaged");
        }
        memcpy(&number, value, sizeof number);
        return check_overflow(check, number, len, &walk->found) &&
               (!walk->value ||
                walk->value(check, node, page_at(check, number) + sizeof(struct page), len));
    }
    if (len > room || (node->flags != 0 && (node->flags != NODE_TREE || !walk->value))) {
        return damaged(check, "a node is damaged");
    }
    return !walk->value || walk->value(check, node, value, len);
}

/* A branch's first key says nothing. */
static bool walk_node(struct walk *walk, const uint8_t *at, size_t room, unsigned depth, bool first)
{
    bool leaf = depth == walk->tree->depth;
    struct node node;
    memcpy(&node, at, sizeof node);
    if (node.key_len > KEY_MAX || node.key_len > room - sizeof node) {
        return damaged(walk->check, "a key is damaged");
    }
    if ((leaf || !first) && !check_key(walk, at + sizeof node, node.key_len, leaf)) {
        return false;
    }
    return leaf ? walk_leaf_node(walk, &node, at + sizeof node + node.key_len,
                                 room - sizeof node - node.key_len)
                : walk_child(walk, &node, depth);
}

static size_t node_len(const uint8_t *at, bool leaf)
{
    struct node node;
    memcpy(&node, at, sizeof node);
    size_t value_len =
        node.flags & NODE_BIG ? sizeof(uint64_t) : node.low | (size_t)node.high << 16;
    return (sizeof node + node.key_len + (leaf ? value_len : 0) + 1) & ~(size_t)1;
}

/* The nodes lie one after the other, in any order, from `upper` to the end of the page. */
static bool check_places(struct check *check, const uint8_t *data, const struct page *page)
{
    uint8_t begins[PAGE_BYTES_MAX / 16] = {0}; /* a bit for every other byte */
    size_t n = (page->lower - sizeof *page) / 2;
    for (size_t i = 0; i < n; i++) {
        uint16_t at;
        memcpy(&at, data + sizeof *page + 2 * i, sizeof at);
        if (at < page->upper || at % 2 != 0 || at + sizeof(struct node) > check->page_size ||
            begins[at / 16] & 1u << at / 2 % 8)
        {
            return damaged(check, "a node has no such place");
        }
        begins[at / 16] |= (uint8_t)(1u << at / 2 % 8);
    }
    size_t at = page->upper;
    for (; n > 0 && at < check->page_size && begins[at / 16] & 1u << at / 2 % 8; n--) {
        at += node_len(data + at, page->flags == PAGE_LEAF);
    }
    return (n == 0 && at == check->page_size) || damaged(check, "nodes overlap");
}

static bool walk_nodes(struct walk *walk, const uint8_t *data, const struct page *page,
                       unsigned depth)
{
    size_t n = (page->lower - sizeof *page) / 2;
    if (!check_places(walk->check, data, page)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t at;
        memcpy(&at, data + sizeof *page + 2 * i, sizeof at);
        if (!walk_node(walk, data + at, walk->check->page_size - at, depth, i == 0)) {
            return false;
        }
    }
    return true;
}

/* LMDB takes a branch of one child for a bug of its own, except in the free list. */
static size_t least_nodes(const struct walk *walk, bool leaf)
{
    return leaf || walk->tree->page_size != 0 ? 1 : 2;
}

/* Recursion: at most DEPTH_MAX deep. */
static bool walk_page(struct walk *walk, uint64_t number, unsigned depth)
{
    struct check *check = walk->check;
    struct page page;
    if (depth > walk->tree->depth) {
        return damaged(check, "a tree is too deep");
    }
    if (!claim(check, number, 1, check->n_pages)) {
        return false;
    }
    memcpy(&page, page_at(check, number), sizeof page);
    bool leaf = depth == walk->tree->depth;
    if (page.number != number || page.flags != (leaf ? PAGE_LEAF : PAGE_BRANCH) ||
        page.lower < sizeof page || page.lower % 2 != 0 || page.lower > page.upper ||
        page.upper > check->page_size || page.upper % 2 != 0 ||
        (page.lower - sizeof page) / 2 < least_nodes(walk, leaf))
    {
        return damaged(check, "a page is damaged");
    }
    *(leaf ? &walk->found.leaves : &walk->found.branches) += 1;
    return walk_nodes(walk, page_at(check, number), &page, depth);
}

static bool walk_tree(struct walk *walk)
{
    const struct tree *tree = walk->tree;
    if (tree->root == NO_PAGE) {
        return tree->depth == 0 && tree->entries == 0
                   ? true
                   : damaged(walk->check, "an empty tree is not empty");
    }
    if (tree->depth == 0 || tree->depth > DEPTH_MAX) {
        return damaged(walk->check, "a tree has no such depth");
    }
    return walk_page(walk, tree->root, 1) &&
           ((walk->found.entries == tree->entries && walk->found.leaves == tree->leaves &&
             walk->found.branches == tree->branches && walk->found.overflows == tree->overflows) ||
            damaged(walk->check, "a tree's counts are wrong"));
}

/* A value in the main tree: a tree of records. */
static bool check_tree(struct check *check, const struct node *node, const uint8_t *value,
                       size_t len)
{
    struct tree tree;
    if (node->flags != NODE_TREE) {
        return true;
    }
    if (len != sizeof tree) {
        return damaged(check, "a tree's head is damaged");
    }
    memcpy(&tree, value, sizeof tree);
    if (tree.flags != 0 || tree.page_size != 0) {
        return damaged(check, "a tree is of another kind");
    }
    struct walk walk = {.check = check, .tree = &tree};
    return walk_tree(&walk);
}

/* A value in the free list: how many pages, then their numbers, the greatest first. */
static bool check_free(struct check *check, const struct node *node, const uint8_t *value,
                       size_t len)
{
    uint64_t n = 0;
    uint64_t before = NO_PAGE;
    if (node->flags == NODE_TREE || node->key_len != sizeof n || len < sizeof n) {
        return damaged(check, "the free list is damaged");
    }
    memcpy(&n, value, sizeof n);
    if (n > len / sizeof n - 1) {
        return damaged(check, "the free list is damaged");
    }
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t number;
        memcpy(&number, value + i * sizeof n, sizeof number);
        if (number >= before || !claim(check, number, 1, check->n_known)) {
            return damaged(check, "the free list is damaged");
        }
        before = number;
    }
    return true;
}

static bool read_meta(const struct check *check, unsigned i, struct meta *ret)
{
    struct page page;
    const uint8_t *data = page_at(check, i);
    memcpy(&page, data, sizeof page);
    memcpy(ret, data + sizeof page, sizeof *ret);
    return (page.flags & PAGE_META) && ret->magic == MAGIC && ret->version == DATA_VERSION &&
           ret->free.page_size == check->page_size && ret->main.page_size == 0 &&
           (ret->free.flags & TREE_FLAGS) == TREE_INTEGER_KEYS && ret->main.flags == 0;
}

/* The page size comes from the first meta page; the newer one counts. */
static bool find_meta(struct check *check, size_t len, struct meta *ret)
{
    struct meta metas[N_METAS];
    if (len < sizeof(struct page) + sizeof metas[0]) {
        return damaged(check, "it is truncated");
    }
    memcpy(&metas[0], check->data + sizeof(struct page), sizeof metas[0]);
    check->page_size = metas[0].free.page_size;
    if (metas[0].magic != MAGIC || check->page_size < 512 || check->page_size > PAGE_BYTES_MAX ||
        (check->page_size & (check->page_size - 1)) != 0)
    {
        return damaged(check, "it is not LMDB's");
    }
    if (len / check->page_size < N_METAS) {
        return damaged(check, "it is truncated");
    }
    if (!read_meta(check, 0, &metas[0]) || !read_meta(check, 1, &metas[1])) {
        return damaged(check, "its head is damaged");
    }
    *ret = metas[metas[1].transaction > metas[0].transaction];
    return true;
}

/* Pages at the end that were never needed after all may be missing in the file. */
#define MISSING_MAX UINT64_C(65536)

static bool count_pages(struct check *check, size_t len, const struct meta *meta)
{
    uint64_t in_file = len / check->page_size;
    if (meta->last_page >= in_file + MISSING_MAX || meta->last_page < N_METAS - 1) {
        return damaged(check, "it is truncated");
    }
    check->n_known = meta->last_page + 1;
    check->n_pages = check->n_known < in_file ? check->n_known : in_file;
    return true;
}

/* Its keys are the transactions that made pages free. */
static bool walk_free(struct check *check, const struct meta *meta)
{
    static const uint8_t none[sizeof(uint64_t)];
    uint64_t last;
    struct walk walk = {
        .check = check,
        .tree = &meta->free,
        .floor = none,
        .floor_len = sizeof none,
        .value = check_free,
    };
    if (!walk_tree(&walk)) {
        return false;
    }
    memcpy(&last, walk.floor, sizeof last);
    return last <= meta->transaction || damaged(check, "the free list is damaged");
}

static bool walk_main(struct check *check, const struct meta *meta)
{
    struct walk walk = {.check = check, .tree = &meta->main, .value = check_tree};
    return walk_tree(&walk);
}

int al_map_check(const uint8_t *data, size_t len, const char **ret_why)
{
    struct check check = {.data = data};
    struct meta meta;
    if (find_meta(&check, len, &meta) && count_pages(&check, len, &meta)) {
        check.seen = calloc(1, check.n_known / 8 + 1);
        if (!check.seen) {
            return -ENOMEM;
        }
        (void)(walk_main(&check, &meta) && walk_free(&check, &meta));
        free(check.seen);
    }
    if (check.why) {
        *ret_why = check.why;
    }
    return check.why ? -EBADMSG : 0;
}

int al_map_check_file(int dirfd, const char *name, const char **ret_why)
{
    struct stat st;
    al_auto_close int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (!S_ISREG(st.st_mode)) {
        *ret_why = "it is not a file";
        return -EBADMSG;
    }
    if (st.st_size == 0) {
        return 0;
    }
    size_t len = (size_t)st.st_size;
    uint8_t *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return -errno;
    }
    (void)madvise(data, len, MADV_SEQUENTIAL);
    int r = al_map_check(data, len, ret_why);
    munmap(data, len);
    return r;
}
