#include "backends/process/artifact_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"

void al_artifact_reader_init(struct al_artifact_reader *r, struct al_artifacts *to,
                             uint64_t bytes_max)
{
    *r = (struct al_artifact_reader){.to = to, .limit = bytes_max};
}

static void begin(struct al_artifact_reader *r, enum al_artifact_reader_state state)
{
    r->state = state;
    r->got = 0;
}

static int take_head(struct al_artifact_reader *r)
{
    const struct al_artifact_frame *h = &r->head;
    if (h->type == AL_ARTIFACT_FRAME_END) {
        if (h->mode != 0 || h->path_len != 0 || h->truncated != 0 || h->len > UINT32_MAX) {
            return -EBADMSG;
        }
        r->to->omitted = (uint32_t)h->len;
        begin(r, AL_ARTIFACT_READER_ENDED);
        return 0;
    }
    if (h->type != AL_ARTIFACT_FRAME_FILE || h->mode > 0777 || h->truncated > 1 ||
        h->path_len == 0 || h->path_len >= AL_ARTIFACT_PATH_MAX || h->len > r->limit ||
        r->to->n == AL_ARTIFACTS_MAX)
    {
        return -EBADMSG;
    }
    r->file = (struct al_artifact){.path = malloc(h->path_len + 1),
                                   .data = h->len > 0 ? malloc(h->len) : NULL,
                                   .len = h->len,
                                   .mode = h->mode,
                                   .truncated = h->truncated};
    begin(r, AL_ARTIFACT_READER_PATH);
    return !r->file.path || (h->len > 0 && !r->file.data) ? -ENOMEM : 0;
}

static int take_path(struct al_artifact_reader *r)
{
    const struct al_artifacts *before = r->to;
    char *path = r->file.path;
    path[r->head.path_len] = '\0';
    if (!al_artifact_path_is_valid(path, r->head.path_len) ||
        (before->n > 0 && strcmp(before->items[before->n - 1].path, path) >= 0))
    {
        return -EBADMSG;
    }
    begin(r, AL_ARTIFACT_READER_CONTENT);
    return 0;
}

static int take_file(struct al_artifact_reader *r)
{
    r->limit -= r->file.len;
    int rc = al_artifacts_add(r->to, r->file);
    r->file = (struct al_artifact){0};
    begin(r, AL_ARTIFACT_READER_HEAD);
    return rc;
}

/* Where the bytes of the current part go, and how many it has. */
static uint8_t *current_part(struct al_artifact_reader *r, size_t *ret_size)
{
    switch (r->state) {
    case AL_ARTIFACT_READER_HEAD:
        *ret_size = sizeof r->head;
        return (uint8_t *)&r->head;
    case AL_ARTIFACT_READER_PATH:
        *ret_size = r->head.path_len;
        return (uint8_t *)r->file.path;
    default:
        *ret_size = r->file.len;
        return r->file.data;
    }
}

static int take_part(struct al_artifact_reader *r)
{
    switch (r->state) {
    case AL_ARTIFACT_READER_HEAD:
        return take_head(r);
    case AL_ARTIFACT_READER_PATH:
        return take_path(r);
    default:
        return take_file(r);
    }
}

/* Puts bytes into the current part; how many. */
static size_t fill(struct al_artifact_reader *r, const uint8_t *data, size_t n)
{
    size_t size;
    uint8_t *to = current_part(r, &size);
    size_t take = n < size - r->got ? n : size - r->got;
    if (take > 0) {
        memcpy(to + r->got, data, take);
    }
    r->got += take;
    return take;
}

static bool part_is_full(struct al_artifact_reader *r)
{
    size_t size;
    current_part(r, &size);
    return r->got == size;
}

static int feed(struct al_artifact_reader *r, const uint8_t *data, size_t n)
{
    while (r->state < AL_ARTIFACT_READER_ENDED) {
        size_t taken = fill(r, data, n);
        data += taken;
        n -= taken;
        if (!part_is_full(r)) {
            return 0;
        }
        int rc = take_part(r);
        if (rc < 0) {
            return rc;
        }
    }
    return r->state == AL_ARTIFACT_READER_ENDED && n == 0 ? 0 : -EBADMSG;
}

int al_artifact_reader_feed(struct al_artifact_reader *r, const uint8_t *data, size_t n)
{
    int rc = feed(r, data, n);
    if (rc < 0) {
        r->state = AL_ARTIFACT_READER_FAILED;
    }
    return rc;
}

void al_artifact_reader_drain(struct al_artifact_reader *r, int *fd)
{
    uint8_t data[16 << 10];
    for (;;) {
        ssize_t got = TEMP_FAILURE_RETRY(read(*fd, data, sizeof data));
        if (got < 0 && errno == EAGAIN) {
            return;
        }
        if (got <= 0 || al_artifact_reader_feed(r, data, (size_t)got) < 0) {
            al_close_fd(fd);
            return;
        }
    }
}

void al_artifact_reader_finish(struct al_artifact_reader *r)
{
    free(r->file.path);
    free(r->file.data);
    r->file = (struct al_artifact){0};
    if (r->state != AL_ARTIFACT_READER_ENDED && r->to->omitted < UINT32_MAX) {
        r->to->omitted++;
    }
    r->state = AL_ARTIFACT_READER_FAILED;
}
