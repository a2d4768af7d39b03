/*
 * One record in its stored form: the keys it is found under and the bytes of its value, versioned
 * and with a checksum. Also the position of a record in a list and its token. Thread-safe: no state
 * outside of the arguments.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/records/records.h"

/* Goes up with every change of keys or values; a file of another format is set aside. */
#define AL_RECORD_FORMAT 1

/* The order of lists. Newer is greater. */
struct al_record_at {
    uint64_t created_ns; /* since 1970 */
    uint64_t id;
};

static inline int al_record_compare(const struct al_record_at *a, const struct al_record_at *b)
{
    if (a->created_ns != b->created_ns) {
        return a->created_ns < b->created_ns ? -1 : 1;
    }
    return a->id == b->id ? 0 : a->id < b->id ? -1 : 1;
}

/* Everything is borrowed. */
struct al_record {
    struct al_record_at at;
    int status;
    const char *tenant; /* not terminated */
    size_t tenant_len;
    const uint8_t *job;
    size_t job_len;
};

/* -EINVAL: not AL_JOB_ID_LEN lower-case hex digits. */
int al_record_parse_id(const char *text, uint64_t *ret);

/* -EINVAL: a key that breaks its contract, or a job beyond AL_RECORDS_JOB_MAX. */
int al_record_make(const struct al_record_key *key, const uint8_t *job, size_t len,
                   struct al_record *ret);

/* --- the value --- */

/* How long the value will be, and its bytes; `to` has room for them. */
size_t al_record_encoded_len(const struct al_record *record);
void al_record_encode(const struct al_record *record, uint8_t *to);

/* The result points into the bytes. -EBADMSG: not exactly what al_record_encode made for a record
 * at `at`. */
int al_record_decode(const struct al_record_at *at, const uint8_t *data, size_t len,
                     struct al_record *ret);

/* --- keys: compared as bytes they are in the order of lists --- */

#define AL_RECORD_ID_LEN    8
#define AL_RECORD_AT_LEN    16
#define AL_RECORD_INDEX_MAX (2 + AL_RECORDS_TENANT_MAX + AL_RECORD_AT_LEN)

void al_record_encode_id(uint64_t id, uint8_t to[AL_RECORD_ID_LEN]);
void al_record_encode_at(const struct al_record_at *at, uint8_t to[AL_RECORD_AT_LEN]);
void al_record_decode_at(const uint8_t from[AL_RECORD_AT_LEN], struct al_record_at *ret);

/* The key in the index by status (0: by all) and tenant. Returns its length. */
size_t al_record_encode_index(int status, const char *tenant, size_t tenant_len,
                              const struct al_record_at *at, uint8_t to[AL_RECORD_INDEX_MAX]);

/* What is remembered of a record by its id: its other keys. */
#define AL_RECORD_REF_MAX (9 + AL_RECORDS_TENANT_MAX)
size_t al_record_encode_ref(const struct al_record *record, uint8_t to[AL_RECORD_REF_MAX]);
/* Everything but the job, pointing into the bytes. -EBADMSG. */
int al_record_decode_ref(uint64_t id, const uint8_t *data, size_t len, struct al_record *ret);

/* --- tokens --- */

#define AL_RECORD_SECRET_LEN 32

/* A token says after which record a page begins, and is good for this secret, tenant and status
 * only. -EIO: the library cannot. */
int al_record_make_token(const uint8_t secret[AL_RECORD_SECRET_LEN], const char *tenant, int status,
                         const struct al_record_at *at, char ret[AL_RECORDS_TOKEN_MAX]);
/* -EINVAL: not such a token. */
int al_record_read_token(const uint8_t secret[AL_RECORD_SECRET_LEN], const char *tenant, int status,
                         const char *token, struct al_record_at *ret);
