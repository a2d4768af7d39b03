/*
 * Calls to an Airlock server. A connection serves any number of threads; each unary call blocks its
 * own thread. A stream has one reader and any number of senders, on the same thread or on others.
 *
 * What a server answers lives in an arena that the caller owns: al_arena_destroy() frees it.
 * Requests are borrowed for the time of the call. The process must not fork while a connection
 * exists.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <grpc/status.h>

#include "proto/airlock/v1/admin.pb-c.h"
#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/arena.h"

#define AL_CLIENT_DEFAULT_ADDRESS "127.0.0.1:50051"
#define AL_CLIENT_RECEIVE_MAX     ((size_t)64 << 20) /* bytes of one message */
#define AL_CLIENT_STATUS_TEXT_MAX 1024

/* Gives up a connection attempt, or a name look-up, that is not answered. */
#define AL_CLIENT_CONNECT_MS 3000

/* How a call ended. */
struct al_call_status {
    grpc_status_code code;
    /* With UNAVAILABLE: no connection to the server could be made. */
    bool unreachable;
    /* The server's grpc-retry-pushback-ms; -1: it sent none. */
    int64_t retry_pushback_ms;
    /* The server's message, or gRPC's; cut to fit; not checked for control bytes. */
    char text[AL_CLIENT_STATUS_TEXT_MAX];
};

/* "NOT_FOUND" and so on; "UNKNOWN" for a number that gRPC does not define. */
const char *al_call_status_name(grpc_status_code code);

struct al_client_options {
    const char *address; /* HOST:PORT, unix:PATH; NULL: the default */
    const char *tenant;  /* sent as the metadata airlock-tenant; NULL or "": none */
    bool resumes;        /* for streams that attach continues: little is under way to a reader that
                          * stalls, so that what a cut loses is among what the server keeps */
};

struct al_call_options {
    int64_t deadline_ms; /* from now; 0: none */
};

/* Makes a connection; it is established by the first call, without TLS and never through a proxy.
 * The strings are copied. NULL when memory is out, or when a tenant has bytes that no metadata may
 * have. */
struct al_client *al_client_create(const struct al_client_options *options);

/* No call may be in progress, and streams are destroyed first. NULL is ignored. */
void al_client_destroy(struct al_client *client);

/* Cancels every call and stream in progress, and each later one at its start. From any thread. */
void al_client_cancel(struct al_client *client);

/* Each returns 0 with an answer, or -EREMOTEIO; `ret_status` says how the call ended in both cases
 * and must not be NULL. `options` may be NULL. An answer that is not well-formed is INTERNAL. */
int al_client_run(struct al_client *client, const Airlock__V1__RunRequest *request,
                  const struct al_call_options *options, struct al_arena **ret_arena,
                  Airlock__V1__RunResponse **ret, struct al_call_status *ret_status);
int al_client_kill(struct al_client *client, const Airlock__V1__KillRequest *request,
                   const struct al_call_options *options, struct al_arena **ret_arena,
                   Airlock__V1__KillResponse **ret, struct al_call_status *ret_status);
int al_client_list_backends(struct al_client *client,
                            const Airlock__V1__ListBackendsRequest *request,
                            const struct al_call_options *options, struct al_arena **ret_arena,
                            Airlock__V1__ListBackendsResponse **ret,
                            struct al_call_status *ret_status);
int al_client_get_job(struct al_client *client, const Airlock__V1__GetJobRequest *request,
                      const struct al_call_options *options, struct al_arena **ret_arena,
                      Airlock__V1__GetJobResponse **ret, struct al_call_status *ret_status);
int al_client_list_jobs(struct al_client *client, const Airlock__V1__ListJobsRequest *request,
                        const struct al_call_options *options, struct al_arena **ret_arena,
                        Airlock__V1__ListJobsResponse **ret, struct al_call_status *ret_status);
int al_client_get_quota(struct al_client *client, const Airlock__V1__GetQuotaRequest *request,
                        const struct al_call_options *options, struct al_arena **ret_arena,
                        Airlock__V1__GetQuotaResponse **ret, struct al_call_status *ret_status);
int al_client_get_cache_stats(struct al_client *client,
                              const Airlock__V1__GetCacheStatsRequest *request,
                              const struct al_call_options *options, struct al_arena **ret_arena,
                              Airlock__V1__GetCacheStatsResponse **ret,
                              struct al_call_status *ret_status);
int al_client_clear_cache(struct al_client *client, const Airlock__V1__ClearCacheRequest *request,
                          const struct al_call_options *options, struct al_arena **ret_arena,
                          Airlock__V1__ClearCacheResponse **ret, struct al_call_status *ret_status);

/* Opens a stream; nothing is sent before the first message. NULL when memory is out. */
struct al_stream *al_stream_create(struct al_client *client, const struct al_call_options *options);

/* Cancels the call if it has not ended and waits for that. No other thread may be in a function of
 * the stream. NULL is ignored. */
void al_stream_destroy(struct al_stream *stream);

/* Hands a message to gRPC, which sends it while the caller goes on. One message is under way at a
 * time: waits up to `timeout_ms` (-1: for ever) until the one before has left.
 *
 * 0; -EAGAIN: it had not left in time, and this message was not taken; -EPIPE: the call has ended
 * (al_stream_next() tells why) or half-close was said; -EMSGSIZE: above 2 GiB. */
int al_stream_send(struct al_stream *stream, const Airlock__V1__StreamRequest *message,
                   int64_t timeout_ms);
int al_stream_send_start(struct al_stream *stream, const Airlock__V1__StreamStart *start,
                         int64_t timeout_ms);
int al_stream_send_attach(struct al_stream *stream, const Airlock__V1__Attach *attach,
                          int64_t timeout_ms);
int al_stream_send_stdin(struct al_stream *stream, const void *data, size_t len,
                         int64_t timeout_ms);
int al_stream_send_stdin_eof(struct al_stream *stream, int64_t timeout_ms);
int al_stream_send_signal(struct al_stream *stream, int signo, int64_t timeout_ms);
int al_stream_send_resize(struct al_stream *stream, uint32_t rows, uint32_t cols,
                          int64_t timeout_ms);

/* Says that no message follows: the end of standard input. Errors as al_stream_send(). */
int al_stream_half_close(struct al_stream *stream, int64_t timeout_ms);

enum al_stream_event {
    AL_STREAM_MESSAGE,
    AL_STREAM_TIMEOUT,
    AL_STREAM_END,
};

/* Waits up to `timeout_ms` (-1: for ever) for the next message. AL_STREAM_MESSAGE: `ret` belongs to
 * `ret_arena`, which the caller owns. AL_STREAM_END: the call has ended, al_stream_status() tells
 * how; so does every later call. */
enum al_stream_event al_stream_next(struct al_stream *stream, int64_t timeout_ms,
                                    struct al_arena **ret_arena, Airlock__V1__StreamResponse **ret);

/* Valid once al_stream_next() returned AL_STREAM_END, and owned by the stream. */
const struct al_call_status *al_stream_status(const struct al_stream *stream);

/* Ends the call; a waiting al_stream_next() or al_stream_send() returns soon. From any thread. */
void al_stream_cancel(struct al_stream *stream);
