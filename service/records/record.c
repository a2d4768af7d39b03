#include "service/records/record.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "backends/api/job_spec.h"
#include "backends/api/result.h"

/* The value: format, status, length of the tenant, five bytes of zero, checksum, tenant, job. */
#define VALUE_FIXED_LEN   16
#define VALUE_CHECKSUM_AT 8
#define REF_FIXED_LEN     9

static void put_u64(uint8_t *to, uint64_t value)
{
    value = htobe64(value);
    memcpy(to, &value, sizeof value);
}

static uint64_t get_u64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return be64toh(value);
}

int al_record_parse_id(const char *text, uint64_t *ret)
{
    uint64_t id = 0;
    size_t n = 0;
    for (; n < AL_JOB_ID_LEN && text[n] != '\0'; n++) {
        char c = text[n];
        if (c >= '0' && c <= '9') {
            id = id << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            id = id << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return -EINVAL;
        }
    }
    if (n != AL_JOB_ID_LEN || text[n] != '\0') {
        return -EINVAL;
    }
    *ret = id;
    return 0;
}

static bool is_status(int status)
{
    return status >= AL_STATUS_PENDING && status <= AL_STATUS_EGRESS_BLOCKED;
}

int al_record_make(const struct al_record_key *key, const uint8_t *job, size_t len,
                   struct al_record *ret)
{
    struct al_record record = {
        .at.created_ns = (uint64_t)key->created_wall_ns,
        .status = key->status,
        .tenant = key->tenant,
        .tenant_len = strnlen(key->tenant, AL_RECORDS_TENANT_MAX + 1),
        .job = job,
        .job_len = len,
    };
    if (key->created_wall_ns < 0 || !is_status(key->status) || record.tenant_len == 0 ||
        record.tenant_len > AL_RECORDS_TENANT_MAX || len > AL_RECORDS_JOB_MAX ||
        al_record_parse_id(key->id, &record.at.id) < 0)
    {
        return -EINVAL;
    }
    *ret = record;
    return 0;
}

/* --- the value --- */

/* Each step is a bijection of both inputs, so one changed word always shows. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *data, size_t len)
{
    uint64_t word;
    size_t at = 0;
    for (; at + sizeof word <= len; at += sizeof word) {
        memcpy(&word, data + at, sizeof word);
        hash = mix(hash, le64toh(word));
    }
    if (at < len) {
        word = 0;
        memcpy(&word, data + at, len - at);
        hash = mix(hash, le64toh(word));
    }
    return mix(hash, len);
}

static uint64_t checksum(const struct al_record_at *at, const uint8_t *value, size_t len)
{
    uint64_t hash = mix(mix(AL_RECORD_FORMAT, at->created_ns), at->id);
    hash = mix_bytes(hash, value, VALUE_CHECKSUM_AT);
    return mix_bytes(hash, value + VALUE_FIXED_LEN, len - VALUE_FIXED_LEN);
}

size_t al_record_encoded_len(const struct al_record *record)
{
    return VALUE_FIXED_LEN + record->tenant_len + record->job_len;
}

void al_record_encode(const struct al_record *record, uint8_t *to)
{
    memset(to, 0, VALUE_FIXED_LEN);
    to[0] = AL_RECORD_FORMAT;
    to[1] = (uint8_t)record->status;
    to[2] = (uint8_t)record->tenant_len;
    memcpy(to + VALUE_FIXED_LEN, record->tenant, record->tenant_len);
    if (record->job_len > 0) {
        memcpy(to + VALUE_FIXED_LEN + record->tenant_len, record->job, record->job_len);
    }
    put_u64(to + VALUE_CHECKSUM_AT, checksum(&record->at, to, al_record_encoded_len(record)));
}

int al_record_decode(const struct al_record_at *at, const uint8_t *data, size_t len,
                     struct al_record *ret)
{
    if (len < VALUE_FIXED_LEN || data[0] != AL_RECORD_FORMAT || !is_status(data[1]) ||
        data[2] == 0 || data[2] > AL_RECORDS_TENANT_MAX || len - VALUE_FIXED_LEN < data[2] ||
        len - VALUE_FIXED_LEN - data[2] > AL_RECORDS_JOB_MAX ||
        get_u64(data + VALUE_CHECKSUM_AT) != checksum(at, data, len))
    {
        return -EBADMSG;
    }
    *ret = (struct al_record){
        .at = *at,
        .status = data[1],
        .tenant = (const char *)data + VALUE_FIXED_LEN,
        .tenant_len = data[2],
        .job = data + VALUE_FIXED_LEN + data[2],
        .job_len = len - VALUE_FIXED_LEN - data[2],
    };
    return 0;
}

/* --- keys --- */

void al_record_encode_id(uint64_t id, uint8_t to[AL_RECORD_ID_LEN])
{
    put_u64(to, id);
}

void al_record_encode_at(const struct al_record_at *at, uint8_t to[AL_RECORD_AT_LEN])
{
    put_u64(to, at->created_ns);
    put_u64(to + 8, at->id);
}

void al_record_decode_at(const uint8_t from[AL_RECORD_AT_LEN], struct al_record_at *ret)
{
    ret->created_ns = get_u64(from);
    ret->id = get_u64(from + 8);
}

size_t al_record_encode_index(int status, const char *tenant, size_t tenant_len,
                              const struct al_record_at *at, uint8_t to[AL_RECORD_INDEX_MAX])
{
    to[0] = (uint8_t)status;
    to[1] = (uint8_t)tenant_len; /* so that no tenant's keys lie between another's */
    memcpy(to + 2, tenant, tenant_len);
    al_record_encode_at(at, to + 2 + tenant_len);
    return 2 + tenant_len + AL_RECORD_AT_LEN;
}

size_t al_record_encode_ref(const struct al_record *record, uint8_t to[AL_RECORD_REF_MAX])
{
    to[0] = (uint8_t)record->status;
    put_u64(to + 1, record->at.created_ns);
    memcpy(to + REF_FIXED_LEN, record->tenant, record->tenant_len);
    return REF_FIXED_LEN + record->tenant_len;
}

int al_record_decode_ref(uint64_t id, const uint8_t *data, size_t len, struct al_record *ret)
{
    if (len <= REF_FIXED_LEN || len > AL_RECORD_REF_MAX || !is_status(data[0])) {
        return -EBADMSG;
    }
    *ret = (struct al_record){
        .at = {.created_ns = get_u64(data + 1), .id = id},
        .status = data[0],
        .tenant = (const char *)data + REF_FIXED_LEN,
        .tenant_len = len - REF_FIXED_LEN,
    };
    return 0;
}
