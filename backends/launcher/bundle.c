#include "backends/launcher/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "backends/api/artifact.h"
#include "backends/base/cleanup.h"
#include "backends/base/io.h"

/* Native byte order: writer and reader are on one machine and of one build. */
struct header {
    uint32_t type;
    uint32_t mode;
    uint32_t name_len;   /* without its NUL */
    uint32_t terminated; /* 1: a NUL follows the data */
    uint64_t data_len;
};

#define IOVECS_PER_ITEM 4

struct bundle_writer {
    struct header *headers;
    struct iovec *iov;
    size_t n_items;
    size_t n_iov;
    uint64_t total;
};

static void push(struct bundle_writer *w, const void *data, size_t n)
{
    if (n > 0) {
        w->iov[w->n_iov++] = (struct iovec){.iov_base = (void *)data, .iov_len = n};
        w->total += n;
    }
}

static bool is_text(uint32_t type)
{
    return type == AL_BUNDLE_ENV || type == AL_BUNDLE_ARG || type == AL_BUNDLE_ARTIFACT;
}

static void put_item(struct bundle_writer *w, enum al_bundle_type type, uint32_t mode,
                     const char *name, const void *data, size_t len)
{
    struct header *h = &w->headers[w->n_items++];
    bool terminated = is_text(type);
    *h = (struct header){.type = type,
                         .mode = mode,
                         .name_len = (uint32_t)strlen(name),
                         .terminated = terminated,
                         .data_len = len};
    push(w, h, sizeof *h);
    push(w, name, h->name_len + 1);
    push(w, data, len);
    push(w, "", terminated);
}

static void put_spec(struct bundle_writer *w, const struct al_job_spec *spec)
{
    put_item(w, AL_BUNDLE_CODE, 0644, "", spec->code.data, spec->code.len);
    for (size_t i = 0; i < spec->n_files; i++) {
        const struct al_file *f = &spec->files[i];
        put_item(w, AL_BUNDLE_FILE, f->mode, f->path, f->content.data, f->content.len);
    }
    if (spec->inputs_json) {
        put_item(w, AL_BUNDLE_INPUTS, 0644, "", spec->inputs_json, strlen(spec->inputs_json));
    }
    for (size_t i = 0; i < spec->n_env; i++) {
        const struct al_env *e = &spec->env[i];
        put_item(w, AL_BUNDLE_ENV, 0, e->name, e->value, strlen(e->value));
    }
    for (size_t i = 0; i < spec->n_args; i++) {
        put_item(w, AL_BUNDLE_ARG, 0, "", spec->args[i], strlen(spec->args[i]));
    }
    for (size_t i = 0; i < spec->n_artifacts; i++) {
        put_item(w, AL_BUNDLE_ARTIFACT, 0, "", spec->artifacts[i], strlen(spec->artifacts[i]));
    }
}

int al_bundle_create(const struct al_job_spec *spec)
{
    if (spec->n_files > AL_FILES_MAX || spec->n_env > AL_ENV_MAX || spec->n_args > AL_ARGS_MAX ||
        spec->n_artifacts > AL_ARTIFACT_GLOBS_MAX)
    {
        return -EFBIG;
    }
    size_t items = 2 + spec->n_files + spec->n_env + spec->n_args + spec->n_artifacts;
    al_auto_free struct iovec *iov =
        calloc(items, IOVECS_PER_ITEM * sizeof(struct iovec) + sizeof(struct header));
    if (!iov) {
        return -ENOMEM;
    }
    struct bundle_writer w = {.headers = (struct header *)(iov + items * IOVECS_PER_ITEM),
                              .iov = iov};
    put_spec(&w, spec);
    if (w.total > AL_BUNDLE_BYTES_MAX) {
        return -EFBIG;
    }
    return al_io_sealed_memfd("airlock-job", iov, w.n_iov);
}

ssize_t al_bundle_check_fd(int fd)
{
    const int want = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int seals = fcntl(fd, F_GET_SEALS); /* fails for everything that is not a memfd */
    struct stat st;
    if (seals < 0 || (seals & want) != want || fstat(fd, &st) < 0) {
        return -EBADF;
    }
    if (st.st_size <= 0 || st.st_size > (off_t)AL_BUNDLE_BYTES_MAX) {
        return -EFBIG;
    }
    return st.st_size;
}

static const uint8_t *take(struct al_bundle_reader *r, uint64_t n)
{
    if (n > r->left) {
        return NULL;
    }
    const uint8_t *at = r->data;
    r->data += n;
    r->left -= n;
    return at;
}

/* n bytes that hold no NUL, and one behind them. */
static const uint8_t *take_text(struct al_bundle_reader *r, uint64_t n)
{
    if (n >= r->left || memchr(r->data, '\0', n) || r->data[n] != '\0') {
        return NULL;
    }
    return take(r, n + 1);
}

int al_bundle_next(struct al_bundle_reader *r, struct al_bundle_item *ret)
{
    if (r->left == 0) {
        return 0;
    }
    struct header h;
    const uint8_t *at = take(r, sizeof h);
    if (!at) {
        return -EBADMSG;
    }
    memcpy(&h, at, sizeof h);
    bool text = is_text(h.type);
    if (h.type < AL_BUNDLE_CODE || h.type > AL_BUNDLE_ARTIFACT || h.terminated != text) {
        return -EBADMSG;
    }
    const uint8_t *name = take_text(r, h.name_len);
    const uint8_t *data = !name ? NULL : text ? take_text(r, h.data_len) : take(r, h.data_len);
    if (!data) {
        return -EBADMSG;
    }
    *ret = (struct al_bundle_item){.type = (enum al_bundle_type)h.type,
                                   .mode = h.mode & 0777,
                                   .name = (const char *)name,
                                   .data = data,
                                   .len = h.data_len};
    return 1;
}
