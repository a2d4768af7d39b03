#include "client/json.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REAL_DIGITS_MIN 15
#define REAL_DIGITS_MAX 17 /* enough for every double */

/* RFC 3339's years, 0001 to 9999, in seconds since 1970. */
#define TIMESTAMP_MIN (-62135596800LL)
#define TIMESTAMP_MAX 253402300799LL

static json_t *json_from_bytes(const ProtobufCBinaryData *bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = (bytes->len + 2) / 3 * 4;
    char *text = malloc(len + 1);
    if (!text) {
        return NULL;
    }
    char *p = text;
    for (size_t i = 0; i < bytes->len; i += 3) {
        size_t n = bytes->len - i;
        uint32_t three = (uint32_t)bytes->data[i] << 16;
        three |= n > 1 ? (uint32_t)bytes->data[i + 1] << 8 : 0;
        three |= n > 2 ? (uint32_t)bytes->data[i + 2] : 0;
        *p++ = digits[three >> 18];
        *p++ = digits[three >> 12 & 63];
        *p++ = digits[three >> 6 & 63];
        *p++ = digits[three & 63];
    }
    static const size_t padding[] = {0, 2, 1};
    memset(p - padding[bytes->len % 3], '=', padding[bytes->len % 3]);
    json_t *json = json_stringn(text, len);
    free(text);
    return json;
}

static json_t *json_from_double(double value)
{
    if (isnan(value)) {
        return json_string("NaN");
    }
    if (isinf(value)) {
        return json_string(value > 0 ? "Infinity" : "-Infinity");
    }
    return json_real(value);
}

static json_t *json_from_enum(const ProtobufCEnumDescriptor *descriptor, int value)
{
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(descriptor, value);
    return known ? json_string(known->name) : json_integer(value);
}

static json_t *json_from_uint64(uint64_t value)
{
    return json_sprintf("%" PRIu64, value);
}

static json_t *json_from_int64(int64_t value)
{
    return json_sprintf("%" PRId64, value);
}

static json_t *json_from_value(const ProtobufCFieldDescriptor *field, const void *value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer(*(const int32_t *)value);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer(*(const uint32_t *)value);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return json_from_int64(*(const int64_t *)value);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return json_from_uint64(*(const uint64_t *)value);
    case PROTOBUF_C_TYPE_FLOAT:
        return json_from_double((double)*(const float *)value);
    case PROTOBUF_C_TYPE_DOUBLE:
        return json_from_double(*(const double *)value);
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)value);
    case PROTOBUF_C_TYPE_ENUM:
        return json_from_enum(field->descriptor, *(const int *)value);
    case PROTOBUF_C_TYPE_STRING:
        return json_string(*(char *const *)value ? *(char *const *)value : "");
    case PROTOBUF_C_TYPE_BYTES:
        return json_from_bytes(value);
    case PROTOBUF_C_TYPE_MESSAGE:
        return al_json_from_message(*(const ProtobufCMessage *const *)value);
    }
    return NULL;
}

static size_t value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static bool has_default_value(const ProtobufCFieldDescriptor *field, const void *value)
{
    static const uint8_t zero[sizeof(ProtobufCBinaryData)];
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return !*(char *const *)value || **(char *const *)value == '\0';
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)value)->len == 0;
    default:
        return memcmp(value, zero, value_size(field->type)) == 0;
    }
}

/* protobuf names the hidden message of `map<K, V> some_field` "<parent>.SomeFieldEntry". */
static bool is_map(const ProtobufCMessageDescriptor *parent, const ProtobufCFieldDescriptor *field)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE || field->label != PROTOBUF_C_LABEL_REPEATED) {
        return false;
    }
    const char *name = ((const ProtobufCMessageDescriptor *)field->descriptor)->name;
    size_t prefix = strlen(parent->name);
    if (strncmp(name, parent->name, prefix) != 0 || name[prefix] != '.') {
        return false;
    }
    name += prefix + 1;
    bool upper = true;
    for (const char *p = field->name; *p; p++) {
        if (*p == '_') {
            upper = true;
        } else if (*name++ != (upper ? toupper((unsigned char)*p) : *p)) {
            return false;
        } else {
            upper = false;
        }
    }
    return strcmp(name, "Entry") == 0;
}

static const void *member(const ProtobufCMessage *message, unsigned offset)
{
    return (const uint8_t *)message + offset;
}

static json_t *json_from_map_key(const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *key = &entry->descriptor->fields[0];
    const void *value = member(entry, key->offset);
    if (key->type == PROTOBUF_C_TYPE_BOOL) {
        return json_string(*(const protobuf_c_boolean *)value ? "true" : "false");
    }
    json_t *json = json_from_value(key, value);
    if (!json_is_integer(json)) {
        return json;
    }
    json_t *text = json_from_int64(json_integer_value(json));
    json_decref(json);
    return text;
}

