#include "cache/audit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cache/lmdb_layout.h"

#define DEPTH_MAX 32 /* of a tree: LMDB's own bound */

struct key {
    const uint8_t *data;
    size_t len;
};

struct node {
    struct node_head head;
    struct key key;
    const uint8_t *data; /* behind the key */
    size_t data_len;     /* of a leaf's node */
};

struct walk {
    const uint8_t *data;
    size_t len;
    struct meta meta;
    uint32_t page_bytes;
    uint8_t *met;    /* a bit a page */
    struct tree saw; /* counted so far in the tree that is walked */
    int which;
    struct key last; /* key of the latest leaf node; NULL data: none yet */
    uint64_t bytes;
    const char *wrong; /* the first thing found */
};

static bool is_wrong(struct walk *w, const char *what)
{
    w->wrong = what;
    return false;
}

/* The page belongs to exactly one place. */
static bool take_page(struct walk *w, uint64_t number)
{
    if (number < 2 || number > w->meta.last_page) {
        return is_wrong(w, "a page number out of range");
    }
    uint8_t bit = (uint8_t)(1u << number % 8);
    if (w->met[number / 8] & bit) {
        return is_wrong(w, "a page that is used twice");
    }
    w->met[number / 8] |= bit;
    return true;
}

static bool load_page(struct walk *w, uint64_t number, struct page_head *ret)
{
    if (!take_page(w, number)) {
        return false;
    }
    if (number >= w->len / w->page_bytes) {
        return is_wrong(w, "a page behind the end of the file");
    }
    memcpy(ret, w->data + number * w->page_bytes, sizeof *ret);
    return ret->number == number ? true : is_wrong(w, "a page in the wrong place");
}

static int compare_memory(struct key a, struct key b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    int r = least > 0 ? memcmp(a.data, b.data, least) : 0;
    return r ? r : (a.len > b.len) - (a.len < b.len);
}

static int compare_keys(const struct walk *w, struct key a, struct key b)
{
    if (w->which == TREE_RECORDS) {
        return compare_memory(a, b);
    }
    uint64_t left;
    uint64_t right;
    memcpy(&left, a.data, sizeof left);
    memcpy(&right, b.data, sizeof right);
    return (left > right) - (left < right);
}

static size_t even(size_t n)
{
    return n + (n & 1);
}

/* The nodes fill the page from `upper` to its end, the slots lie below `lower`. */
static bool check_page_bounds(struct walk *w, const struct page_head *head)
{
    size_t least = head->flags == PAGE_BRANCH ? 2 : 1;
    size_t slots = head->lower < sizeof *head ? 0 : (head->lower - sizeof *head) / 2;
    if (slots < least || head->lower > head->upper || head->upper > w->page_bytes ||
        head->lower % 2 != 0)
    {
        return is_wrong(w, "a page with wrong bounds");
    }
    return true;
}

static bool load_node(struct walk *w, uint64_t number, const struct page_head *head, size_t slot,
                      struct node *ret)
{
    const uint8_t *page = w->data + number * w->page_bytes;
    uint16_t at;
    memcpy(&at, page + sizeof *head + slot * 2, sizeof at);
    if (at < head->upper || at % 2 != 0 || at + sizeof ret->head > w->page_bytes) {
        return is_wrong(w, "a node outside of its page");
    }
    memcpy(&ret->head, page + at, sizeof ret->head);
    size_t room = w->page_bytes - at - sizeof ret->head;
    size_t on_page = 0;
    ret->key = (struct key){page + at + sizeof ret->head, ret->head.key_len};
    ret->data = ret->key.data + ret->key.len;
    ret->data_len = ret->head.low | (size_t)ret->head.high << 16;
    if (head->flags == PAGE_LEAF) {
        on_page = ret->head.flags & NODE_BIG ? sizeof(uint64_t) : ret->data_len;
        if (ret->head.flags & ~NODE_BIG) {
            return is_wrong(w, "a node of unknown kind");
        }
    }
    if (ret->key.len > room || on_page > room - ret->key.len) {
        return is_wrong(w, "a node longer than its page");
    }
    return true;
}

static size_t node_bytes(const struct page_head *head, const struct node *node)
{
    size_t data = head->flags == PAGE_BRANCH           ? 0
                  : (node->head.flags & NODE_BIG) != 0 ? sizeof(uint64_t)
                                                       : node->data_len;
    return even(sizeof node->head + node->key.len + data);
}

