#include "backends/docker/init/items.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/api/artifact.h"
#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/beneath.h"
#include "backends/launcher/bundle.h"

#define INPUTS_PATH "/tmp/" AL_INPUTS_NAME

const char al_items_path[] = "/usr/local/bin:/usr/bin:/bin";

bool al_items_has_env(const struct al_items *items, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < items->n_env; i++) {
        if (strncmp(items->env[i], name, n) == 0 && items->env[i][n] == '=') {
            return true;
        }
    }
    return false;
}

int al_items_add_env(struct al_items *items, const char *name, const char *value)
{
    char *pair;
    if (items->n_env >= AL_ENV_MAX + AL_ITEMS_ENV_BASE || asprintf(&pair, "%s=%s", name, value) < 0)
    {
        return -ENOMEM;
    }
    size_t n = strlen(name) + 1;
    for (size_t i = 0; i < items->n_env; i++) {
        if (strncmp(items->env[i], pair, n) == 0) {
            items->env[i] = pair;
            return 0;
        }
    }
    items->env[items->n_env++] = pair;
    return 0;
}

static int add_base_env(struct al_items *items, struct al_err *err)
{
    static const char *const vars[][2] = {
        {"PATH", al_items_path}, {"HOME", "/sandbox"}, {"TMPDIR", "/tmp"},
        {"LANG", "C.UTF-8"},     {"TZ", "UTC"},
    };
    for (size_t i = 0; i < sizeof vars / sizeof vars[0]; i++) {
        if (al_items_add_env(items, vars[i][0], vars[i][1]) < 0) {
            return al_err_errno(err, ENOMEM, "environment");
        }
    }
    return 0;
}

int al_items_begin(struct al_items *items, const struct al_container_plan *plan, struct al_err *err)
{
    items->plan = plan;
    items->fd = -1;
    al_auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    items->workdir = al_beneath_open_folder(root, plan->workdir + 1, true, al_beneath_flags, err);
    if (items->workdir < 0) {
        return items->workdir;
    }
    if (fchdir(items->workdir) < 0) {
        return al_err_errno(err, errno, "chdir %s", plan->workdir);
    }
    return add_base_env(items, err);
}

static int open_file(struct al_items *items, struct al_err *err)
{
    if (items->item.type == AL_BUNDLE_INPUTS) {
        al_auto_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
        items->fd = al_beneath_create(tmp, AL_INPUTS_NAME, 0644, err);
        return items->fd < 0 ? items->fd : al_items_add_env(items, "AIRLOCK_INPUTS", INPUTS_PATH);
    }
    bool code = items->item.type == AL_BUNDLE_CODE;
    const char *path = code ? items->plan->code_file : items->name;
    items->fd = al_beneath_create(items->workdir, path, items->item.mode & 0777, err);
    return items->fd < 0 ? items->fd : 0;
}

/* The item's content, as a string of its own. */
static char *take_text(struct al_items *items)
{
    char *text = al_buf_append(&items->text, "", 1) < 0 ? NULL : (char *)items->text.data;
    items->text = (struct al_buf){0};
    return text;
}

static int end_text(struct al_items *items, struct al_err *err)
{
    char *text = take_text(items);
    int rc = text ? 0 : -ENOMEM;
    switch (items->item.type) {
    case AL_BUNDLE_ENV:
        rc = rc < 0 ? rc : al_items_add_env(items, items->name, text);
        break;
    case AL_BUNDLE_ARG:
        rc = rc < 0 || items->n_args == AL_ARGS_MAX ? -ENOMEM : 0;
        if (rc == 0) {
            items->args[items->n_args++] = text;
        }
        break;
    default:
        rc = rc < 0 || items->n_globs == AL_ARTIFACT_GLOBS_MAX ? -ENOMEM : 0;
        if (rc == 0) {
            items->globs[items->n_globs++] = text;
        }
        break;
    }
    return rc < 0 ? al_err_errno(err, -rc, "arguments and environment") : 0;
}

static bool is_file(uint32_t type)
{
    return type == AL_BUNDLE_CODE || type == AL_BUNDLE_FILE || type == AL_BUNDLE_INPUTS;
}

int al_items_end(struct al_items *items, struct al_err *err)
{
    int rc = items->item.type == 0 || is_file(items->item.type) ? 0 : end_text(items, err);
    al_close_fd(&items->fd);
    items->item.type = 0;
    return rc;
}

int al_items_item(struct al_items *items, const uint8_t *data, size_t n, struct al_err *err)
{
    int rc = al_items_end(items, err);
    if (rc < 0) {
        return rc;
    }
    size_t name = n - sizeof items->item;
    memcpy(&items->item, data, sizeof items->item);
    if (name >= sizeof items->name || items->item.type < AL_BUNDLE_CODE ||
        items->item.type > AL_BUNDLE_ARTIFACT || memchr(data + sizeof items->item, '\0', name))
    {
        return al_err_set(err, AL_ERR_INTERNAL, "a malformed item");
    }
    memcpy(items->name, data + sizeof items->item, name);
    items->name[name] = '\0';
    if (is_file(items->item.type)) {
        return open_file(items, err);
    }
    al_buf_init(&items->text, AL_BUNDLE_BYTES_MAX);
    return 0;
}

int al_items_data(struct al_items *items, const uint8_t *data, size_t n, struct al_err *err)
{
    int rc;
    if (items->item.type == 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "content of no item");
    }
    if (is_file(items->item.type)) {
        rc = al_io_write_full(items->fd, data, n);
        return rc < 0 ? al_err_errno(err, -rc, "cannot write the file '%s'", items->name) : 0;
    }
    rc = al_buf_append(&items->text, data, n);
    return rc < 0 ? al_err_errno(err, -rc, "arguments and environment") : 0;
}
