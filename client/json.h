/*
 * protobuf-c messages as JSON, by their descriptors: protobuf's JSON mapping with the names that
 * the .proto files use. 64-bit integers are strings, bytes are base64, enums are names, a
 * google.protobuf.Timestamp is RFC 3339, maps are objects, NaN and the infinities are strings.
 * Fields that have their default value are left out, members of a oneof never are. Pure; safe from
 * any thread.
 */
#pragma once

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

/* The caller owns the reference. NULL when memory is out, a string is not valid UTF-8 or a
 * timestamp is out of RFC 3339's range. */
json_t *al_json_from_message(const ProtobufCMessage *message);

/* The text of a value, on one line or indented by `indent` spaces, numbers as short as they can be
 * without another value; no newline at the end. The caller frees it. NULL when memory is out. */
char *al_json_text(const json_t *value, unsigned indent);
