#include "backends/docker/mux.h"

#include <errno.h>
#include <string.h>

static int take_head(struct al_mux *m)
{
    const uint8_t *h = m->head;
    if (h[0] < AL_MUX_STDOUT || h[0] > AL_MUX_SYSTEM || h[1] != 0 || h[2] != 0 || h[3] != 0) {
        return -EBADMSG;
    }
    m->left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
    if (m->left == 0) {
        m->head_got = 0;
    }
    return 0;
}

int al_mux_next(struct al_mux *m, const uint8_t *data, size_t n, size_t *ret_used,
                struct al_mux_piece *ret)
{
    size_t used = 0;
    while (m->left == 0 && used < n) {
        m->head[m->head_got++] = data[used++];
        if (m->head_got == sizeof m->head) {
            int rc = take_head(m);
            if (rc < 0) {
                *ret_used = used;
                return rc;
            }
        }
    }
    size_t take = n - used < m->left ? n - used : m->left;
    *ret_used = used + take;
    if (take == 0) {
        return 0;
    }
    *ret = (struct al_mux_piece){
        .stream = (enum al_mux_stream)m->head[0], .data = data + used, .len = take};
    m->left -= (uint32_t)take;
    m->head_got = m->left > 0 ? m->head_got : 0;
    return 1;
}
