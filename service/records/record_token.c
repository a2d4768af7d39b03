#include "service/records/record.h"

#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#define MAC_LEN   16
#define TOKEN_LEN (AL_RECORD_AT_LEN + MAC_LEN)

_Static_assert(2 * TOKEN_LEN + 1 == AL_RECORDS_TOKEN_MAX, "a token is these bytes in hex");

/* Fills in the second part of the token, made of the first and what it is for. */
static int seal(const uint8_t secret[AL_RECORD_SECRET_LEN], const char *tenant, int status,
                const uint8_t token[AL_RECORD_AT_LEN], uint8_t ret[MAC_LEN])
{
    static const char purpose[] = "airlock records page 1";
    uint8_t text[sizeof purpose + 1 + AL_RECORD_AT_LEN + AL_RECORDS_TENANT_MAX];
    uint8_t mac[EVP_MAX_MD_SIZE];
    size_t tenant_len = strnlen(tenant, AL_RECORDS_TENANT_MAX + 1);
    if (tenant_len > AL_RECORDS_TENANT_MAX) {
        return -EINVAL;
    }
    uint8_t *to = mempcpy(text, purpose, sizeof purpose);
    *to++ = (uint8_t)status;
    to = mempcpy(to, token, AL_RECORD_AT_LEN);
    to = mempcpy(to, tenant, tenant_len);
    if (!HMAC(EVP_sha256(), secret, AL_RECORD_SECRET_LEN, text, (size_t)(to - text), mac, NULL)) {
        return -EIO;
    }
    memcpy(ret, mac, MAC_LEN);
    return 0;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int al_record_make_token(const uint8_t secret[AL_RECORD_SECRET_LEN], const char *tenant, int status,
                         const struct al_record_at *at, char ret[AL_RECORDS_TOKEN_MAX])
{
    uint8_t token[TOKEN_LEN];
    al_record_encode_at(at, token);
    int r = seal(secret, tenant, status, token, token + AL_RECORD_AT_LEN);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < TOKEN_LEN; i++) {
        ret[2 * i] = "0123456789abcdef"[token[i] >> 4];
        ret[2 * i + 1] = "0123456789abcdef"[token[i] & 15];
    }
    ret[2 * TOKEN_LEN] = '\0';
    return 0;
}

int al_record_read_token(const uint8_t secret[AL_RECORD_SECRET_LEN], const char *tenant, int status,
                         const char *token, struct al_record_at *ret)
{
    uint8_t bytes[TOKEN_LEN];
    uint8_t mac[MAC_LEN];
    if (strnlen(token, AL_RECORDS_TOKEN_MAX) != 2 * (size_t)TOKEN_LEN) {
        return -EINVAL;
    }
    for (size_t i = 0; i < TOKEN_LEN; i++) {
        int high = digit(token[2 * i]);
        int low = digit(token[2 * i + 1]);
        if (high < 0 || low < 0) {
            return -EINVAL;
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (seal(secret, tenant, status, bytes, mac) < 0 ||
        CRYPTO_memcmp(mac, bytes + AL_RECORD_AT_LEN, MAC_LEN) != 0)
    {
        return -EINVAL;
    }
    al_record_decode_at(bytes, ret);
    return 0;
}
