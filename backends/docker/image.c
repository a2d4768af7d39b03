/*
 * A container's first process is our init, and nothing of the daemon's machine is mounted into it:
 * so init is in the image. From each image of the configuration one is built, once, that has one
 * layer more; it is named by what it was made of, so that another init or another image behind the
 * same name gets another one. `instance` is part of the name: of its own the next start removes
 * what is no longer used.
 */
#include "backends/docker/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/docker/body.h"
#include "backends/docker/tar.h"

#define INIT_MAX   (32u << 20)
#define INSPECT_MS 10000
#define BUILD_MS   180000
#define REMOVE_MS  30000

int al_docker_digest(const void *data, size_t n, char ret[65])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (!EVP_Digest(data, n, digest, &len, EVP_sha256(), NULL) || len != 32) {
        return -EIO;
    }
    for (unsigned i = 0; i < len; i++) {
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
    }
    return 0;
}

int al_docker_init_file_read(struct al_docker_init_file *file, const char *path, struct al_err *err)
{
    struct stat st;
    al_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        return al_err_errno(err, errno, "%s", path);
    }
    if (st.st_size <= 0 || st.st_size > (off_t)INIT_MAX) {
        return al_err_set(err, AL_ERR_INTERNAL, "%s is not the init of containers", path);
    }
    *file =
        (struct al_docker_init_file){.data = malloc((size_t)st.st_size), .len = (size_t)st.st_size};
    int rc = file->data ? al_io_read_full(fd, file->data, file->len) : -ENOMEM;
    rc = rc < 0 ? rc : al_docker_digest(file->data, file->len, file->digest);
    if (rc < 0) {
        al_docker_init_file_finish(file);
        return al_err_errno(err, -rc, "%s", path);
    }
    return 0;
}

void al_docker_init_file_finish(struct al_docker_init_file *file)
{
    free(file->data);
    *file = (struct al_docker_init_file){.len = 0};
}

/* 1 and its id, 0 when there is none of that name. */
static int inspect(struct al_engine *engine, const char *image, char *ret_id, size_t size,
                   struct al_err *err)
{
    char path[400];
    struct al_engine_answer answer;
    snprintf(path, sizeof path, "/images/%s/json", image);
    const struct al_engine_call call = {.method = "GET", .path = path, .timeout_ms = INSPECT_MS};
    int rc = al_engine_call(engine, &call, &answer, err);
    if (rc < 0) {
        return rc;
    }
    const char *json = (const char *)answer.body.data;
    if (answer.status == 200) {
        rc = al_docker_read_string(json, answer.body.len, "Id", ret_id, size) < 0
                 ? al_err_set(err, AL_ERR_INTERNAL, "docker daemon: an image without an id")
                 : 1;
    } else if (answer.status != 404) {
        rc = al_engine_refused(&answer, "inspect", err);
    }
    al_buf_finish(&answer.body);
    return rc;
}

static int make_context(const struct al_docker_init_file *init, const char *from,
                        struct al_buf *ret)
{
    char dockerfile[256];
    int n = snprintf(dockerfile, sizeof dockerfile, "FROM %s\nCOPY init %s\n", from,
                     AL_DOCKER_INIT_PATH);
    int rc = al_tar_add(ret, "Dockerfile", 0644, dockerfile, (size_t)n);
    rc = rc < 0 ? rc : al_tar_add(ret, "init", 0555, init->data, init->len);
    return rc < 0 ? rc : al_tar_end(ret);
}

static int build(const struct al_docker_host *host, const struct al_docker_init_file *init,
                 const char *from, const char *tag, struct al_err *err)
{
    char path[512];
    struct al_engine_answer answer;
    struct al_buf context;
    al_buf_init(&context, init->len + (64u << 10));
    snprintf(
        path, sizeof path,
        "/build?t=%s&rm=1&forcerm=1&networkmode=none&q=1&labels=%%7B%%22%s%%22%%3A%%22%s%%22%%7D",
        tag, AL_DOCKER_LABEL_INSTANCE, host->instance);
    int rc = make_context(init, from, &context);
    const struct al_engine_call call = {.method = "POST",
                                        .path = path,
                                        .type = "application/x-tar",
                                        .body = context.data,
                                        .body_len = context.len,
                                        .timeout_ms = BUILD_MS};
    rc = rc < 0 ? al_err_errno(err, -rc, "docker")
                : al_engine_call(host->engine, &call, &answer, err);
    al_buf_finish(&context);
    if (rc < 0) {
        return rc;
    }
    rc = answer.status == 200
             ? al_docker_read_build((const char *)answer.body.data, answer.body.len, err)
             : al_engine_refused(&answer, "build", err);
    al_err_wrap(err, "cannot put the init into the image");
    al_buf_finish(&answer.body);
    return rc;
}

