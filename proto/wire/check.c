/*
 * Theory of operation
 *
 * One frame on the stack for each message inside another; the depth limit bounds the recursion. A
 * frame reads item by item: a tag, then the bytes that belong to it, and descends when they are a
 * message. Nothing is stored on the way. Only a refusal needs to know the index of a repeated
 * field, and it counts again from the start of the message.
 *
 * Whatever protobuf-c refuses must be refused here as well; the fuzz target holds us to it.
 */
#include "proto/wire/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/wire/utf8.h"

#define MAX_VARINT_BYTES 10
#define MAX_LENGTH_BYTES 5 /* of a tag or a length: 32 bits */
#define MIB              ((size_t)1024 * 1024)

const struct al_wire_limits al_wire_request_limits = {
    .message_bytes = 24 * MIB,
    .memory_bytes = 40 * MIB,
    .depth = 16,
    .items = 65536,
    .unknown_bytes = 65536,
};

const struct al_wire_limits al_wire_response_limits = {
    .message_bytes = 64 * MIB,
    .memory_bytes = 96 * MIB,
    .depth = 16,
    .items = 262144,
    .unknown_bytes = 1 * MIB,
};

struct check {
    const struct al_wire_limits *limits;
    size_t items;
    size_t unknown_bytes;
    char *why;
    size_t why_size;
};

struct span {
    const uint8_t *at;
    const uint8_t *end;
};

/* A message being read. */
struct frame {
    const struct frame *parent;
    const ProtobufCMessageDescriptor *desc;
    const ProtobufCFieldDescriptor *field; /* of the current item; NULL: unknown */
    struct span rest;
    const uint8_t *begin;
    const uint8_t *item; /* start of the current item */
    size_t depth;
    uint64_t seen; /* bit n: field n was given; of the first 64 */
};

static size_t span_len(struct span span)
{
    return (size_t)(span.end - span.at);
}

static bool read_varint(struct span *span, size_t max_bytes, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < max_bytes && i < span_len(*span); i++) {
        uint8_t byte = span->at[i];
        if (i == MAX_VARINT_BYTES - 1 && byte > 1) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            span->at += i + 1;
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool read_tag(struct span *span, uint32_t *ret_id, unsigned *ret_wire_type)
{
    uint64_t tag = 0;
    if (!read_varint(span, MAX_LENGTH_BYTES, &tag) || tag > UINT32_MAX || tag >> 3 == 0) {
        return false;
    }
    *ret_id = (uint32_t)(tag >> 3);
    *ret_wire_type = tag & 7;
    return true;
}

/* Reads what follows a tag. `ret_payload` is the content, without a length in front. */
static bool read_payload(struct span *span, unsigned wire_type, struct span *ret_payload)
{
    uint64_t value = 0;
    size_t len = 0;
    ret_payload->at = span->at;
    switch (wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        if (!read_varint(span, MAX_VARINT_BYTES, &value)) {
            return false;
        }
        ret_payload->end = span->at;
        return true;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        len = 8;
        break;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        len = 4;
        break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!read_varint(span, MAX_LENGTH_BYTES, &value) || value > span_len(*span)) {
            return false;
        }
        ret_payload->at = span->at;
        len = (size_t)value;
        break;
    default:
        return false;
    }
    if (len > span_len(*span)) {
        return false;
    }
    span->at += len;
    ret_payload->end = span->at;
    return true;
}

/* How many items of the current field come before the current one; all of them are well-formed. */
static size_t count_before(const struct frame *frame)
{
    struct span rest = {.at = frame->begin, .end = frame->item};
    struct span payload;
    size_t count = 0;
    uint32_t id = 0;
    unsigned wire_type = 0;
    while (rest.at < rest.end && read_tag(&rest, &id, &wire_type) &&
           read_payload(&rest, wire_type, &payload))
    {
        count += id == frame->field->id;
    }
    return count;
}

static bool is_packable(ProtobufCType type)
{
    return type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_BYTES &&
           type != PROTOBUF_C_TYPE_MESSAGE;
}

__attribute__((format(printf, 2, 3))) static void append(struct check *check, const char *format,
                                                         ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(check->why, check->why_size, format, args);
    va_end(args);
    size_t taken = len < 0 ? 0 : (size_t)len;
    if (taken >= check->why_size) {
        taken = check->why_size > 0 ? check->why_size - 1 : 0;
    }
    check->why = check->why_size > 0 ? check->why + taken : NULL;
    check->why_size -= taken;
}

static void append_path(struct check *check, const struct frame *frame)
{
    if (frame->parent) {
        append_path(check, frame->parent);
    }
    if (!frame->field) {
        return;
    }
    append(check, "%s%s", frame->parent ? "." : "", frame->field->name);
    if (frame->field->label == PROTOBUF_C_LABEL_REPEATED && !is_packable(frame->field->type)) {
        append(check, "[%zu]", count_before(frame));
    }
}

static int refuse(struct check *check, const struct frame *frame, int error, const char *reason)
{
    if (!frame->parent && !frame->field) {
        append(check, "message");
    }
    append_path(check, frame);
    append(check, ": %s", reason);
    return error;
}

