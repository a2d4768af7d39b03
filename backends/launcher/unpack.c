/* From the request's bundle to files, arguments and environment; see program.c. */
#include "backends/launcher/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/barrier.h"
#include "backends/launcher/beneath.h"

static int write_item(int workdir, const char *path, const struct al_bundle_item *item,
                      struct al_err *err)
{
    al_auto_close int fd = al_beneath_create(workdir, path, item->mode, err);
    if (fd < 0) {
        return fd;
    }
    int rc = al_io_write_full(fd, item->data, item->len);
    return rc < 0 ? al_err_errno(err, -rc, "cannot write the file '%s'", path) : 0;
}

int al_program_add_env(struct al_program *p, const char *name, const char *value)
{
    char *pair;
    if (p->n_env >= AL_ENV_MAX + AL_PROGRAM_ENV_BASE || asprintf(&pair, "%s=%s", name, value) < 0) {
        return -ENOMEM;
    }
    size_t n = strlen(name) + 1;
    for (size_t i = 0; i < p->n_env; i++) {
        if (strncmp(p->env[i], pair, n) == 0) { /* the last one wins */
            p->env[i] = pair;
            return 0;
        }
    }
    p->env[p->n_env++] = pair;
    return 0;
}

static int open_dir(const char *path, struct al_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? al_err_errno(err, errno, "cannot open the folder %s", path) : fd;
}

static int write_inputs(const struct al_program *p, const struct al_bundle_item *item,
                        struct al_err *err)
{
    char tmp[AL_PROGRAM_PATH_BYTES];
    snprintf(tmp, sizeof tmp, "%s/tmp", p->prefix);
    al_auto_close int dir = open_dir(tmp, err);
    return dir < 0 ? dir : write_item(dir, strrchr(p->inputs_path, '/') + 1, item, err);
}

static int take_item(struct al_program *p, int workdir, const struct al_bundle_item *item,
                     struct al_err *err)
{
    const bool unpack = p->assignment.first;
    switch (item->type) {
    case AL_BUNDLE_CODE:
        return unpack ? write_item(workdir, p->runtime->info.code_file, item, err) : 0;
    case AL_BUNDLE_FILE:
        return unpack ? write_item(workdir, item->name, item, err) : 0;
    case AL_BUNDLE_INPUTS:
        p->has_inputs = true;
        return unpack ? write_inputs(p, item, err) : 0;
    case AL_BUNDLE_ENV:
        if (al_program_add_env(p, item->name, (const char *)item->data) < 0) {
            return al_err_set(err, AL_ERR_INTERNAL, "too many environment variables");
        }
        return 0;
    case AL_BUNDLE_ARG:
        if (p->n_args == AL_ARGS_MAX) {
            return al_err_set(err, AL_ERR_INTERNAL, "too many arguments");
        }
        p->args[p->n_args] = strdup((const char *)item->data);
        return p->args[p->n_args++] ? 0 : al_err_errno(err, ENOMEM, "arguments");
    case AL_BUNDLE_ARTIFACT:
        return 0;
    }
    return 0;
}

/* The request's workdir may lie below /sandbox or /tmp, where nothing is yet. Later, a compile step
 * may have put a link in its place, to one of our own fds even: those of cgroups lead to the host's
 * files. So no link is followed. */
static int open_workdir(const struct al_program *p, bool make, struct al_err *err)
{
    const char *below = p->workdir + strlen(p->prefix) + 1;
    al_auto_close int base = open_dir(p->prefix[0] ? p->prefix : "/", err);
    if (base < 0) {
        return base;
    }
    int fd = al_beneath_open_folder(base, below, make,
                                    al_barrier_flags(AL_BARRIER_WORKDIR, al_beneath_flags), err);
    al_err_wrap(err, "workdir");
    return fd;
}

int al_program_unpack(struct al_program *p, int bundle_fd, struct al_err *err)
{
    al_auto_close int workdir = open_workdir(p, p->assignment.first, err);
    if (workdir < 0) {
        return workdir;
    }
    ssize_t size = al_bundle_check_fd(bundle_fd);
    if (size < 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "the job's bundle is not a sealed memfd");
    }
    void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, bundle_fd, 0);
    if (data == MAP_FAILED) {
        return al_err_errno(err, errno, "cannot map the job's bundle");
    }
    struct al_bundle_reader reader = {.data = data, .left = (size_t)size};
    struct al_bundle_item item;
    int rc;
    while ((rc = al_bundle_next(&reader, &item)) > 0) {
        if ((rc = take_item(p, workdir, &item, err)) < 0) {
            return rc;
        }
    }
    munmap(data, (size_t)size);
    if (rc < 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "the job's bundle is malformed");
    }
    return fchdir(workdir) < 0 ? al_err_errno(err, errno, "chdir %s", p->workdir) : 0;
}
