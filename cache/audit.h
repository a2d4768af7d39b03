/*
 * Theory of operation
 *
 * LMDB believes its file: a page that was torn by a power loss or overwritten by something else
 * makes it read outside of its map, or abort. So the whole structure of a file is checked before
 * LMDB may open it: the newer of the two meta pages; every page of both trees (records and free
 * list), each in range, inside the file, met once, of the right kind and depth; every node inside
 * its page; all keys in order and between those of the branch above; the free list naming only
 * pages that are otherwise unused; the counts equal to those in the meta page. What records hold is
 * not looked at: they carry their own checksum.
 *
 * The layout is that of LMDB 0.9 (data version 1), in the host's byte order as LMDB writes it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct al_cache_audit {
    uint32_t page_bytes;
    uint64_t entries; /* in the tree of records */
    uint64_t bytes;   /* sum of their footprints */
};

/* NULL and figures when the bytes are a sound file; else why not, a constant text. */
const char *al_cache_audit_file(const uint8_t *data, size_t len, struct al_cache_audit *ret);

/* What a record of `len` bytes under a key of `key_len` bytes takes of a file with that page size:
 * a node in a leaf, or a node and whole pages. A node counts twice, since leaves are about half
 * full once entries come and go. */
uint64_t al_cache_audit_footprint(uint32_t page_bytes, size_t key_len, size_t len);
