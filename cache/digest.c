#include "cache/digest.h"

#include <errno.h>
#include <string.h>

#include <openssl/evp.h>

static void fail(struct al_cache_digest *d)
{
    EVP_MD_CTX_free(d->context);
    d->context = NULL;
}

void al_cache_digest_begin(struct al_cache_digest *d)
{
    d->context = EVP_MD_CTX_new();
    if (d->context && EVP_DigestInit_ex(d->context, EVP_sha256(), NULL) != 1) {
        fail(d);
    }
}

void al_cache_digest_add(struct al_cache_digest *d, const void *data, size_t len)
{
    if (d->context && len > 0 && EVP_DigestUpdate(d->context, data, len) != 1) {
        fail(d);
    }
}

int al_cache_digest_end(struct al_cache_digest *d, uint8_t ret[AL_DIGEST_LEN])
{
    uint8_t sum[AL_DIGEST_LEN];
    if (d->context && EVP_DigestFinal_ex(d->context, sum, NULL) != 1) {
        fail(d);
    }
    if (!d->context) {
        return -ENOMEM;
    }
    EVP_MD_CTX_free(d->context);
    d->context = NULL;
    memcpy(ret, sum, sizeof sum);
    return 0;
}
