#include "cache/fingerprint.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/api/backend.h"
#include "cache/digest.h"

/* Part of the encoding: never renumber. */
enum tag {
    TAG_VERSION = 1,
    TAG_BACKEND,
    TAG_BACKEND_VERSION,
    TAG_TENANT,
    TAG_LANGUAGE,
    TAG_LANGUAGE_VERSION,
    TAG_CODE,
    TAG_ARGS,
    TAG_STDIN,
    TAG_STDIN_OPEN,
    TAG_INPUTS,
    TAG_FILES,
    TAG_ENV,
    TAG_WORKDIR,
    TAG_ARTIFACTS,
    TAG_NETWORK,
    TAG_HOSTS,
    TAG_CPU_MS,
    TAG_MEMORY_MB,
    TAG_PIDS,
    TAG_FILE_SIZE_MB,
    TAG_OPEN_FILES,
    TAG_DISK_MB,
    TAG_ITEM,
    TAG_MODE,
};

/* A tag's byte and a number: a value, a count, or the length of the bytes that follow. */
static void add_number(struct al_cache_digest *d, enum tag tag, uint64_t number)
{
    uint8_t head[9] = {(uint8_t)tag};
    uint64_t little = htole64(number);
    memcpy(head + 1, &little, sizeof little);
    al_cache_digest_add(d, head, sizeof head);
}

static void add_bytes(struct al_cache_digest *d, enum tag tag, struct al_bytes bytes)
{
    add_number(d, tag, bytes.len);
    al_cache_digest_add(d, bytes.data, bytes.len);
}

static void add_text(struct al_cache_digest *d, enum tag tag, const char *text)
{
    add_bytes(d, tag, (struct al_bytes){(const uint8_t *)text, strlen(text)});
}

static void add_texts(struct al_cache_digest *d, enum tag tag, const char *const *texts, size_t n)
{
    add_number(d, tag, n);
    for (size_t i = 0; i < n; i++) {
        add_text(d, TAG_ITEM, texts[i]);
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_files(const void *a, const void *b)
{
    const struct al_file *const *left = a;
    const struct al_file *const *right = b;
    return strcmp((*left)->path, (*right)->path);
}

static int compare_env(const void *a, const void *b)
{
    const struct al_env *const *left = a;
    const struct al_env *const *right = b;
    int by_name = strcmp((*left)->name, (*right)->name);
    return by_name ? by_name : strcmp((*left)->value, (*right)->value);
}

/* Sorted pointers to the n items of an array; the caller frees them. NULL when memory is out. */
static const void **sort_items(const void *items, size_t n, size_t size,
                               int (*compare)(const void *, const void *))
{
    const void **sorted = calloc(n + 1, sizeof *sorted);
    for (size_t i = 0; sorted && i < n; i++) {
        sorted[i] = (const char *)items + i * size;
    }
    if (sorted && n > 1) {
        qsort(sorted, n, sizeof *sorted, compare);
    }
    return sorted;
}

static int add_sorted_texts(struct al_cache_digest *d, enum tag tag, const char *const *texts,
                            size_t n)
{
    const char **sorted = calloc(n + 1, sizeof *sorted);
    if (!sorted) {
        return -ENOMEM;
    }
    if (n > 0) {
        memcpy(sorted, texts, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, compare_texts);
    }
    add_texts(d, tag, sorted, n);
    free(sorted);
    return 0;
}

static int add_files(struct al_cache_digest *d, const struct al_job_spec *spec)
{
    const void **sorted =
        sort_items(spec->files, spec->n_files, sizeof *spec->files, compare_files);
    if (!sorted) {
        return -ENOMEM;
    }
    add_number(d, TAG_FILES, spec->n_files);
    for (size_t i = 0; i < spec->n_files; i++) {
        const struct al_file *file = sorted[i];
        add_text(d, TAG_ITEM, file->path);
        add_number(d, TAG_MODE, file->mode);
        add_bytes(d, TAG_ITEM, file->content);
    }
    free(sorted);
    return 0;
}

static int add_env(struct al_cache_digest *d, const struct al_job_spec *spec)
{
    const void **sorted = sort_items(spec->env, spec->n_env, sizeof *spec->env, compare_env);
    if (!sorted) {
        return -ENOMEM;
    }
    add_number(d, TAG_ENV, spec->n_env);
    for (size_t i = 0; i < spec->n_env; i++) {
        const struct al_env *env = sorted[i];
        add_text(d, TAG_ITEM, env->name);
        add_text(d, TAG_ITEM, env->value);
    }
    free(sorted);
    return 0;
}

static void add_program(struct al_cache_digest *d, const struct al_job_spec *spec)
{
    add_text(d, TAG_LANGUAGE, spec->language->name);
    add_text(d, TAG_LANGUAGE_VERSION, spec->language->version);
    add_bytes(d, TAG_CODE, spec->code);
    add_texts(d, TAG_ARGS, spec->args, spec->n_args);
    add_bytes(d, TAG_STDIN, spec->stdin_bytes);
    add_number(d, TAG_STDIN_OPEN, spec->stdin_open);
    if (spec->inputs_json) { /* none is not the same as any text */
        add_text(d, TAG_INPUTS, spec->inputs_json);
    }
    add_text(d, TAG_WORKDIR, spec->workdir);
}

static void add_limits(struct al_cache_digest *d, const struct al_job_spec *spec)
{
    add_number(d, TAG_NETWORK, spec->network);
    add_number(d, TAG_CPU_MS, (uint64_t)spec->quotas.cpu_ms);
    add_number(d, TAG_MEMORY_MB, spec->quotas.memory_mb);
    add_number(d, TAG_PIDS, spec->quotas.pids);
    add_number(d, TAG_FILE_SIZE_MB, spec->quotas.file_size_mb);
    add_number(d, TAG_OPEN_FILES, spec->quotas.open_files);
    add_number(d, TAG_DISK_MB, spec->quotas.disk_mb);
}

int al_fingerprint(const struct al_job_spec *spec, const char *backend, const char *backend_version,
                   uint8_t ret[AL_FINGERPRINT_LEN])
{
    struct al_cache_digest d;
    uint8_t sum[AL_DIGEST_LEN];
    al_cache_digest_begin(&d);
    add_number(&d, TAG_VERSION, AL_FINGERPRINT_VERSION);
    add_text(&d, TAG_BACKEND, backend);
    add_text(&d, TAG_BACKEND_VERSION, backend_version);
    add_text(&d, TAG_TENANT, spec->tenant_id);
    add_program(&d, spec);
    add_limits(&d, spec);
    int r = add_files(&d, spec) ?: add_env(&d, spec) ?:
            add_sorted_texts(&d, TAG_ARTIFACTS, spec->artifacts, spec->n_artifacts) ?:
            add_sorted_texts(&d, TAG_HOSTS, spec->hosts, spec->n_hosts);
    int ended = al_cache_digest_end(&d, sum);
    r = r ? r : ended;
    if (r == 0) {
        memcpy(ret, sum, sizeof sum);
    }
    return r;
}
