#include "backends/docker/frame.h"

#include <errno.h>
#include <string.h>

/* Which frames there are, how long they may be, and whether they are content. */
static const struct rule {
    bool up, content;
    uint32_t min, max;
} rules[AL_FRAME_TYPES] = {
    [AL_FRAME_JOB] = {.min = 1, .max = AL_FRAME_WHOLE_MAX},
    [AL_FRAME_FILTER] = {.min = 8, .max = AL_FRAME_WHOLE_MAX},
    [AL_FRAME_ITEM] = {.min = sizeof(struct al_frame_item), .max = AL_FRAME_WHOLE_MAX},
    [AL_FRAME_DATA] = {.content = true, .min = 1, .max = AL_FRAME_PIECE_MAX},
    [AL_FRAME_GO] = {.max = 0},
    [AL_FRAME_STDIN] = {.content = true, .min = 1, .max = AL_FRAME_PIECE_MAX},
    [AL_FRAME_STDIN_END] = {.max = 0},
    [AL_FRAME_SIGNAL] = {.min = 1, .max = 64},
    [AL_FRAME_RESIZE] = {.min = 4, .max = 4},
    [AL_FRAME_KILL] = {.max = 0},
    [AL_FRAME_ROOM_MADE] = {.max = 0},
    [AL_FRAME_CONTROL] = {.up = true, .min = 1, .max = 4096},
    [AL_FRAME_STDOUT] = {.up = true, .content = true, .min = 1, .max = AL_FRAME_PIECE_MAX},
    [AL_FRAME_STDERR] = {.up = true, .content = true, .min = 1, .max = AL_FRAME_PIECE_MAX},
    [AL_FRAME_COMPILE] = {.up = true, .content = true, .min = 1, .max = AL_FRAME_PIECE_MAX},
    [AL_FRAME_ARTIFACTS] = {.up = true, .content = true, .min = 1, .max = AL_FRAME_PIECE_MAX},
    [AL_FRAME_TAKEN] = {.up = true, .min = 4, .max = 4},
    [AL_FRAME_STDIN_CLOSED] = {.up = true, .max = 0},
    [AL_FRAME_ROOM] = {.up = true, .max = 0},
    [AL_FRAME_END] = {.up = true, .max = 0},
};

void al_frame_reader_init(struct al_frame_reader *r, bool up)
{
    r->up = up;
    r->head_got = 0;
    r->left = 0;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool head_is_good(const struct al_frame_reader *r)
{
    const struct al_frame_head *h = &r->head;
    if (h->type < AL_FRAME_JOB || h->type > AL_FRAME_END) {
        return false;
    }
    const struct rule *rule = &rules[h->type];
    return rule->up == r->up && h->len >= rule->min && h->len <= rule->max;
}

static size_t take_head(struct al_frame_reader *r, const uint8_t *data, size_t n)
{
    size_t take = smaller(n, sizeof r->head - r->head_got);
    if (take > 0) {
        memcpy((uint8_t *)&r->head + r->head_got, data, take);
    }
    r->head_got += take;
    r->left = r->head.len;
    return take;
}

int al_frame_next(struct al_frame_reader *r, const uint8_t *data, size_t n, size_t *ret_used,
                  struct al_frame *ret)
{
    size_t used = 0;
    if (r->head_got < sizeof r->head) {
        used = take_head(r, data, n);
        *ret_used = used;
        if (r->head_got < sizeof r->head) {
            return 0;
        }
        if (!head_is_good(r)) {
            return -EBADMSG;
        }
    }
    size_t take = smaller(n - used, r->left);
    bool content = rules[r->head.type].content;
    if (!content && take > 0) {
        memcpy(r->whole + (r->head.len - r->left), data + used, take);
    }
    r->left -= (uint32_t)take;
    *ret_used = used + take;
    if (content ? take == 0 : r->left > 0) {
        return 0;
    }
    *ret = (struct al_frame){.type = (enum al_frame_type)r->head.type,
                             .data = content ? data + used : r->whole,
                             .len = content ? take : r->head.len};
    r->head_got = r->left > 0 ? r->head_got : 0;
    return 1;
}

int al_frame_put(struct al_buf *to, enum al_frame_type type, const void *data, size_t n)
{
    const struct al_frame_head head = {.type = type, .len = (uint32_t)n};
    uint8_t *at = al_buf_reserve(to, sizeof head + n);
    if (!at) {
        return -ENOBUFS;
    }
    memcpy(at, &head, sizeof head);
    if (n > 0) {
        memcpy(at + sizeof head, data, n);
    }
    to->len += sizeof head + n;
    return 0;
}
