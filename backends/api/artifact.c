#include "backends/api/artifact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/api/job_spec.h"
#include "backends/base/chars.h"

static void finish_one(struct al_artifact *artifact)
{
    free(artifact->path);
    free(artifact->data);
}

/* Grows in powers of two: there is room while n is not one. */
static int make_room(struct al_artifacts *artifacts)
{
    size_t n = artifacts->n;
    if (n > 0 && (n & (n - 1)) != 0) {
        return 0;
    }
    struct al_artifact *items =
        reallocarray(artifacts->items, n > 0 ? 2 * n : 1, sizeof(struct al_artifact));
    if (!items) {
        return -ENOMEM;
    }
    artifacts->items = items;
    return 0;
}

int al_artifacts_add(struct al_artifacts *artifacts, struct al_artifact artifact)
{
    if (make_room(artifacts) < 0) {
        finish_one(&artifact);
        return -ENOMEM;
    }
    artifacts->items[artifacts->n++] = artifact;
    return 0;
}

void al_artifacts_finish(struct al_artifacts *artifacts)
{
    for (size_t i = 0; i < artifacts->n; i++) {
        finish_one(&artifacts->items[i]);
    }
    free(artifacts->items);
    *artifacts = (struct al_artifacts){0};
}

uint64_t al_artifacts_bytes(const struct al_artifacts *artifacts)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < artifacts->n; i++) {
        bytes += artifacts->items[i].len;
    }
    return bytes;
}

bool al_artifacts_are_whole(const struct al_artifacts *artifacts)
{
    for (size_t i = 0; i < artifacts->n; i++) {
        if (artifacts->items[i].truncated) {
            return false;
        }
    }
    return artifacts->omitted == 0;
}

size_t al_artifacts_memory(uint64_t bytes)
{
    return (size_t)bytes + AL_ARTIFACTS_MAX * (AL_ARTIFACT_PATH_MAX + sizeof(struct al_artifact));
}

static bool has_only_characters(const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        uint32_t c;
        size_t n = al_char_decode(text + at, len - at, &c);
        if (n == 0 || c < 0x20 || c == 0x7f) {
            return false;
        }
        at += n;
    }
    return true;
}

static bool is_component(const char *part, size_t len)
{
    bool dots = (len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.');
    return len > 0 && len <= AL_PATH_COMPONENT_MAX && !dots;
}

bool al_artifact_path_is_valid(const char *path, size_t len)
{
    if (len >= AL_ARTIFACT_PATH_MAX || !has_only_characters(path, len)) {
        return false;
    }
    const char *end = path + len;
    for (const char *part = path;; part++) {
        const char *slash = memchr(part, '/', (size_t)(end - part));
        const char *stop = slash ? slash : end;
        if (!is_component(part, (size_t)(stop - part))) {
            return false;
        }
        if (!slash) {
            return true;
        }
        part = slash;
    }
}
