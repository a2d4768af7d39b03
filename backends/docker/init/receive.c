/* The job, as it comes; see main.c. */
#include "backends/docker/init/init.h"

#include <errno.h>
#include <linux/filter.h>

static int take_job(struct al_init *i, const struct al_frame *f, struct al_err *err)
{
    al_buf_init(&i->job_text, AL_FRAME_WHOLE_MAX);
    if (al_buf_append(&i->job_text, f->data, f->len) < 0 ||
        al_container_job_decode(i->job_text.data, f->len, &i->plan) < 0)
    {
        return al_err_set(err, AL_ERR_INTERNAL, "a malformed job");
    }
    return al_items_begin(&i->items, &i->plan, err);
}

static int take_filter(struct al_init *i, const struct al_frame *f, struct al_err *err)
{
    al_buf_init(&i->filter_text, AL_FRAME_WHOLE_MAX);
    if (al_buf_append(&i->filter_text, f->data, f->len) < 0) {
        return al_err_errno(err, ENOMEM, "filter");
    }
    i->filter = (struct sock_fprog){.len = (unsigned short)(f->len / sizeof(struct sock_filter)),
                                    .filter = (struct sock_filter *)(void *)i->filter_text.data};
    return 0;
}

static int check_layers(struct al_init *i, struct al_err *err)
{
    i->exit.layers = al_figures_layers(&i->figures, &i->plan.job);
    uint32_t lacks = i->plan.job.require & ~i->exit.layers;
    return lacks == 0
               ? 0
               : al_err_set(err, AL_ERR_FAILED_PRECONDITION, "the container lacks the layer %s",
                            al_layer_name((unsigned)__builtin_ctz(lacks)));
}

static int go(struct al_init *i, struct al_err *err)
{
    int rc = al_items_end(&i->items, err);
    rc = rc < 0 ? rc : check_layers(i, err);
    if (rc == 0) {
        i->deadline_ns = 0;
        al_init_start_stage(i, i->plan.job.n_compile > 0 ? PHASE_COMPILE : PHASE_RUN);
    }
    return rc;
}

void al_init_receive(struct al_init *i, const struct al_frame *f)
{
    struct al_err err = {0};
    bool begun = i->items.plan != NULL;
    int rc = -EPROTO;
    if (f->type == AL_FRAME_JOB && !begun) {
        rc = take_job(i, f, &err);
    } else if (f->type == AL_FRAME_FILTER && begun && i->filter.len == 0) {
        rc = take_filter(i, f, &err);
    } else if (f->type == AL_FRAME_ITEM && begun) {
        rc = al_items_item(&i->items, f->data, f->len, &err);
    } else if (f->type == AL_FRAME_DATA && begun) {
        rc = al_items_data(&i->items, f->data, f->len, &err);
    } else if (f->type == AL_FRAME_GO && begun && i->filter.len > 0) {
        rc = go(i, &err);
    }
    if (rc < 0) {
        al_init_fail(i, err.text[0] ? err.text : "frames of a job in the wrong order");
    }
}
