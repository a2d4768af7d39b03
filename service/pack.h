/*
 * Packs a message that carries a job's output. Long output is not copied: gRPC gets a reference to
 * the event that holds it. Thread-safe: no state outside of the arguments.
 */
#pragma once

#include <grpc/grpc.h>
#include <protobuf-c/protobuf-c.h>

#include "backends/base/buf.h"
#include "service/event.h"

#define AL_PACK_EVENTS_MAX 2

/* A packed message; the caller destroys it. `events` are those to which bytes fields of `message`
 * itself (not of one inside it) point. A `wrapper` other than 0 is the number of the one field, in
 * an outer message, that the message is put into. NULL: larger than 2 GiB. */
grpc_byte_buffer *al_pack(const ProtobufCMessage *message, unsigned wrapper,
                          struct al_event *const *events, size_t n_events);

/* A copy of bytes that are packed already. NULL when they are too many. */
grpc_byte_buffer *al_pack_bytes(const uint8_t *data, size_t len);

/* Appends a length-delimited field (number 1 to 15) to a message that is packed piece by piece.
 * -ENOBUFS or -ENOMEM. */
int al_pack_field(struct al_buf *to, unsigned field, const void *data, size_t len);
