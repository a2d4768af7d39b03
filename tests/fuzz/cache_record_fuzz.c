/*
 * Any bytes as a stored record. As they are, and with the right checksum put in, so that what lies
 * behind it is reached: a record that is taken gives the same bytes when it is encoded again.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cache/record.h"
#include "tests/fuzz/fuzz.h"

static const uint8_t key[AL_CACHE_RECORD_KEY_LEN];

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void try_record(const uint8_t *data, size_t len)
{
    struct al_cache_record record;
    int64_t stored;
    bool peeked = al_cache_record_peek(data, len, &stored);
    if (al_cache_record_decode(key, data, len, &record) < 0) {
        return;
    }
    require(peeked && stored == record.stored_wall_ns);
    require(al_cache_record_size(&record.result, record.out) == len);
    uint8_t *again = malloc(len + 1);
    require(again);
    require(al_cache_record_encode(key, &record.result, record.out, stored, again) == 0);
    require(memcmp(again, data, len) == 0);
    free(again);
    al_result_finish(&record.result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    try_record(data, len);
    uint8_t *sealed = malloc(len > 0 ? len : 1);
    require(sealed);
    if (len > 0) {
        memcpy(sealed, data, len);
    }
    if (al_cache_record_seal(key, sealed, len)) {
        try_record(sealed, len);
    }
    free(sealed);
    return 0;
}
