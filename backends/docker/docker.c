#include "backends/docker/docker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/docker/image.h"
#include "backends/docker/probe.h"
#include "backends/docker/run.h"
#include "backends/launcher/seccomp.h"

#define CAPABILITIES                                                                          \
    (AL_CAP_STREAM | AL_CAP_STDIN | AL_CAP_SIGNALS | AL_CAP_PTY | AL_CAP_FILES | AL_CAP_ENV | \
     AL_CAP_ARGS | AL_CAP_INPUTS | AL_CAP_WORKDIR | AL_CAP_ARTIFACTS)

#define INSTANCE_FILE "docker-instance"
#define INSTANCE_LEN  16
#define UNAVAILABLE   256

struct docker {
    struct al_backend base; /* first: run casts back */
    struct al_docker_host host;
    struct al_docker_runtime runtimes[AL_DOCKER_IMAGES_MAX];
    struct al_language languages[AL_DOCKER_IMAGES_MAX];
    char aliases[AL_DOCKER_IMAGES_MAX][AL_DOCKER_NAME_MAX * 2];
    char versions[AL_DOCKER_IMAGES_MAX][AL_DOCKER_NAME_MAX];
    char unavailable[AL_DOCKER_IMAGES_MAX][UNAVAILABLE];
    char version[64];
};

static int run(struct al_backend *backend, const struct al_job_spec *spec, struct al_ctl *ctl,
               struct al_sink *sink, struct al_result *result, struct al_err *err)
{
    struct docker *d = (struct docker *)backend;
    const struct al_docker_runtime *runtime = &d->runtimes[spec->language - d->languages];
    return al_docker_run(&d->host, runtime, runtime->image->compile, runtime->image->argv, spec,
                         ctl, sink, result, err);
}

static void destroy(struct al_backend *backend)
{
    struct docker *d = (struct docker *)backend;
    al_engine_destroy(d->host.engine);
    al_leftover_finish(&d->host.leftover);
    free(d->host.filter.filter);
    free(d);
}

static const struct al_backend_ops ops = {.run = run, .destroy = destroy};

/* --- the instance's name --- */

static bool is_instance(const char *text)
{
    return strspn(text, "0123456789abcdef") == INSTANCE_LEN && text[INSTANCE_LEN] == '\0';
}

static int make_instance(const char *path, char *ret, struct al_err *err)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits) {
        return al_err_errno(err, errno, "getrandom");
    }
    snprintf(ret, INSTANCE_LEN + 1, "%016llx", (unsigned long long)bits);
    al_auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : al_io_write_full(fd, ret, INSTANCE_LEN);
    return rc < 0 ? al_err_errno(err, -rc, "%s", path) : 0;
}

/* The daemon may be on another machine and serve several: the name is in the data-dir, whose lock
 * the instance holds. */
static int find_instance(const char *data_dir, char *ret, struct al_err *err)
{
    char path[400], text[64];
    snprintf(path, sizeof path, "%s/" INSTANCE_FILE, data_dir);
    if (al_io_read_file(AT_FDCWD, path, text, sizeof text) > 0 && is_instance(text)) {
        memcpy(ret, text, INSTANCE_LEN + 1);
        return 0;
    }
    return make_instance(path, ret, err);
}

/* --- what it can --- */

static void set_aliases(struct al_language *language, char *text)
{
    size_t n = 0;
    for (char *word; n < AL_LANGUAGE_ALIASES_MAX && (word = strsep(&text, " ")) != NULL;) {
        if (*word != '\0') {
            language->aliases[n++] = word;
        }
    }
}

/* The backend's version tells all of its images apart, for the cache's key. */
static int add_to_version(struct docker *d, const char *digest)
{
    char all[160], hash[65];
    int n = snprintf(all, sizeof all, "%s %s", d->version, digest);
    int rc = al_docker_digest(all, (size_t)n, hash);
    snprintf(d->version, sizeof d->version, "1+%.16s", hash);
    return rc;
}

