#include "backends/docker/body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "backends/docker/job.h"

/* Files of a tmpfs for each MiB of it; the same bound as a cell's. */
#define INODES_BASE   4096
#define INODES_PER_MB 256

static json_t *tmpfs(const struct al_docker_create *c, unsigned mode)
{
    const char *group = strchr(c->user, ':');
    const uint32_t mb = c->quotas->disk_mb;
    return json_sprintf("rw,exec,nosuid,nodev,size=%um,nr_inodes=%u,mode=%04o,uid=%.*s,gid=%s", mb,
                        INODES_BASE + INODES_PER_MB * mb, mode,
                        (int)(strchrnul(c->user, ':') - c->user), c->user,
                        group ? group + 1 : c->user);
}

/* Everything that stands between the program and the daemon's machine. */
static json_t *host_config(const struct al_docker_create *c)
{
    const json_int_t memory = (json_int_t)c->quotas->memory_mb << 20;
    const json_int_t pids = (json_int_t)c->quotas->pids + AL_CONTAINER_OWN_PIDS;
    /* clang-format off */
    json_t *config = json_pack(
        "{s:I, s:I, s:I, s:I, s:b, s:b, s:s, s:s, s:s, s:[s], s:[s], s:{s:s}, s:{s:o, s:o}}",
        "Memory", memory,
        "MemorySwap", memory, /* both together: no swap */
        "PidsLimit", pids,
        "ShmSize", (json_int_t)c->quotas->disk_mb << 20,
        "ReadonlyRootfs", 1,
        "Init", 0, /* init is ours */
        "NetworkMode", "none",
        "IpcMode", "private",
        "CgroupnsMode", "private",
        "CapDrop", "ALL",
        "SecurityOpt", "no-new-privileges",
        "LogConfig", "Type", "none",
        "Tmpfs", "/sandbox", tmpfs(c, 0755), "/tmp", tmpfs(c, 01777));
    /* clang-format on */
    if (config && c->oci_runtime[0] != '\0') {
        json_object_set_new(config, "Runtime", json_string(c->oci_runtime));
    }
    return config;
}

char *al_docker_body_create(const struct al_docker_create *c)
{
    /* clang-format off */
    json_t *body = json_pack(
        "{s:s, s:[s], s:[], s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:{s:s, s:s}, s:o}",
        "Image", c->image,
        "Entrypoint", c->entrypoint,
        "Cmd",
        "User", c->user,
        "WorkingDir", "/",
        "Hostname", AL_CONTAINER_HOST_NAME,
        "Tty", 0,
        "OpenStdin", 1,
        "StdinOnce", 1, /* its end reaches init when airlockd is gone */
        "AttachStdin", 1,
        "AttachStdout", 1,
        "AttachStderr", 1,
        "NetworkDisabled", 1,
        "Labels", AL_DOCKER_LABEL_INSTANCE, c->instance, AL_DOCKER_LABEL_JOB, c->job_id,
        "HostConfig", host_config(c));
    /* clang-format on */
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

char *al_docker_body_update(uint32_t memory_mb)
{
    const json_int_t memory = (json_int_t)memory_mb << 20;
    json_t *body = json_pack("{s:I, s:I}", "Memory", memory, "MemorySwap", memory);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

char *al_docker_filter_instance(const char *instance)
{
    char *text;
    int n = asprintf(&text,
                     "%%7B%%22label%%22%%3A%%5B%%22" AL_DOCKER_LABEL_INSTANCE "%%3D%s%%22%%5D%%7D",
                     instance);
    return n < 0 ? NULL : text;
}

/* --- answers --- */

/* A borrowed string, or NULL when there is none. */
static const char *string_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The N of "1.N"; 0 when it is none. */
static unsigned minor_of(const char *version)
{
    unsigned major = 0, minor = 0;
    return version && sscanf(version, "%u.%u", &major, &minor) == 2 && major == 1 ? minor : 0;
}

int al_docker_read_version(const char *text, size_t len, unsigned *ret, struct al_err *err)
{
    json_t *json = json_loadb(text, len, 0, NULL);
    unsigned most = minor_of(string_of(json, "ApiVersion"));
    unsigned least = minor_of(string_of(json, "MinAPIVersion"));
    json_decref(json);
    unsigned version = most < AL_DOCKER_API_MAX ? most : AL_DOCKER_API_MAX;
    version = version > least ? version : least;
    if (most == 0) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "the daemon does not say its version");
    }
    if (version > most || version < AL_DOCKER_API_MIN) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION,
                          "the daemon speaks API 1.%u to 1.%u, and at least 1.%d is needed", least,
                          most, AL_DOCKER_API_MIN);
    }
    *ret = version;
    return 0;
}