int al_docker_image_derive(struct al_docker_host *host, const struct al_docker_init_file *init,
                           struct al_docker_runtime *runtime, char ret_digest[65],
                           struct al_err *err)
{
    char id[128], made_of[256];
    const char *name = runtime->image->image;
    int rc = inspect(host->engine, name, id, sizeof id, err);
    if (rc < 0) {
        return rc;
    }
    if (rc == 0) {
        return al_err_set(err, AL_ERR_NOT_FOUND, "the daemon has no image %s (docker pull %s)",
                          name, name);
    }
    int n = snprintf(made_of, sizeof made_of, "%s %s", id, init->digest);
    rc = al_docker_digest(made_of, (size_t)n, ret_digest);
    if (rc < 0) {
        return al_err_errno(err, -rc, "docker");
    }
    snprintf(runtime->derived, sizeof runtime->derived, "airlock-%s:%.32s", host->instance,
             ret_digest);
    char derived_id[128];
    rc = inspect(host->engine, runtime->derived, derived_id, sizeof derived_id, err);
    return rc == 0 ? build(host, init, id, runtime->derived, err) : rc < 0 ? rc : 0;
}

/* --- what was left --- */

/* What is of the instance; `what` is a path that a parameter can follow. */
static int list(struct al_docker_host *host, const char *what, struct al_engine_answer *ret,
                struct al_err *err)
{
    al_auto_free char *filter = al_docker_filter_instance(host->instance);
    al_auto_free char *path = NULL;
    if (!filter || asprintf(&path, "%sfilters=%s", what, filter) < 0) {
        path = NULL;
        return al_err_errno(err, ENOMEM, "docker");
    }
    const struct al_engine_call call = {.method = "GET", .path = path, .timeout_ms = INSPECT_MS};
    int rc = al_engine_call(host->engine, &call, ret, err);
    if (rc == 0 && ret->status != 200) {
        rc = al_engine_refused(ret, "list", err);
        al_buf_finish(&ret->body);
    }
    return rc;
}

static int remove_thing(struct al_docker_host *host, const char *path)
{
    struct al_engine_answer answer;
    const struct al_engine_call call = {.method = "DELETE", .path = path, .timeout_ms = REMOVE_MS};
    if (al_engine_call(host->engine, &call, &answer, NULL) < 0) {
        return -EIO;
    }
    al_buf_finish(&answer.body);
    return 0;
}

static int remove_container(void *arg, const char *id)
{
    char path[256];
    snprintf(path, sizeof path, "/containers/%.128s?force=1&v=1", id);
    return remove_thing(arg, path);
}

int al_docker_reap(struct al_docker_host *host, struct al_err *err)
{
    struct al_engine_answer answer;
    int rc = list(host, "/containers/json?all=1&", &answer, err);
    if (rc < 0) {
        return rc;
    }
    rc =
        al_docker_read_ids((const char *)answer.body.data, answer.body.len, remove_container, host);
    al_buf_finish(&answer.body);
    return rc < 0 ? al_err_set(err, AL_ERR_INTERNAL,
                               "docker: cannot remove an earlier run's containers")
                  : 0;
}

struct sweep {
    struct al_docker_host *host;
    const struct al_docker_runtime *runtimes;
    size_t n;
};

static int sweep_image(void *arg, const char *tag)
{
    const struct sweep *s = arg;
    char path[256];
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->runtimes[i].derived, tag) == 0) {
            return 0;
        }
    }
    snprintf(path, sizeof path, "/images/%.160s", tag);
    return remove_thing(s->host, path);
}

void al_docker_images_sweep(struct al_docker_host *host, const struct al_docker_runtime *runtimes,
                            size_t n)
{
    struct al_engine_answer answer;
    struct sweep sweep = {.host = host, .runtimes = runtimes, .n = n};
    if (list(host, "/images/json?", &answer, NULL) == 0) {
        (void)al_docker_read_tags((const char *)answer.body.data, answer.body.len, sweep_image,
                                  &sweep);
        al_buf_finish(&answer.body);
    }
}