static int refuse_excess(struct check *check, const struct frame *frame, size_t limit,
                         const char *unit)
{
    char reason[64];
    (void)snprintf(reason, sizeof(reason), "more than %zu %s", limit, unit);
    return refuse(check, frame, -EMSGSIZE, reason);
}

static unsigned expected_wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

static int count_item(struct check *check, const struct frame *frame)
{
    if (check->items >= check->limits->items) {
        return refuse_excess(check, frame, check->limits->items, "fields and elements");
    }
    check->items++;
    return 0;
}

static int check_string(struct check *check, const struct frame *frame, struct span string)
{
    size_t len = span_len(string);
    if (memchr(string.at, '\0', len)) {
        return refuse(check, frame, -EBADMSG, "contains a NUL character");
    }
    if (al_utf8_valid_prefix(string.at, len) != len) {
        return refuse(check, frame, -EBADMSG, "not valid UTF-8");
    }
    return 0;
}

/* protobuf-c takes a packed bool for one byte. */
static int check_packed(struct check *check, const struct frame *frame, struct span rest)
{
    ProtobufCType type = frame->field->type;
    unsigned wire_type = expected_wire_type(type);
    struct span element;
    while (rest.at < rest.end) {
        int r = count_item(check, frame);
        if (r < 0) {
            return r;
        }
        if (!read_payload(&rest, wire_type, &element) ||
            (type == PROTOBUF_C_TYPE_BOOL && *element.at > 1)) {
            return refuse(check, frame, -EBADMSG, "malformed element");
        }
    }
    return 0;
}

static int check_message(struct check *check, const struct frame *parent,
                         const ProtobufCMessageDescriptor *desc, struct span rest);

static int check_submessage(struct check *check, struct frame *frame, struct span payload)
{
    const ProtobufCFieldDescriptor *field = frame->field;
    size_t index = (size_t)(field - frame->desc->fields);
    if (field->label != PROTOBUF_C_LABEL_REPEATED && index < 64) {
        uint64_t bit = UINT64_C(1) << index;
        if (frame->seen & bit) {
            return refuse(check, frame, -EBADMSG, "given twice");
        }
        frame->seen |= bit;
    }
    return check_message(check, frame, field->descriptor, payload);
}

static int check_known(struct check *check, struct frame *frame, unsigned wire_type,
                       struct span payload)
{
    const ProtobufCFieldDescriptor *field = frame->field;
    if (wire_type != expected_wire_type(field->type)) {
        bool packed = wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED &&
                      field->label == PROTOBUF_C_LABEL_REPEATED && is_packable(field->type);
        return packed ? check_packed(check, frame, payload)
                      : refuse(check, frame, -EBADMSG, "wrong wire type");
    }
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return check_string(check, frame, payload);
    case PROTOBUF_C_TYPE_MESSAGE:
        return check_submessage(check, frame, payload);
    default:
        return 0;
    }
}

static int check_unknown(struct check *check, const struct frame *frame)
{
    check->unknown_bytes += (size_t)(frame->rest.at - frame->item);
    if (check->unknown_bytes > check->limits->unknown_bytes) {
        return refuse_excess(check, frame, check->limits->unknown_bytes, "bytes of unknown fields");
    }
    return 0;
}

static int check_item(struct check *check, struct frame *frame)
{
    uint32_t id = 0;
    unsigned wire_type = 0;
    struct span payload;
    frame->field = NULL;
    frame->item = frame->rest.at;
    int r = count_item(check, frame);
    if (r < 0) {
        return r;
    }
    if (!read_tag(&frame->rest, &id, &wire_type)) {
        return refuse(check, frame, -EBADMSG, "malformed tag");
    }
    frame->field = protobuf_c_message_descriptor_get_field(frame->desc, id);
    if (wire_type == 3 || wire_type == 4) {
        return refuse(check, frame, -EBADMSG, "groups are not supported");
    }
    if (!read_payload(&frame->rest, wire_type, &payload)) {
        return refuse(check, frame, -EBADMSG, "truncated or malformed");
    }
    return frame->field ? check_known(check, frame, wire_type, payload)
                        : check_unknown(check, frame);
}

static int check_message(struct check *check, const struct frame *parent,
                         const ProtobufCMessageDescriptor *desc, struct span rest)
{
    struct frame frame = {
        .parent = parent,
        .desc = desc,
        .rest = rest,
        .begin = rest.at,
        .item = rest.at,
        .depth = parent ? parent->depth + 1 : 1,
    };
    if (frame.depth > check->limits->depth) {
        return refuse_excess(check, &frame, check->limits->depth, "messages inside each other");
    }
    while (frame.rest.at < frame.rest.end) {
        int r = check_item(check, &frame);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int al_wire_check(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
                  const struct al_wire_limits *limits, char *ret_why, size_t why_size)
{
    struct check check = {.limits = limits, .why = ret_why, .why_size = why_size};
    struct frame outside = {.desc = desc};
    if (len > limits->message_bytes) {
        return refuse_excess(&check, &outside, limits->message_bytes, "bytes");
    }
    if (len == 0) {
        return 0;
    }
    return check_message(&check, NULL, desc, (struct span){.at = data, .end = data + len});
}
