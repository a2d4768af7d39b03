#include "service/server.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>

#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "service/call.h"
#include "service/listen_error.h"
#include "service/rpc.h"
#include "service/server_internal.h"
#include "service/service.h"
#include "service/session.h"
#include "service/transport.h"

static const struct al_rpc *const rpcs[] = {
    &al_rpc_run,         &al_rpc_stream,        &al_rpc_kill,      &al_rpc_get_job,
    &al_rpc_list_jobs,   &al_rpc_list_backends, &al_rpc_get_quota, &al_rpc_cache_stats,
    &al_rpc_clear_cache, &al_rpc_unknown,
};
#define N_RPCS (sizeof rpcs / sizeof rpcs[0])

/* When something deferred has its turn, though gRPC always has more to say. */
#define DEFERRED_AFTER 16 /* completions */

/* gRPC takes up one ready socket a look. A stream with a small window needs several of them, one a
 * window update, to say as much as another does in one turn. */
#define LOOKS_MAX 4

/* How long clients that do not read their answers may delay the end. */
#define LINGER_MS 200

struct al_server {
    struct al_service service;
    grpc_server *grpc;
    grpc_completion_queue *cq;
    void *methods[N_RPCS]; /* as gRPC calls them */
    pthread_t thread;
    bool started;
    struct al_op shutdown;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    unsigned calls; /* armed or in flight */
    bool is_shut_down;
};

/* --- calls come and go --- */

static void arrive_done(struct al_op *op, bool ok);

static struct al_call *create_call(struct al_server *server, const struct al_rpc *rpc)
{
    struct al_call *call = calloc(1, rpc->call_size);
    if (!call) {
        return NULL;
    }
    call->rpc = rpc;
    call->server = server;
    call->service = &server->service;
    atomic_init(&call->refs, 1);
    grpc_metadata_array_init(&call->metadata);
    grpc_call_details_init(&call->details);
    pthread_mutex_lock(&server->lock);
    server->calls++;
    pthread_mutex_unlock(&server->lock);
    return call;
}

/* What gRPC filled in when the call arrived. */
static void release_arrival(struct al_call *call)
{
    grpc_byte_buffer_destroy(call->payload);
    grpc_byte_buffer_destroy(call->sending);
    grpc_metadata_array_destroy(&call->metadata);
    grpc_call_details_destroy(&call->details);
    if (call->grpc) {
        grpc_call_unref(call->grpc);
    }
}

void al_server_free_call(struct al_call *call)
{
    struct al_server *server = call->server;
    if (call->rpc->finish) {
        call->rpc->finish(call);
    }
    if (call->counted) {
        atomic_fetch_sub(&server->service.calls, 1);
    }
    release_arrival(call);
    free(call);
    pthread_mutex_lock(&server->lock);
    if (--server->calls == 0) {
        pthread_cond_broadcast(&server->changed);
    }
    pthread_mutex_unlock(&server->lock);
}

static void arm(struct al_call *call)
{
    struct al_server *server = call->server;
    const struct al_rpc *rpc = call->rpc;
    grpc_call_error error;
    al_op_start(&call->arrive, arrive_done);
    if (rpc->path) {
        size_t i = 0;
        while (rpcs[i] != rpc) {
            i++;
        }
        error = grpc_server_request_registered_call(
            server->grpc, server->methods[i], &call->grpc, &call->deadline, &call->metadata,
            &call->payload, server->cq, server->cq, &call->arrive);
    } else {
        error = grpc_server_request_call(server->grpc, &call->grpc, &call->details, &call->metadata,
                                         server->cq, server->cq, &call->arrive);
    }
    if (error != GRPC_CALL_OK) {
        al_log_error("gRPC refused to wait for calls: %s", grpc_call_error_to_string(error));
        al_call_unref(call);
    }
}

static void close_done(struct al_op *op, bool ok)
{
    (void)ok;
    struct al_call *call = (struct al_call *)((char *)op - offsetof(struct al_call, close));
    if (call->cancelled && call->rpc->gone) {
        call->rpc->gone(call);
    }
    al_call_unref(call);
}

/* Without memory for another one to wait for calls, this one waits again; its caller is sent away.
 */
