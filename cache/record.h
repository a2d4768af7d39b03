/*
 * A result as the cache keeps it: a versioned, checksummed string of bytes. The checksum covers the
 * key as well, so that a record found under another key, or changed in any bit, is refused. Pure.
 *
 * All numbers little-endian: magic u32, version u32, checksum (the first 16 bytes of SHA-256 over
 * the key and everything behind the checksum), the fixed fields, then compile output, stdout,
 * stderr and error text, whose lengths are among the fixed fields, and the artifacts, which must be
 * whole.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/job_spec.h"
#include "backends/api/result.h"

/* Raised with every change of the bytes or their meaning; other versions are refused. */
#define AL_CACHE_RECORD_VERSION 2

#define AL_CACHE_RECORD_KEY_LEN   32
#define AL_CACHE_RECORD_BYTES_MAX (1u << 30)

/* `result` is of the reader and to be finished; `out` is borrowed from the record's bytes. */
struct al_cache_record {
    int64_t stored_wall_ns;
    struct al_result result;
    struct al_bytes out[2]; /* stdout, stderr */
};

/* The bytes that encode needs; 0 when they would be more than AL_CACHE_RECORD_BYTES_MAX. */
size_t al_cache_record_size(const struct al_result *result, const struct al_bytes out[2]);

/* Writes exactly al_cache_record_size bytes. 0 or -ENOMEM. */
int al_cache_record_encode(const uint8_t key[AL_CACHE_RECORD_KEY_LEN],
                           const struct al_result *result, const struct al_bytes out[2],
                           int64_t stored_wall_ns, uint8_t *ret_data);

/* 0, -EBADMSG for anything that encode did not make for this key, -ENOMEM. */
int al_cache_record_decode(const uint8_t key[AL_CACHE_RECORD_KEY_LEN], const uint8_t *data,
                           size_t len, struct al_cache_record *ret);

/* When it was stored, without proof that the rest is whole. False: not a record of this version. */
bool al_cache_record_peek(const uint8_t *data, size_t len, int64_t *ret_stored_wall_ns);

/* Puts magic, version and the right checksum into what may be a record. False when it is too short
 * or memory is out. */
bool al_cache_record_seal(const uint8_t key[AL_CACHE_RECORD_KEY_LEN], uint8_t *data, size_t len);
