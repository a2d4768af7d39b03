/*
 * A server in this process with the backends echo (the default) and actor, and a channel to it.
 */
#pragma once

#include "proto/airlock/v1/execution.pb-c.h"
#include "service/config.h"
#include "service/server.h"
#include "tests/integration/actor.h"
#include "tests/integration/rpc_client.h"

struct al_fixture {
    struct al_config config;
    struct al_backend *backends[2];
    struct al_backend *actor;
    struct al_registry registry;
    struct al_server *server;
    grpc_channel *channel;
    char address[64];
};

/* Defaults but for what `change` sets; NULL: nothing. */
struct al_fixture *al_fixture_create(void (*change)(struct al_config *config));
void al_fixture_destroy(struct al_fixture *f);

/* Another channel, with a connection of its own. */
grpc_channel *al_fixture_connect(const struct al_fixture *f);

/* Waits until the condition holds; fails the test after 10 s. */
#define AL_WAIT_UNTIL(condition)                                     \
    do {                                                             \
        int64_t until_ms_ = al_now_ms() + 10000;                     \
        while (!(condition)) {                                       \
            if (al_now_ms() > until_ms_) {                           \
                fail_msg("waited too long for: %s", #condition);     \
            }                                                        \
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); \
        }                                                            \
    } while (0)

/* A request with that code; `backend` may be NULL. Shallow: the strings are borrowed. */
Airlock__V1__RunRequest al_run_request(const char *backend, const char *code);

/* Runs it; the answer must come. It is in *ret_arena. */
Airlock__V1__ExecutionResult *al_fixture_run(struct al_fixture *f,
                                             const Airlock__V1__RunRequest *request,
                                             struct al_arena **ret_arena);

/* The status of a job as its tenant ("t") sees it; the call must succeed. */
Airlock__V1__JobStatus al_fixture_status(struct al_fixture *f, const char *job_id);