static bool arm_next(struct al_call *call)
{
    struct al_call *next = create_call(call->server, call->rpc);
    if (next) {
        arm(next);
        return true;
    }
    grpc_call_cancel_with_status(call->grpc, GRPC_STATUS_RESOURCE_EXHAUSTED, "out of memory", NULL);
    release_arrival(call);
    call->grpc = NULL;
    call->payload = NULL;
    grpc_metadata_array_init(&call->metadata);
    grpc_call_details_init(&call->details);
    arm(call);
    return false;
}

static bool refuse(struct al_call *call)
{
    struct al_err err = {0};
    if (atomic_load(&call->service->draining) && !call->rpc->in_drain) {
        (void)al_err_set(&err, AL_ERR_UNAVAILABLE, "the server is shutting down");
    } else if (atomic_load(&call->service->calls) > call->service->calls_max) {
        (void)al_err_set(&err, AL_ERR_RESOURCE_EXHAUSTED, "too many calls are in flight (%u)",
                         call->service->calls_max);
    } else {
        return false;
    }
    al_call_fail(call, &err);
    return true;
}

static void arrive_done(struct al_op *op, bool ok)
{
    struct al_call *call = (struct al_call *)((char *)op - offsetof(struct al_call, arrive));
    if (!ok) { /* the server shuts down */
        al_call_unref(call);
        return;
    }
    if (!arm_next(call)) {
        return;
    }
    call->counted = true;
    atomic_fetch_add(&call->service->calls, 1);
    const grpc_op close = {
        .op = GRPC_OP_RECV_CLOSE_ON_SERVER,
        .data.recv_close_on_server.cancelled = &call->cancelled,
    };
    al_call_start(call, &close, 1, &call->close, close_done);
    if (!refuse(call)) {
        call->rpc->arrived(call);
    }
    al_call_unref(call);
}

static gpr_timespec monotonic_at(int64_t ms)
{
    gpr_timespec left = gpr_time_from_millis(ms - al_now_ms(), GPR_TIMESPAN);
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), left);
}

static gpr_timespec next_wake(const struct al_server *server, int64_t expires_ms)
{
    if (server->service.deferred) {
        return gpr_inf_past(GPR_CLOCK_MONOTONIC);
    }
    return expires_ms == INT64_MAX ? gpr_inf_future(GPR_CLOCK_MONOTONIC) : monotonic_at(expires_ms);
}

/* What has come since something deferred had its turn. */
struct since {
    unsigned looks; /* that found the queue empty */
    unsigned completions;
};

/* A queue that is never empty is never polled for: what is deferred waits until it was, as many
 * times as there are calls that may want something, but not for ever. */
static void run_deferred(struct al_service *service, struct since *since)
{
    unsigned calls = atomic_load(&service->calls);
    unsigned looks = calls < LOOKS_MAX ? calls : LOOKS_MAX;
    if (since->looks >= looks || since->completions >= DEFERRED_AFTER) {
        al_service_run_deferred(service);
        *since = (struct since){0};
    }
}

/* Told of what gRPC has done; in between, of lingering jobs whose time is over. */
static void *serve(void *arg)
{
    struct al_server *server = arg;
    struct since since = {0};
    for (;;) {
        gpr_timespec until = next_wake(server, al_session_expire(&server->service));
        grpc_event event = grpc_completion_queue_next(server->cq, until, NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) {
            return NULL;
        }
        if (event.type == GRPC_OP_COMPLETE) {
            struct al_op *op = event.tag;
            al_op_finish(op);
            op->done(op, event.success != 0);
            since.completions++;
        } else {
            since.looks++;
        }
        run_deferred(&server->service, &since);
    }
}

/* --- the server's own life --- */