/* Its pages are taken; `node->data` is where the data lies. */
static bool follow_overflow(struct walk *w, struct node *node)
{
    struct page_head head;
    uint64_t first;
    memcpy(&first, node->data, sizeof first);
    if (!load_page(w, first, &head)) {
        return false;
    }
    uint64_t pages = head.pages; /* more than needed when the data was made shorter */
    uint64_t needed = (sizeof head + node->data_len + w->page_bytes - 1) / w->page_bytes;
    if (head.flags != PAGE_OVERFLOW || pages < needed || pages > w->len / w->page_bytes - first) {
        return is_wrong(w, "an overflow page that does not fit its node");
    }
    for (uint64_t i = 1; i < pages; i++) {
        if (!take_page(w, first + i)) {
            return false;
        }
    }
    w->saw.overflow_pages += pages;
    node->data = w->data + first * w->page_bytes + sizeof head;
    return true;
}

/* A length and that many page numbers, which nothing else uses. */
static bool check_free_pages(struct walk *w, const struct node *node)
{
    uint64_t n;
    if (node->data_len < sizeof n || node->data_len % sizeof n != 0) {
        return is_wrong(w, "a free list of the wrong length");
    }
    memcpy(&n, node->data, sizeof n);
    if (n > node->data_len / sizeof n - 1) {
        return is_wrong(w, "a free list of the wrong length");
    }
    uint64_t last = NO_PAGE;
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t number;
        memcpy(&number, node->data + i * sizeof number, sizeof number);
        if (number >= last) {
            return is_wrong(w, "a free list out of order");
        }
        last = number;
        if (!take_page(w, number)) {
            return false;
        }
    }
    return true;
}

static bool check_leaf_node(struct walk *w, struct node *node, struct key from)
{
    size_t key_len = node->key.len;
    if (w->which == TREE_FREE ? key_len != sizeof(uint64_t) : key_len == 0) {
        return is_wrong(w, "a key of the wrong length");
    }
    if ((w->last.data && compare_keys(w, w->last, node->key) >= 0) ||
        (from.data && compare_keys(w, from, node->key) > 0))
    {
        return is_wrong(w, "keys out of order");
    }
    w->last = node->key;
    w->saw.entries++;
    if (node->head.flags & NODE_BIG && !follow_overflow(w, node)) {
        return false;
    }
    w->bytes += al_cache_audit_footprint(w->page_bytes, key_len, node->data_len);
    return w->which == TREE_RECORDS || check_free_pages(w, node);
}

static bool check_page(struct walk *w, uint64_t number, unsigned depth, struct key from);

/* Keys before the child are less than its node's key, those in it are not; the first node of a
 * branch has no key of its own and stands for that of the branch above. */
static bool check_child(struct walk *w, const struct node *node, size_t slot, unsigned depth,
                        struct key from)
{
    uint64_t child = node->data_len | (uint64_t)node->head.flags << 32;
    if (slot > 0) {
        from = node->key;
        if (w->which == TREE_FREE && from.len != sizeof(uint64_t)) {
            return is_wrong(w, "a key of the wrong length");
        }
        if (w->last.data && compare_keys(w, w->last, from) >= 0) {
            return is_wrong(w, "keys out of order");
        }
    }
    return check_page(w, child, depth + 1, from);
}

static bool check_page(struct walk *w, uint64_t number, unsigned depth, struct key from)
{
    const struct tree *tree = &w->meta.trees[w->which];
    bool leaf = depth == tree->depth;
    struct page_head head;
    if (!load_page(w, number, &head)) {
        return false;
    }
    if (head.flags != (leaf ? PAGE_LEAF : PAGE_BRANCH)) {
        return is_wrong(w, "a page of the wrong kind");
    }
    if (!check_page_bounds(w, &head)) {
        return false;
    }
    size_t filled = 0;
    for (size_t slot = 0; slot < (head.lower - sizeof head) / 2; slot++) {
        struct node node;
        if (!load_node(w, number, &head, slot, &node)) {
            return false;
        }
        filled += node_bytes(&head, &node);
        if (!(leaf ? check_leaf_node(w, &node, from) : check_child(w, &node, slot, depth, from))) {
            return false;
        }
    }
    w->saw.leaf_pages += leaf;
    w->saw.branch_pages += !leaf;
    return filled == (size_t)w->page_bytes - head.upper ? true : is_wrong(w, "a page with gaps");
}

