#include "backends/docker/job.h"

#include <errno.h>
#include <string.h>

static int put_string(uint8_t *to, size_t size, size_t *len, const char *text)
{
    size_t n = strlen(text) + 1;
    if (n > size - *len) {
        return -EFBIG;
    }
    memcpy(to + *len, text, n);
    *len += n;
    return 0;
}

static int put_words(uint8_t *to, size_t size, size_t *len, const char *const *words, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = put_string(to, size, len, words[i]);
    }
    return rc;
}

ssize_t al_container_job_encode(const struct al_container_plan *plan, uint8_t *to, size_t size)
{
    const struct al_container_job *job = &plan->job;
    size_t len = sizeof *job;
    if (size < len || job->n_compile + job->n_argv > AL_CONTAINER_WORDS_MAX) {
        return -EFBIG;
    }
    memcpy(to, job, sizeof *job);
    int rc = put_string(to, size, &len, plan->workdir);
    rc = rc < 0 ? rc : put_string(to, size, &len, plan->code_file);
    rc = rc < 0 ? rc : put_words(to, size, &len, plan->compile, job->n_compile);
    rc = rc < 0 ? rc : put_words(to, size, &len, plan->argv, job->n_argv);
    return rc < 0 ? rc : (ssize_t)len;
}

static const char *take_string(const uint8_t **data, size_t *left)
{
    const char *text = (const char *)*data;
    const uint8_t *end = *left > 0 ? memchr(*data, '\0', *left) : NULL;
    if (!end) {
        return NULL;
    }
    *left -= (size_t)(end + 1 - *data);
    *data = end + 1;
    return text;
}

static int take_words(const uint8_t **data, size_t *left, size_t n, const char **ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = take_string(data, left);
        if (!ret[i]) {
            return -EBADMSG;
        }
    }
    ret[n] = NULL;
    return 0;
}

int al_container_job_decode(const uint8_t *data, size_t n, struct al_container_plan *ret)
{
    struct al_container_job *job = &ret->job;
    if (n < sizeof *job) {
        return -EBADMSG;
    }
    memcpy(job, data, sizeof *job);
    data += sizeof *job;
    n -= sizeof *job;
    if (job->version != AL_CONTAINER_VERSION || job->n_argv == 0 ||
        job->n_argv > AL_CONTAINER_WORDS_MAX || job->n_compile > AL_CONTAINER_WORDS_MAX)
    {
        return -EBADMSG;
    }
    ret->workdir = take_string(&data, &n);
    ret->code_file = take_string(&data, &n);
    if (!ret->workdir || !ret->code_file || ret->workdir[0] != '/' ||
        take_words(&data, &n, job->n_compile, ret->compile) < 0 ||
        take_words(&data, &n, job->n_argv, ret->argv) < 0 || n > 0)
    {
        return -EBADMSG;
    }
    return 0;
}
