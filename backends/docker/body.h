/* The JSON that the Engine API is told, and what is read of what it says. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/job_spec.h"
#include "backends/base/err.h"

/* Labels of what Airlock makes. */
#define AL_DOCKER_LABEL_INSTANCE "airlock.instance"
#define AL_DOCKER_LABEL_JOB      "airlock.job"

/* The API versions that this code was written for: 1.N. */
#define AL_DOCKER_API_MIN 41
#define AL_DOCKER_API_MAX 44

struct al_docker_create {
    const char *image;
    const char *user;
    const char *instance;
    const char *job_id;
    const char *oci_runtime; /* "": the daemon's default */
    const char *entrypoint;
    const struct al_quotas *quotas;
};

/* The body of POST /containers/create; malloc'ed. NULL when memory is out. */
char *al_docker_body_create(const struct al_docker_create *create);

/* The body of POST /containers/ID/update for another memory limit; malloc'ed. */
char *al_docker_body_update(uint32_t memory_mb);

/* The value of the parameter `filters` that selects what is of an instance, percent-encoded;
 * malloc'ed. */
char *al_docker_filter_instance(const char *instance);

/* GET /version → the version to speak, as 1.N. FAILED_PRECONDITION when there is none in common. */
int al_docker_read_version(const char *json, size_t len, unsigned *ret, struct al_err *err);

/* The `message` of an error; the beginning of the body when it has none. */
void al_docker_read_message(const char *json, size_t len, char *ret, size_t size);

/* A string field at the top; -ENOENT. */
int al_docker_read_string(const char *json, size_t len, const char *key, char *ret, size_t size);

struct al_docker_state {
    bool running;
    bool oom_killed;
    int exit_code;
    char error[128];
};

/* GET /containers/ID/json. 0 or -EBADMSG. */
int al_docker_read_state(const char *json, size_t len, struct al_docker_state *ret);

/* GET /containers/json: calls `fn` with each id, until it returns non-zero, which is returned.
 * -EBADMSG when it is no list. */
int al_docker_read_ids(const char *json, size_t len, int (*fn)(void *arg, const char *id),
                       void *arg);

/* GET /images/json: the same with each name of each image. */
int al_docker_read_tags(const char *json, size_t len, int (*fn)(void *arg, const char *tag),
                        void *arg);

/* The answer of POST /build: JSON objects one behind the other. 0, or the error within. */
int al_docker_read_build(const char *json, size_t len, struct al_err *err);