static bool check_tree(struct walk *w, int which)
{
    const struct tree *tree = &w->meta.trees[which];
    w->which = which;
    w->saw = (struct tree){0};
    w->last = (struct key){0};
    w->bytes = 0;
    if (tree->depth > DEPTH_MAX || (tree->depth == 0) != (tree->root == NO_PAGE)) {
        return is_wrong(w, "a tree of the wrong depth");
    }
    if (tree->depth > 0 && !check_page(w, tree->root, 1, (struct key){0})) {
        return false;
    }
    if (w->saw.entries != tree->entries || w->saw.leaf_pages != tree->leaf_pages ||
        w->saw.branch_pages != tree->branch_pages || w->saw.overflow_pages != tree->overflow_pages)
    {
        return is_wrong(w, "a tree with wrong counts");
    }
    return true;
}

static bool read_meta(const uint8_t *data, size_t len, uint64_t number, size_t page_bytes,
                      struct meta *ret)
{
    struct page_head head;
    if (len < (number + 1) * page_bytes) {
        return false;
    }
    memcpy(&head, data + number * page_bytes, sizeof head);
    memcpy(ret, data + number * page_bytes + sizeof head, sizeof *ret);
    return head.number == number && head.flags == PAGE_META && ret->magic == META_MAGIC &&
           ret->version == META_VERSION;
}

/* The meta page that LMDB would take. */
static bool load_meta(struct walk *w)
{
    struct meta both[2];
    if (!read_meta(w->data, w->len, 0, PAGE_BYTES_MIN, &both[0])) {
        return is_wrong(w, "no file of this version");
    }
    w->page_bytes = both[0].trees[TREE_FREE].pad;
    if (w->page_bytes < PAGE_BYTES_MIN || w->page_bytes > PAGE_BYTES_MAX ||
        (w->page_bytes & (w->page_bytes - 1)) != 0 ||
        !read_meta(w->data, w->len, 1, w->page_bytes, &both[1]) ||
        both[1].trees[TREE_FREE].pad != w->page_bytes)
    {
        return is_wrong(w, "a damaged first page");
    }
    w->meta = both[both[1].txn > both[0].txn];
    if ((w->meta.trees[TREE_FREE].flags & 0xff) != FLAG_INTEGER_KEY ||
        w->meta.trees[TREE_RECORDS].flags != 0)
    {
        return is_wrong(w, "trees of the wrong kind");
    }
    /* Pages that a transaction both took and dropped are counted but were never written. */
    if (w->meta.last_page < 1 || w->meta.last_page / 2 > w->len / w->page_bytes) {
        return is_wrong(w, "more pages than the file holds");
    }
    return true;
}

const char *al_cache_audit_file(const uint8_t *data, size_t len, struct al_cache_audit *ret)
{
    struct walk w = {.data = data, .len = len};
    if (!load_meta(&w)) {
        return w.wrong;
    }
    w.met = calloc(1, (size_t)(w.meta.last_page / 8 + 1));
    if (!w.met) {
        return "too large to be checked";
    }
    bool sound = check_tree(&w, TREE_FREE) && check_tree(&w, TREE_RECORDS);
    free(w.met);
    if (!sound) {
        return w.wrong;
    }
    *ret = (struct al_cache_audit){w.page_bytes, w.saw.entries, w.bytes};
    return NULL;
}

/* LMDB keeps a node on its page when two of its size fit there. */
uint64_t al_cache_audit_footprint(uint32_t page_bytes, size_t key_len, size_t len)
{
    size_t head = sizeof(struct node_head) + key_len;
    size_t most = (((page_bytes - sizeof(struct page_head)) / 2) & ~(size_t)1) - sizeof(uint16_t);
    if (head + len <= most) {
        return 2 * (even(head + len) + sizeof(uint16_t));
    }
    uint64_t pages = (sizeof(struct page_head) + len + page_bytes - 1) / page_bytes;
    return pages * page_bytes + 2 * (even(head + sizeof(uint64_t)) + sizeof(uint16_t));
}
