/*
 * What gRPC core costs by itself: calls to floor_server, which only echoes bytes and sends chunks.
 * No messages, no checks: what Run and Stream are measured against.
 */
#pragma once

#include <stddef.h>

#include "backends/api/sink.h"
#include "tests/bench/contest.h"

#define AL_FLOOR_ECHO   "/airlock.bench.Floor/Echo"
#define AL_FLOOR_STREAM "/airlock.bench.Floor/Stream"

#define AL_FLOOR_ECHO_BYTES  16
#define AL_FLOOR_CHUNK_BYTES AL_SINK_CHUNK_BYTES /* what airlockd puts into a message at most */

struct al_floor;

/* One connection for all workers, to floor_server or, for al_floor_receive only, to any server. Its
 * window has `window_bytes`; 0: it grows with what arrives, as gRPC's does unless told otherwise.
 */
struct al_floor *al_floor_create(const char *address, int window_bytes);
void al_floor_destroy(struct al_floor *floor);

/* al_contestant.once: an echo of AL_FLOOR_ECHO_BYTES. */
void al_floor_echo(void *floor, unsigned worker);

/* Sends one request, half-closes, and receives messages, unread, to the end. How many bytes came.
 */
size_t al_floor_receive(struct al_floor *floor, const char *method, const void *request,
                        size_t len);

/* Receives `bytes` in messages of AL_FLOOR_CHUNK_BYTES. */
void al_floor_stream(struct al_floor *floor, size_t bytes);
