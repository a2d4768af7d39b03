/*
 * Any bytes as any message of the service. What al_wire_check() lets through must unpack (or meet
 * the memory budget), must hold only valid strings, must give the same bytes when packed twice, and
 * must not care how gRPC cut it into slices.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/utf8.h"
#include "proto/wire/wire.h"
#include "tests/fuzz/fuzz.h"

static const ProtobufCMessageDescriptor *const types[] = {
    &airlock__v1__run_request__descriptor,
    &airlock__v1__stream_request__descriptor,
    &airlock__v1__stream_response__descriptor,
    &airlock__v1__list_jobs_response__descriptor,
    &airlock__v1__list_backends_response__descriptor,
};

/* Small, so that the fuzzer reaches each of them. */
static const struct al_wire_limits limits = {
    .message_bytes = 65536,
    .memory_bytes = 262144,
    .depth = 4,
    .items = 1024,
    .unknown_bytes = 256,
};

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void require_message(const ProtobufCMessage *msg, size_t depth);

static void require_value(ProtobufCType type, const void *value, size_t depth)
{
    if (type == PROTOBUF_C_TYPE_STRING) {
        const char *string = *(char *const *)value;
        if (!string) {
            abort();
        }
        size_t len = strlen(string);
        require(al_utf8_valid_prefix((const uint8_t *)string, len) == len);
    } else if (type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *bytes = value;
        require(bytes->len == 0 || bytes->data != NULL);
    } else if (type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *child = *(ProtobufCMessage *const *)value;
        if (child) {
            require_message(child, depth + 1);
        }
    }
}

static size_t value_size(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData) : sizeof(void *);
}

static void require_field(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                          size_t depth)
{
    const uint8_t *base = (const uint8_t *)msg;
    const uint8_t *member = base + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = *(const size_t *)(base + field->quantifier_offset);
        const uint8_t *elements = *(uint8_t *const *)member;
        for (size_t i = 0; i < count; i++) {
            require_value(field->type, elements + i * value_size(field->type), depth);
        }
        return;
    }
    bool is_oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
    if (!is_oneof || *(const uint32_t *)(base + field->quantifier_offset) == field->id) {
        require_value(field->type, member, depth);
    }
}

static void require_message(const ProtobufCMessage *msg, size_t depth)
{
    require(depth <= limits.depth);
    for (unsigned i = 0; i < msg->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &msg->descriptor->fields[i];
        bool is_plain = field->type != PROTOBUF_C_TYPE_STRING &&
                        field->type != PROTOBUF_C_TYPE_BYTES &&
                        field->type != PROTOBUF_C_TYPE_MESSAGE;
        if (!is_plain) {
            require_field(msg, field, depth);
        }
    }
}

static grpc_slice pack(const ProtobufCMessage *msg)
{
    grpc_byte_buffer *buffer = al_wire_pack(msg);
    require(buffer != NULL);
    grpc_slice slice = grpc_slice_ref(buffer->data.raw.slice_buffer.slices[0]);
    grpc_byte_buffer_destroy(buffer);
    return slice;
}

/* Unpacks from two slices, cut in the middle. */
static int unpack_cut(const ProtobufCMessageDescriptor *type, grpc_slice whole,
                      struct al_arena **ret_arena, ProtobufCMessage **ret_msg)
{
    size_t len = GRPC_SLICE_LENGTH(whole);
    grpc_slice parts[] = {
        grpc_slice_sub(whole, 0, len / 2),
        grpc_slice_sub(whole, len / 2, len),
    };
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(parts, 2);
    int r = al_wire_unpack(type, buffer, &limits, ret_arena, ret_msg, NULL, 0);
    grpc_byte_buffer_destroy(buffer);
    grpc_slice_unref(parts[0]);
    grpc_slice_unref(parts[1]);
    return r;
}

/* Numbers may take more bytes when packed than they came in, so a limit may be met on the way. */
static void require_round_trip(const ProtobufCMessage *msg)
{
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *again = NULL;
    grpc_slice first = pack(msg);
    int r = unpack_cut(msg->descriptor, first, &arena, &again);
    require(r == 0 || r == -EMSGSIZE);
    if (r == 0) {
        grpc_slice second = pack(again);
        require(grpc_slice_eq(first, second));
        grpc_slice_unref(second);
    }
    grpc_slice_unref(first);
}

static void try_type(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len)
{
    al_auto_arena struct al_arena *arena = NULL;
    ProtobufCMessage *msg = NULL;
    char why[160];
    why[0] = '\0';
    int checked = al_wire_check(type, data, len, &limits, NULL, 0);
    int r = al_wire_unpack_bytes(type, data, len, &limits, &arena, &msg, why, sizeof(why));
    require(r == checked || (checked == 0 && r == -EMSGSIZE));
    require((r == 0) == (why[0] == '\0'));
    require((r == 0) == (arena != NULL));
    if (r < 0) {
        require(memchr(why, '\0', sizeof(why)) != NULL);
        return;
    }
    require(al_arena_used_bytes(arena) <= limits.memory_bytes);
    require_message(msg, 1);
    require_round_trip(msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        try_type(types[i], data, len);
    }
    return 0;
}
