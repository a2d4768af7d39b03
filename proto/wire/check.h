/*
 * Walks an encoded message by its descriptor, before anything is allocated for it.
 *
 * protobuf-c alone recurses without limit, takes any bytes for a string, cuts strings at an
 * embedded NUL and allocates whatever it is told. Bytes that pass this check are safe to unpack in
 * an arena. Thread-safe; allocates nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

/* The most that a message may be and take. */
struct al_wire_limits {
    size_t message_bytes; /* encoded */
    size_t memory_bytes;  /* unpacked, the unpacker's own working memory included */
    size_t depth;         /* messages inside each other, the outermost counted */
    size_t items;         /* fields, elements and map entries, at any depth */
    size_t unknown_bytes; /* in fields that the schema does not have */
};

/*
 * For the requests and responses of airlock.v1 with the default maxima: a request has at most
 * 16 MiB of files, 4 MiB of standard input, 1 MiB each of code and inputs, and the rest is small;
 * a result has at most 16 MiB each of standard output, standard error and artifacts. The schema
 * itself is five messages deep. An item takes some 150 bytes when unpacked, besides its content.
 */
extern const struct al_wire_limits al_wire_request_limits;
extern const struct al_wire_limits al_wire_response_limits;

/*
 * Returns 0 when the bytes are a well-formed message within the limits.
 *
 * -EBADMSG: truncated or malformed; a known field with another wire type; a group; a string that is
 * not UTF-8 or holds a NUL; a message that is not repeated given twice (legal, but protobuf-c
 * merges wrongly and nobody means it). -EMSGSIZE: beyond a limit.
 *
 * Then `ret_why` gets a sentence for people that begins with the path of the field, as in
 * "files[3].path: not valid UTF-8"; cut to `why_size`. Both may be zero. Untouched on success.
 *
 * Enum values and sizes of numbers are not checked: that is the schema's reader's part. An absent
 * map key or value is legal and unpacks as "".
 */
int al_wire_check(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
                  const struct al_wire_limits *limits, char *ret_why, size_t why_size);