int al_server_create(const struct al_config *config, const struct al_registry *registry,
                     struct al_server **ret, struct al_err *err)
{
    struct al_server *server = calloc(1, sizeof *server);
    if (!server) {
        return al_err_errno(err, ENOMEM, "cannot make the server");
    }
    int r = al_service_init(&server->service, config, registry, err);
    if (r < 0) {
        free(server);
        return r;
    }
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    server->cq = grpc_completion_queue_create_for_next(NULL);
    server->grpc = al_transport_create(&server->service);
    grpc_server_register_completion_queue(server->grpc, server->cq, NULL);
    for (size_t i = 0; i < N_RPCS; i++) {
        if (rpcs[i]->path) {
            server->methods[i] = grpc_server_register_method(
                server->grpc, rpcs[i]->path, NULL, GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
        }
    }
    *ret = server;
    return 0;
}

/* gRPC leaves a socket to its owner, whom no client runs as: its folder says who may connect. */
static int open_unix_socket(const char *address, struct al_err *err)
{
    static const char prefix[] = "unix:";
    size_t n = sizeof prefix - 1;
    if (strncmp(address, prefix, n) == 0 && chmod(address + n, 0666) < 0) {
        return al_err_errno(err, errno, "cannot set the mode of %s", address);
    }
    return 0;
}

int al_server_listen(struct al_server *server, const char *address, int *ret_port,
                     struct al_err *err)
{
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    int port = grpc_server_add_http2_port(server->grpc, address, credentials);
    grpc_server_credentials_release(credentials);
    if (port == 0) {
        int errnum = al_listen_errno(address);
        return errnum ? al_err_errno(err, errnum, "cannot listen on %s", address)
                      : al_err_set(err, AL_ERR_UNAVAILABLE, "cannot listen on %s", address);
    }
    int r = open_unix_socket(address, err);
    if (r == 0) {
        *ret_port = port;
    }
    return r;
}

int al_server_start(struct al_server *server, struct al_err *err)
{
    int r = pthread_create(&server->thread, NULL, serve, server);
    if (r != 0) {
        return al_err_errno(err, r, "cannot start a thread");
    }
    server->started = true;
    grpc_server_start(server->grpc);
    for (size_t i = 0; i < N_RPCS; i++) {
        for (unsigned n = 0; n < rpcs[i]->armed; n++) {
            struct al_call *call = create_call(server, rpcs[i]);
            if (!call) {
                return al_err_errno(err, ENOMEM, "cannot wait for calls");
            }
            arm(call);
        }
    }
    return 0;
}

void al_server_drain(struct al_server *server)
{
    al_service_drain(&server->service);
}

void al_server_report(struct al_server *server)
{
    al_service_report(&server->service);
}

int al_server_idle_fd(const struct al_server *server)
{
    return server->service.idle_fd;
}

void al_server_cancel_jobs(struct al_server *server)
{
    al_jobs_cancel_all(server->service.jobs);
}

static void shutdown_done(struct al_op *op, bool ok)
{
    (void)ok;
    struct al_server *server =
        (struct al_server *)((char *)op - offsetof(struct al_server, shutdown));
    pthread_mutex_lock(&server->lock);
    server->is_shut_down = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* Waits until gRPC has shut down and all calls are freed. False: that lasted longer. */
static bool wait_shut_down(struct al_server *server, const struct timespec *until)
{
    int r = 0;
    pthread_mutex_lock(&server->lock);
    while (r == 0 && !(server->is_shut_down && server->calls == 0)) {
        r = until ? pthread_cond_timedwait(&server->changed, &server->lock, until)
                  : pthread_cond_wait(&server->changed, &server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    return r == 0;
}

static void shut_down(struct al_server *server)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LINGER_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    al_service_drain(&server->service);
    al_server_cancel_jobs(server);
    al_op_start(&server->shutdown, shutdown_done);
    grpc_server_shutdown_and_notify(server->grpc, server->cq, &server->shutdown);
    if (!wait_shut_down(server, &until)) {
        grpc_server_cancel_all_calls(server->grpc);
        al_server_cancel_jobs(server);
        (void)wait_shut_down(server, NULL);
    }
}

void al_server_destroy(struct al_server *server)
{
    if (!server) {
        return;
    }
    if (server->started) {
        shut_down(server);
        grpc_completion_queue_shutdown(server->cq);
        pthread_join(server->thread, NULL);
    } else {
        grpc_server_shutdown_and_notify(server->grpc, server->cq, &server->shutdown);
        grpc_completion_queue_shutdown(server->cq);
        const gpr_timespec forever = gpr_inf_future(GPR_CLOCK_MONOTONIC);
        while (grpc_completion_queue_next(server->cq, forever, NULL).type != GRPC_QUEUE_SHUTDOWN) {
        }
    }
    grpc_server_destroy(server->grpc);
    grpc_completion_queue_destroy(server->cq);
    al_service_finish(&server->service);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}
