/* SHA-256 of bytes that come in pieces. A failure is kept and told at the end. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define AL_DIGEST_LEN 32

struct al_cache_digest {
    void *context; /* owned until the end; NULL: failed */
};

void al_cache_digest_begin(struct al_cache_digest *d);
void al_cache_digest_add(struct al_cache_digest *d, const void *data, size_t len);

/* Ends it in every case. 0 or -ENOMEM; `ret` is untouched then. */
int al_cache_digest_end(struct al_cache_digest *d, uint8_t ret[AL_DIGEST_LEN]);
