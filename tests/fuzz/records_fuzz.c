/*
 * What records read from outside. The first byte says what the others are: a stored record, a
 * reference, a page token, a packed job that is to be interrupted, or LMDB's whole file.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "service/records/interrupt.h"
#include "service/records/map_check.h"
#include "service/records/record.h"
#include "tests/fuzz/fuzz.h"

static uint8_t again[AL_RECORDS_JOB_MAX + 1024];

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void require_same(const uint8_t *data, size_t len, size_t again_len)
{
    require(len == again_len && memcmp(data, again, len) == 0);
}

static void try_record(const uint8_t *data, size_t len)
{
    static const struct al_record_at at = {.created_ns = 1, .id = 2};
    struct al_record record;
    if (al_record_decode(&at, data, len, &record) == 0) {
        al_record_encode(&record, again);
        require_same(data, len, al_record_encoded_len(&record));
    }
}

static void try_ref(const uint8_t *data, size_t len)
{
    struct al_record record;
    if (al_record_decode_ref(2, data, len, &record) == 0) {
        require_same(data, len, al_record_encode_ref(&record, again));
    }
}

/* Unforgeable: whatever is taken was made here. */
static void try_token(const uint8_t *data, size_t len)
{
    static const uint8_t secret[AL_RECORD_SECRET_LEN] = "the same in every run";
    char token[2 * AL_RECORDS_TOKEN_MAX] = "";
    char made[AL_RECORDS_TOKEN_MAX];
    struct al_record_at at;
    memcpy(token, data, len < sizeof token ? len : sizeof token - 1);
    if (al_record_read_token(secret, "t", 0, token, &at) == 0) {
        require(al_record_make_token(secret, "t", 0, &at, made) == 0);
        require(strcmp(made, token) == 0);
    }
}

/* What came out is a job, and stays the same job. */
static void try_job(const uint8_t *data, size_t len)
{
    uint8_t *once;
    uint8_t *twice;
    size_t once_len;
    size_t twice_len;
    if (al_interrupt_job(data, len, 1, &once, &once_len) < 0) {
        return;
    }
    if (al_interrupt_job(once, once_len, 1, &twice, &twice_len) == 0) {
        require(once_len == twice_len && memcmp(once, twice, once_len) == 0);
        free(twice);
    } else {
        require(once_len > AL_RECORDS_JOB_MAX);
    }
    free(once);
}

static void try_map(const uint8_t *data, size_t len)
{
    const char *why = NULL;
    require(al_map_check(data, len, &why) == 0 || why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0) {
        return 0;
    }
    switch (data[0]) {
    case 'r':
        try_record(data + 1, len - 1);
        break;
    case 'i':
        try_ref(data + 1, len - 1);
        break;
    case 't':
        try_token(data + 1, len - 1);
        break;
    case 'j':
        try_job(data + 1, len - 1);
        break;
    default:
        try_map(data + 1, len - 1);
    }
    return 0;
}
