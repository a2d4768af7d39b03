/*
 * A docker daemon as seen through its Engine API: calls over HTTP, and connections that are taken
 * over. Any thread. No call goes on for longer than it was given.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/api/ctl.h"
#include "backends/base/buf.h"
#include "backends/base/err.h"
#include "backends/docker/config.h"

struct al_engine;

/* Asks the daemon for its versions and settles on one. Borrows the configuration. */
int al_engine_create(const struct al_docker_config *config, struct al_engine **ret,
                     struct al_err *err);
/* No call is under way any more. */
void al_engine_destroy(struct al_engine *engine);

/* "API 1.41" */
const char *al_engine_version(const struct al_engine *engine);

struct al_engine_call {
    const char *method;
    const char *path; /* behind the version: "/containers/json?all=1" */
    const char *type; /* of the body; NULL: there is none */
    const void *body;
    size_t body_len;
    int64_t timeout_ms;
    struct al_ctl *ctl; /* gives up when that is cancelled; may be NULL */
};

struct al_engine_answer {
    long status;
    struct al_buf body; /* finish it */
};

/* 0 and an answer, whatever its status; AL_ERR_INTERNAL when the daemon was not reached or did not
 * answer in time. Nothing is to be finished then. */
int al_engine_call(struct al_engine *engine, const struct al_engine_call *call,
                   struct al_engine_answer *ret, struct al_err *err);

/* The same for a call whose answer matters only by its status: 0 when it is `status`, or below 300
 * for 0; else the daemon's message. */
int al_engine_do(struct al_engine *engine, const struct al_engine_call *call, long status,
                 struct al_err *err);

/* An error with the daemon's own words. Returns as al_err_set. */
int al_engine_refused(const struct al_engine_answer *answer, const char *what, struct al_err *err);

/* A connection that was taken over: bytes both ways. For one thread. */
struct al_hijack;

/* POST path; 0 once the daemon has agreed. */
int al_hijack_open(struct al_engine *engine, const char *path, struct al_hijack **ret,
                   struct al_err *err);
void al_hijack_close(struct al_hijack *hijack);

/* For poll. Borrowed. */
int al_hijack_fd(const struct al_hijack *hijack);

/* How many bytes; 0: the end; -EAGAIN; another error. May have more although poll says nothing:
 * read until -EAGAIN. */
ssize_t al_hijack_read(struct al_hijack *hijack, void *data, size_t n);
ssize_t al_hijack_write(struct al_hijack *hijack, const void *data, size_t n);
