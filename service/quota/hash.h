/*
 * SipHash-1-3: a keyed hash, so that callers who choose the names that are hashed cannot make them
 * collide.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct al_hash_key {
    uint64_t k0;
    uint64_t k1;
};

uint64_t al_hash(const struct al_hash_key *key, const void *data, size_t len);