void al_docker_read_message(const char *text, size_t len, char *ret, size_t size)
{
    json_t *json = json_loadb(text, len, 0, NULL);
    const char *message = string_of(json, "message");
    if (message) {
        al_err_copy_text(ret, size, message);
    } else {
        snprintf(ret, size, "%.*s", (int)(len < size ? len : size - 1), text);
    }
    json_decref(json);
    ret[strcspn(ret, "\r\n")] = '\0';
}

int al_docker_read_string(const char *text, size_t len, const char *key, char *ret, size_t size)
{
    json_t *json = json_loadb(text, len, 0, NULL);
    const char *value = string_of(json, key);
    int rc = value && strlen(value) < size ? 0 : -ENOENT;
    if (rc == 0) {
        memcpy(ret, value, strlen(value) + 1);
    }
    json_decref(json);
    return rc;
}

int al_docker_read_state(const char *text, size_t len, struct al_docker_state *ret)
{
    json_t *json = json_loadb(text, len, 0, NULL);
    const json_t *state = json_object_get(json, "State");
    const char *error = string_of(state, "Error");
    *ret = (struct al_docker_state){
        .running = json_is_true(json_object_get(state, "Running")),
        .oom_killed = json_is_true(json_object_get(state, "OOMKilled")),
        .exit_code = (int)json_integer_value(json_object_get(state, "ExitCode"))};
    al_err_copy_text(ret->error, sizeof ret->error, error ? error : "");
    int rc = json_is_object(state) ? 0 : -EBADMSG;
    json_decref(json);
    return rc;
}

int al_docker_read_ids(const char *text, size_t len, int (*fn)(void *arg, const char *id),
                       void *arg)
{
    json_t *json = json_loadb(text, len, 0, NULL);
    int rc = json_is_array(json) ? 0 : -EBADMSG;
    size_t i;
    const json_t *entry;
    json_array_foreach(json, i, entry)
    {
        const char *id = string_of(entry, "Id");
        rc = rc == 0 && id ? fn(arg, id) : rc;
    }
    json_decref(json);
    return rc;
}

int al_docker_read_tags(const char *text, size_t len, int (*fn)(void *arg, const char *tag),
                        void *arg)
{
    json_t *json = json_loadb(text, len, 0, NULL);
    int rc = json_is_array(json) ? 0 : -EBADMSG;
    size_t i, k;
    const json_t *entry, *tag;
    json_array_foreach(json, i, entry)
    {
        json_array_foreach(json_object_get(entry, "RepoTags"), k, tag)
        {
            rc = rc == 0 && json_is_string(tag) ? fn(arg, json_string_value(tag)) : rc;
        }
    }
    json_decref(json);
    return rc;
}

int al_docker_read_build(const char *text, size_t len, struct al_err *err)
{
    size_t at = 0;
    while (at < len) {
        json_error_t where;
        json_t *json = json_loadb(text + at, len - at, JSON_DISABLE_EOF_CHECK, &where);
        const char *error = string_of(json, "error");
        if (error) {
            al_err_set(err, AL_ERR_INTERNAL, "%s", error);
        }
        json_decref(json);
        if (!json || error) {
            return error ? -EIO : 0; /* what is left are blanks */
        }
        at += (size_t)where.position;
    }
    return 0;
}