/* A later entry of the same key wins, as everywhere in protobuf. */
static json_t *json_from_map(const ProtobufCMessage *const *entries, size_t n)
{
    json_t *object = json_object();
    for (size_t i = 0; object && i < n; i++) {
        const ProtobufCFieldDescriptor *field = &entries[i]->descriptor->fields[1];
        const void *value = member(entries[i], field->offset);
        bool null_message =
            field->type == PROTOBUF_C_TYPE_MESSAGE && !*(const ProtobufCMessage *const *)value;
        json_t *key = json_from_map_key(entries[i]);
        json_t *item = null_message ? json_object() : json_from_value(field, value);
        int rc = key ? json_object_set_new(object, json_string_value(key), item) : -1;
        if (!key) {
            json_decref(item);
        }
        json_decref(key);
        if (rc < 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static json_t *json_from_list(const ProtobufCFieldDescriptor *field, const uint8_t *items, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < n; i++) {
        json_t *item = json_from_value(field, items + i * value_size(field->type));
        if (json_array_append_new(array, item) < 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static bool is_present(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const void *value = member(message, field->offset);
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return *(const size_t *)member(message, field->quantifier_offset) > 0;
    }
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        return *(const uint32_t *)member(message, field->quantifier_offset) == field->id;
    }
    return !has_default_value(field, value);
}

static json_t *json_from_field(const ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor *field)
{
    const void *value = member(message, field->offset);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        return json_from_value(field, value);
    }
    size_t n = *(const size_t *)member(message, field->quantifier_offset);
    if (is_map(message->descriptor, field)) {
        return json_from_map(*(const ProtobufCMessage *const *const *)value, n);
    }
    return json_from_list(field, *(const uint8_t *const *)value, n);
}

static bool is_timestamp(const ProtobufCMessageDescriptor *descriptor)
{
    return strcmp(descriptor->name, "google.protobuf.Timestamp") == 0;
}

/* With no, three, six or nine digits of the fraction, as protobuf does it. */
static json_t *json_from_timestamp(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *d = message->descriptor;
    const ProtobufCFieldDescriptor *s = protobuf_c_message_descriptor_get_field(d, 1);
    const ProtobufCFieldDescriptor *n = protobuf_c_message_descriptor_get_field(d, 2);
    int64_t seconds = *(const int64_t *)member(message, s->offset);
    int32_t nanos = *(const int32_t *)member(message, n->offset);
    if (seconds < TIMESTAMP_MIN || seconds > TIMESTAMP_MAX || nanos < 0 || nanos > 999999999) {
        return NULL;
    }
    time_t t = (time_t)seconds;
    struct tm tm;
    if (!gmtime_r(&t, &tm)) {
        return NULL;
    }
    char fraction[16] = "";
    if (nanos % 1000000 == 0 && nanos > 0) {
        snprintf(fraction, sizeof fraction, ".%03d", nanos / 1000000);
    } else if (nanos % 1000 == 0 && nanos > 0) {
        snprintf(fraction, sizeof fraction, ".%06d", nanos / 1000);
    } else if (nanos > 0) {
        snprintf(fraction, sizeof fraction, ".%09d", nanos);
    }
    return json_sprintf("%04d-%02d-%02dT%02d:%02d:%02d%sZ", tm.tm_year + 1900, tm.tm_mon + 1,
                        tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, fraction);
}

json_t *al_json_from_message(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    if (is_timestamp(descriptor)) {
        return json_from_timestamp(message);
    }
    json_t *object = json_object();
    for (unsigned i = 0; object && i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (!is_present(message, field)) {
            continue;
        }
        if (json_object_set_new(object, field->name, json_from_field(message, field)) < 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static int digits_of_real(double value)
{
    char text[40];
    int digits = REAL_DIGITS_MIN;
    while (digits < REAL_DIGITS_MAX) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
        digits++;
    }
    return digits;
}

/* The fewest digits with which every real number in it keeps its value. */
static int digits_needed(const json_t *value)
{
    int most = REAL_DIGITS_MIN;
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_real(value)) {
        return digits_of_real(json_real_value(value));
    }
    json_object_foreach((json_t *)value, key, item)
    {
        int digits = digits_needed(item);
        most = digits > most ? digits : most;
    }
    json_array_foreach(value, i, item)
    {
        int digits = digits_needed(item);
        most = digits > most ? digits : most;
    }
    return most;
}

char *al_json_text(const json_t *value, unsigned indent)
{
    size_t layout = indent > 0 ? JSON_INDENT(indent) : JSON_COMPACT;
    return json_dumps(value, layout | JSON_REAL_PRECISION((size_t)digits_needed(value)));
}
