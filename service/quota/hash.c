#include "service/quota/hash.h"

#include <endian.h>
#include <string.h>

struct state {
    uint64_t a, b, c, d;
};

static inline uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline void mix(struct state *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32) + s->d;
    s->c += s->b;
    s->d = rotate(s->d, 21) ^ s->a;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

static inline void absorb(struct state *s, uint64_t word)
{
    s->d ^= word;
    mix(s);
    s->a ^= word;
}

uint64_t al_hash(const struct al_hash_key *key, const void *data, size_t len)
{
    struct state s = {
        .a = key->k0 ^ UINT64_C(0x736f6d6570736575),
        .b = key->k1 ^ UINT64_C(0x646f72616e646f6d),
        .c = key->k0 ^ UINT64_C(0x6c7967656e657261),
        .d = key->k1 ^ UINT64_C(0x7465646279746573),
    };
    const uint8_t *at = data;
    uint64_t word;
    size_t left = len;
    for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        absorb(&s, le64toh(word));
    }
    word = 0;
    memcpy(&word, at, left);
    absorb(&s, le64toh(word) | (uint64_t)len << 56);
    s.c ^= 0xff;
    mix(&s);
    mix(&s);
    mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}
