#include "backends/docker/sender.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>

#include "backends/docker/frame.h"
#include "backends/launcher/bundle.h"

int al_sender_begin(struct al_sender *s, const struct al_job_spec *spec,
                    const struct al_container_plan *plan, const struct sock_fprog *filter,
                    struct al_buf *to)
{
    uint8_t data[AL_FRAME_WHOLE_MAX];
    ssize_t n = al_container_job_encode(plan, data, sizeof data);
    *s = (struct al_sender){.spec = spec};
    size_t filter_bytes = filter->len * sizeof *filter->filter;
    if (n < 0 || filter_bytes > AL_FRAME_WHOLE_MAX) {
        return -EFBIG;
    }
    int rc = al_frame_put(to, AL_FRAME_JOB, data, (size_t)n);
    return rc < 0 ? rc : al_frame_put(to, AL_FRAME_FILTER, filter->filter, filter_bytes);
}

static struct al_bundle_item text_item(enum al_bundle_type type, const char *name, const char *text)
{
    return (struct al_bundle_item){
        .type = type, .name = name, .data = (const uint8_t *)text, .len = strlen(text)};
}

/* Item number i of the job; false: there is none. */
static bool get_item(const struct al_job_spec *spec, size_t i, struct al_bundle_item *ret)
{
    if (i == 0) {
        *ret = (struct al_bundle_item){.type = AL_BUNDLE_CODE,
                                       .mode = 0644,
                                       .name = "",
                                       .data = spec->code.data,
                                       .len = spec->code.len};
        return true;
    }
    if ((i -= 1) < spec->n_files) {
        const struct al_file *f = &spec->files[i];
        *ret = (struct al_bundle_item){.type = AL_BUNDLE_FILE,
                                       .mode = f->mode,
                                       .name = f->path,
                                       .data = f->content.data,
                                       .len = f->content.len};
        return true;
    }
    i -= spec->n_files;
    if (spec->inputs_json && i-- == 0) {
        *ret = text_item(AL_BUNDLE_INPUTS, "", spec->inputs_json);
        return true;
    }
    if (i < spec->n_env) {
        *ret = text_item(AL_BUNDLE_ENV, spec->env[i].name, spec->env[i].value);
        return true;
    }
    if ((i -= spec->n_env) < spec->n_args) {
        *ret = text_item(AL_BUNDLE_ARG, "", spec->args[i]);
        return true;
    }
    if ((i -= spec->n_args) < spec->n_artifacts) {
        *ret = text_item(AL_BUNDLE_ARTIFACT, "", spec->artifacts[i]);
        return true;
    }
    return false;
}

static int put_head(const struct al_bundle_item *item, struct al_buf *to)
{
    uint8_t data[AL_FRAME_WHOLE_MAX];
    const struct al_frame_item head = {.type = item->type, .mode = item->mode};
    size_t n = strlen(item->name);
    if (n > sizeof data - sizeof head) {
        return -EFBIG;
    }
    memcpy(data, &head, sizeof head);
    memcpy(data + sizeof head, item->name, n);
    return al_frame_put(to, AL_FRAME_ITEM, data, sizeof head + n);
}

int al_sender_fill(struct al_sender *s, size_t enough, struct al_buf *to)
{
    int rc = 0;
    while (rc == 0 && !s->done && to->len < enough) {
        struct al_bundle_item item;
        if (!get_item(s->spec, s->item, &item)) {
            s->done = true;
            return al_frame_put(to, AL_FRAME_GO, NULL, 0);
        }
        if (!s->in_item) {
            rc = put_head(&item, to);
            s->in_item = true;
            s->sent = 0;
        }
        size_t left = item.len - s->sent;
        size_t n = left < AL_FRAME_PIECE_MAX ? left : AL_FRAME_PIECE_MAX;
        if (n > 0 && rc == 0) {
            rc = al_frame_put(to, AL_FRAME_DATA, item.data + s->sent, n);
            s->sent += n;
        }
        if (s->sent == item.len) {
            s->in_item = false;
            s->item++;
        }
    }
    return rc;
}
