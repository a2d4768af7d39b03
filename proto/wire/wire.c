#include "proto/wire/wire.h"

#include <errno.h>
#include <stdio.h>

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>

#define MAX_MESSAGE_BYTES ((size_t)INT32_MAX)

static int unpack_checked(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
                          size_t memory_bytes, struct al_arena **ret_arena,
                          ProtobufCMessage **ret_msg, char *ret_why, size_t why_size)
{
    al_auto_arena struct al_arena *arena = al_arena_create(memory_bytes);
    if (!arena) {
        (void)snprintf(ret_why, why_size, "message: out of memory");
        return -ENOMEM;
    }
    ProtobufCMessage *msg = protobuf_c_message_unpack(desc, al_arena_allocator(arena), len, data);
    if (!msg && !al_arena_is_exhausted(arena)) {
        (void)snprintf(ret_why, why_size, "message: malformed");
        return -EBADMSG;
    }
    if (!msg) {
        (void)snprintf(ret_why, why_size, "message: takes more than %zu bytes of memory",
                       memory_bytes);
        return -EMSGSIZE;
    }
    *ret_msg = msg;
    *ret_arena = arena;
    arena = NULL;
    return 0;
}

int al_wire_unpack_bytes(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
                         const struct al_wire_limits *limits, struct al_arena **ret_arena,
                         ProtobufCMessage **ret_msg, char *ret_why, size_t why_size)
{
    int r = al_wire_check(desc, data, len, limits, ret_why, why_size);
    if (r < 0) {
        return r;
    }
    return unpack_checked(desc, data, len, limits->memory_bytes, ret_arena, ret_msg, ret_why,
                          why_size);
}

/* A slice with all bytes of the buffer: its own one, or a copy when it has several. */
static grpc_slice gather(grpc_byte_buffer *buffer)
{
    grpc_byte_buffer_reader reader;
    grpc_slice *first = NULL;
    grpc_slice whole = grpc_empty_slice();
    if (!grpc_byte_buffer_reader_init(&reader, buffer)) {
        return whole;
    }
    if (grpc_byte_buffer_reader_peek(&reader, &first) &&
        GRPC_SLICE_LENGTH(*first) == grpc_byte_buffer_length(buffer))
    {
        whole = grpc_slice_ref(*first);
    } else {
        grpc_byte_buffer_reader_destroy(&reader);
        (void)grpc_byte_buffer_reader_init(&reader, buffer);
        whole = grpc_byte_buffer_reader_readall(&reader);
    }
    grpc_byte_buffer_reader_destroy(&reader);
    return whole;
}

int al_wire_unpack(const ProtobufCMessageDescriptor *desc, grpc_byte_buffer *buffer,
                   const struct al_wire_limits *limits, struct al_arena **ret_arena,
                   ProtobufCMessage **ret_msg, char *ret_why, size_t why_size)
{
    if (!buffer) {
        (void)snprintf(ret_why, why_size, "message: missing");
        return -EBADMSG;
    }
    if (buffer->type != GRPC_BB_RAW || buffer->data.raw.compression != GRPC_COMPRESS_NONE) {
        (void)snprintf(ret_why, why_size, "message: compression is not supported");
        return -EOPNOTSUPP;
    }
    if (grpc_byte_buffer_length(buffer) > limits->message_bytes) {
        (void)snprintf(ret_why, why_size, "message: more than %zu bytes", limits->message_bytes);
        return -EMSGSIZE;
    }
    grpc_slice whole = gather(buffer);
    int r = al_wire_unpack_bytes(desc, GRPC_SLICE_START_PTR(whole), GRPC_SLICE_LENGTH(whole),
                                 limits, ret_arena, ret_msg, ret_why, why_size);
    grpc_slice_unref(whole);
    return r;
}

grpc_byte_buffer *al_wire_pack(const ProtobufCMessage *msg)
{
    size_t len = protobuf_c_message_get_packed_size(msg);
    if (len > MAX_MESSAGE_BYTES) {
        return NULL;
    }
    grpc_slice slice = grpc_slice_malloc(len);
    (void)protobuf_c_message_pack(msg, GRPC_SLICE_START_PTR(slice));
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}
