/*
 * Messages from and to the bytes that gRPC carries. Thread-safe: no state outside of the arguments.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <grpc/grpc.h>
#include <protobuf-c/protobuf-c.h>

#include "proto/wire/arena.h"
#include "proto/wire/check.h"

/*
 * Checks the bytes (see check.h) and unpacks them. On success `ret_msg` is a message of the type
 * `desc` that belongs to `ret_arena`, which the caller owns: al_arena_destroy() frees both, and
 * protobuf-c's free_unpacked must not be called. The message shares no memory with the bytes. It
 * has no NULL string at any depth; an empty bytes field may have NULL data.
 *
 * -EBADMSG, -EMSGSIZE: as al_wire_check(), the second also when the message unpacks to more than
 * limits->memory_bytes. -ENOMEM: not even an empty arena could be had. Each with a sentence in
 * `ret_why`; `ret_arena` and `ret_msg` are untouched then.
 */
int al_wire_unpack_bytes(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
                         const struct al_wire_limits *limits, struct al_arena **ret_arena,
                         ProtobufCMessage **ret_msg, char *ret_why, size_t why_size);

/*
 * The same from gRPC's buffer, which is borrowed. -EBADMSG also for NULL, which gRPC gives when
 * there was no message; -EOPNOTSUPP for a compressed buffer.
 */
int al_wire_unpack(const ProtobufCMessageDescriptor *desc, grpc_byte_buffer *buffer,
                   const struct al_wire_limits *limits, struct al_arena **ret_arena,
                   ProtobufCMessage **ret_msg, char *ret_why, size_t why_size);

/*
 * Packs the message into one slice. The caller destroys the buffer; it shares no memory with the
 * message. Strings must be valid UTF-8 (see utf8.h). NULL when the message is larger than 2 GiB,
 * protobuf's own limit; out of memory aborts the process, as everywhere in gRPC.
 */
grpc_byte_buffer *al_wire_pack(const ProtobufCMessage *msg);