/* Whether programs of the image can be run, and in which version. */
static int probe_runtime(struct docker *d, size_t i, const struct al_docker_init_file *init,
                         uint32_t *ret_layers, struct al_err *err)
{
    char digest[65];
    struct al_docker_runtime *runtime = &d->runtimes[i];
    int rc = al_docker_image_derive(&d->host, init, runtime, digest, err);
    if (rc < 0) {
        return rc;
    }
    if (add_to_version(d, digest) < 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "docker: SHA-256");
    }
    return al_docker_probe(&d->host, runtime, d->versions[i], sizeof d->versions[i], ret_layers,
                           err);
}

static void add_runtimes(struct docker *d, const struct al_docker_init_file *init)
{
    const struct al_docker_config *config = d->host.config;
    uint32_t common = AL_LAYERS_ALL;
    size_t usable = 0;
    for (size_t i = 0; i < config->n_images; i++) {
        const struct al_docker_image *image = &config->images[i];
        struct al_language *language = &d->languages[i];
        struct al_err err = {0};
        uint32_t layers = 0;
        d->runtimes[i].image = image;
        snprintf(d->aliases[i], sizeof d->aliases[i], "%s", image->aliases);
        snprintf(d->versions[i], sizeof d->versions[i], "%s",
                 image->version[0] ? image->version : "unknown");
        *language =
            (struct al_language){.name = image->name,
                                 .version = d->versions[i],
                                 .code_file = image->code_file,
                                 .output_file = image->compile[0] ? image->output_file : NULL};
        set_aliases(language, d->aliases[i]);
        if (probe_runtime(d, i, init, &layers, &err) < 0) {
            al_err_copy_text(d->unavailable[i], sizeof d->unavailable[i], err.text);
            language->unavailable = d->unavailable[i];
        } else {
            common &= layers;
            usable++;
        }
    }
    d->base.n_languages = config->n_images;
    d->base.isolation = usable > 0 ? common : 0;
    d->base.available = usable > 0;
}

static int set_up(struct docker *d, const char *data_dir, const char *init_path, struct al_err *err)
{
    const struct al_docker_config *config = d->host.config;
    struct al_docker_init_file init = {.len = 0};
    if (config->host[0] == '\0') {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "[docker] host is not configured");
    }
    if (config->n_images == 0) {
        return al_err_set(err, AL_ERR_FAILED_PRECONDITION, "there is no [image NAME]");
    }
    int rc = find_instance(data_dir, d->host.instance, err);
    rc = rc < 0 ? rc : al_docker_init_file_read(&init, init_path, err);
    rc = rc < 0 ? rc : al_seccomp_build(&d->host.filter, err);
    rc = rc < 0 ? rc : al_engine_create(config, &d->host.engine, err);
    rc = rc < 0 ? rc : al_docker_reap(&d->host, err);
    if (rc == 0) {
        add_runtimes(d, &init);
        al_docker_images_sweep(&d->host, d->runtimes, config->n_images);
    }
    al_docker_init_file_finish(&init);
    if (rc == 0 && !d->base.available) {
        rc = al_err_set(err, AL_ERR_FAILED_PRECONDITION, "no image can be used: %s: %s",
                        d->languages[0].name, d->unavailable[0]);
    }
    return rc;
}

struct al_backend *al_docker_create(const struct al_docker_config *config, const char *data_dir,
                                    const char *init_path)
{
    struct al_err err = {0};
    struct docker *d = calloc(1, sizeof *d);
    if (!d) {
        return NULL;
    }
    al_leftover_init(&d->host.leftover);
    d->host.config = config;
    snprintf(d->version, sizeof d->version, "1");
    d->base = (struct al_backend){.ops = &ops,
                                  .name = "docker",
                                  .version = d->version,
                                  .languages = d->languages,
                                  .capabilities = CAPABILITIES};
    if (set_up(d, data_dir, init_path, &err) < 0) {
        d->base.available = false;
        al_err_copy_text(d->base.unavailable_reason, sizeof d->base.unavailable_reason, err.text);
    }
    uint32_t layers = d->base.isolation;
    d->base.capabilities |= layers & AL_LAYER_CGROUP_MEMORY ? AL_CAP_MEMORY_ACCOUNTING : 0;
    d->base.capabilities |= layers & AL_LAYER_CGROUP_CPU ? AL_CAP_CPU_ACCOUNTING : 0;
    return &d->base;
}
