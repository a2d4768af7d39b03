#include "service/convert_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/api/artifact.h"
#include "service/quote.h"

#define WORKDIR_MAX 255 /* bytes; what the launcher takes */
#define PAGE_BYTES  4096

#define PATH_RANGE \
    "relative, no empty, \".\" or \"..\" component, at most 255 bytes a component and 4095 in all"

static bool is_component(const char *part, size_t len)
{
    bool dots = (len == 1 && part[0] == '.') || (len == 2 && part[0] == '.' && part[1] == '.');
    return len > 0 && len <= AL_PATH_COMPONENT_MAX && !dots;
}

/* An absolute path begins with an empty component. */
static bool is_relative_path(const char *path)
{
    for (const char *part = path;; part++) {
        const char *end = strchrnul(part, '/');
        if (!is_component(part, (size_t)(end - part))) {
            return false;
        }
        if (*end == '\0') {
            return true;
        }
        part = end;
    }
}

static bool is_below(const char *path, const char *root)
{
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 &&
           (path[n] == '\0' || (path[n] == '/' && is_relative_path(path + n + 1)));
}

int convert_workdir(struct convert *c)
{
    const char *given = c->message->workdir;
    size_t len = strlen(given);
    char *workdir = al_arena_strdup(c->arena, len > 0 ? given : "/sandbox");
    if (!workdir) {
        return convert_exhausted(c->err);
    }
    if (len > 1 && workdir[len - 1] == '/') {
        workdir[--len] = '\0';
    }
    if (len > WORKDIR_MAX || (!is_below(workdir, "/sandbox") && !is_below(workdir, "/tmp"))) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "workdir: %s is not allowed (/sandbox, /tmp or a folder below one of "
                          "them; no empty, \".\" or \"..\" component; at most %d bytes)",
                          al_quote(given).text, WORKDIR_MAX);
    }
    c->request->spec.workdir = workdir;
    return 0;
}

/* Checks path and mode of one file and the size of the contents so far. */
static int convert_file(struct convert *c, size_t i, struct al_file *ret, size_t *content_bytes)
{
    const Airlock__V1__SandboxFile *file = c->message->files[i];
    size_t path_max = AL_PATH_MAX - 1 - strlen(c->request->spec.workdir) - 1;
    if (!is_relative_path(file->path) || strlen(file->path) > path_max) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "files[%zu].path: %s is not allowed (" PATH_RANGE ", workdir included)",
                          i, al_quote(file->path).text);
    }
    if (file->mode > 0777) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "files[%zu].mode: %#" PRIo32 " is out of range (permission bits, 0 to "
                          "0777; 0 means 0644)",
                          i, file->mode);
    }
    if (file->content.len > c->limits->files_bytes - *content_bytes) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "files[%zu].content: the contents of all files have more than %zu bytes",
                          i, c->limits->files_bytes);
    }
    *content_bytes += file->content.len;
    *ret = (struct al_file){.path = file->path,
                            .content = {file->content.data, file->content.len},
                            .mode = file->mode == 0 ? 0644 : file->mode};
    return 0;
}

/* '/' sorts before every other byte, so that what is below a folder follows it at once. */
static int rank(char byte)
{
    return byte == '\0' ? 0 : byte == '/' ? 1 : (unsigned char)byte + 1;
}

struct file_ref {
    const struct al_file *file;
};

static int compare_paths(const void *a, const void *b)
{
    const struct al_file *x = ((const struct file_ref *)a)->file;
    const struct al_file *y = ((const struct file_ref *)b)->file;
    const char *p = x->path;
    const char *q = y->path;
    while (*p == *q && *p != '\0') {
        p++;
        q++;
    }
    int difference = rank(*p) - rank(*q);
    return difference != 0 ? difference : (x > y) - (x < y);
}

/* Two files of one path, or one that would have to be the folder of another. */
static int refuse_conflicts(struct convert *c)
{
    const struct al_job_spec *spec = &c->request->spec;
    struct file_ref *sorted = al_arena_alloc_array(c->arena, spec->n_files, sizeof *sorted);
    if (!sorted) {
        return convert_exhausted(c->err);
    }
    for (size_t i = 0; i < spec->n_files; i++) {
        sorted[i].file = &spec->files[i];
    }
    qsort(sorted, spec->n_files, sizeof *sorted, compare_paths);
    for (size_t i = 1; i < spec->n_files; i++) {
        const char *before = sorted[i - 1].file->path;
        const char *path = sorted[i].file->path;
        size_t n = strlen(before);
        if (strncmp(before, path, n) == 0 && (path[n] == '\0' || path[n] == '/')) {
            return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                              "files[%td].path: %s %s files[%td].path (each path once, and no file "
                              "that is another's folder)",
                              sorted[i].file - spec->files, al_quote(path).text,
                              path[n] == '\0' ? "is also" : "is below",
                              sorted[i - 1].file - spec->files);
        }
    }
    return 0;
}

int convert_files(struct convert *c)
{
    struct al_job_spec *spec = &c->request->spec;
    size_t n = c->message->n_files;
    int r = convert_at_most(c->err, "files", n, c->limits->files, "files");
    if (r < 0) {
        return r;
    }
    struct al_file *files = al_arena_alloc_array(c->arena, n, sizeof *files);
    if (!files) {
        return convert_exhausted(c->err);
    }
    size_t content_bytes = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        r = convert_file(c, i, &files[i], &content_bytes);
    }
    spec->files = files;
    spec->n_files = n;
    return r < 0 ? r : refuse_conflicts(c);
}

/* What the tmpfs takes for a file: whole pages. */
static uint64_t disk_bytes(size_t content_bytes)
{
    return ((uint64_t)content_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

int convert_disk(struct convert *c)
{
    const struct al_job_spec *spec = &c->request->spec;
    uint64_t bytes = disk_bytes(spec->code.len);
    bytes += spec->inputs_json ? disk_bytes(strlen(spec->inputs_json)) : 0;
    for (size_t i = 0; i < spec->n_files; i++) {
        bytes += disk_bytes(spec->files[i].content.len);
    }
    if (bytes > (uint64_t)spec->quotas.disk_mb << 20) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "quotas.disk_mb: %" PRIu32 " MiB do not hold the request's own code, "
                          "files and inputs (%" PRIu64 " bytes, in whole pages)",
                          spec->quotas.disk_mb, bytes);
    }
    return 0;
}

int convert_artifacts(struct convert *c)
{
    size_t n = c->message->n_artifacts;
    char *const *globs = c->message->artifacts;
    int r = convert_at_most(c->err, "artifacts", n, AL_ARTIFACT_GLOBS_MAX, "globs");
    for (size_t i = 0; i < n && r == 0; i++) {
        if (!is_relative_path(globs[i]) || strlen(globs[i]) >= AL_PATH_MAX) {
            r = al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                           "artifacts[%zu]: %s is not allowed (" PATH_RANGE ")", i,
                           al_quote(globs[i]).text);
        }
    }
    c->request->spec.artifacts = (const char *const *)globs;
    c->request->spec.n_artifacts = n;
    return r;
}
