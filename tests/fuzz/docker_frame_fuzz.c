/*
 * Any bytes as what comes from an attached container: docker's frames with those of our init
 * inside. The first byte says in which pieces they come. Nothing that is read lies outside of what
 * came, no bound is passed, and every way to cut the bytes gives the same.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/docker/frame.h"
#include "backends/docker/job.h"
#include "backends/docker/mux.h"
#include "backends/launcher/message.h"
#include "tests/fuzz/fuzz.h"

struct digest {
    uint64_t hash;
    size_t bytes[AL_FRAME_TYPES];
    int rc;
};

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void add_byte(struct digest *d, uint8_t byte)
{
    d->hash = (d->hash ^ byte) * UINT64_C(1099511628211);
}

static void take_frame(struct digest *d, const struct al_frame *f)
{
    struct al_msg_exit exit;
    struct al_container_plan plan;
    require(f->type >= AL_FRAME_JOB && f->type <= AL_FRAME_END);
    require(f->len <= AL_FRAME_PIECE_MAX);
    for (size_t i = 0; i < f->len; i++) {
        add_byte(d, f->data[i]);
    }
    d->bytes[f->type] += f->len;
    if (f->type == AL_FRAME_CONTROL && al_msg_decode_exit(f->data, f->len, &exit) == 0) {
        require(memchr(exit.error, '\0', sizeof exit.error) != NULL);
        add_byte(d, (uint8_t)exit.limit);
    }
    if (f->type == AL_FRAME_JOB && al_container_job_decode(f->data, f->len, &plan) == 0) {
        require(plan.job.n_argv <= AL_CONTAINER_WORDS_MAX && !plan.argv[plan.job.n_argv]);
        add_byte(d, (uint8_t)plan.argv[0][0]);
    }
}

static int take_piece(struct digest *d, struct al_frame_reader *r, const struct al_mux_piece *piece)
{
    for (size_t at = 0; at < piece->len;) {
        struct al_frame f;
        size_t used = 0;
        int rc = al_frame_next(r, piece->data + at, piece->len - at, &used, &f);
        require(used <= piece->len - at);
        if (rc < 0) {
            require(rc == -EBADMSG);
            return rc;
        }
        require(used > 0);
        at += used;
        if (rc > 0) {
            take_frame(d, &f);
        }
    }
    return 0;
}

static struct digest read_in_pieces(const uint8_t *data, size_t len, size_t size, bool up)
{
    static struct al_frame_reader r;
    struct al_mux m = {.left = 0};
    struct digest d = {.hash = UINT64_C(14695981039346656037)};
    al_frame_reader_init(&r, up);
    for (size_t at = 0; at < len && d.rc == 0;) {
        size_t end = len - at < size ? len : at + size;
        while (at < end && d.rc == 0) {
            struct al_mux_piece piece;
            size_t used = 0;
            int rc = al_mux_next(&m, data + at, end - at, &used, &piece);
            require(used <= end - at);
            if (rc > 0) {
                require(piece.data >= data && piece.data + piece.len <= data + end);
            }
            at += used;
            d.rc = rc < 0                                    ? rc
                   : rc > 0 && piece.stream == AL_MUX_STDOUT ? take_piece(&d, &r, &piece)
                                                             : 0;
        }
    }
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t size = len > 0 ? (size_t)(data[0] & 0x7f) + 1 : 1;
    bool up = len > 0 && data[0] < 0x80;
    data += len > 0;
    len -= len > 0;
    struct digest whole = read_in_pieces(data, len, len + 1, up);
    struct digest pieces = read_in_pieces(data, len, size, up);
    require(memcmp(&whole, &pieces, sizeof whole) == 0);
    return 0;
}
