/*
 * Theory of operation. One poll loop a job. What comes is read only once what came before was
 * taken: what the sink did not take stays where it is, nothing more is read, and by way of the
 * daemon that stops the program. Once the job is to die, init is told, which answers with the
 * figures; whoever waits for a reader stops waiting. Time is kept by init; what is kept here are
 * the times after which init, or the daemon, cannot be believed to do it any more.
 */
#include "backends/docker/pump.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/process/outcome.h"

#define OUT_MAX       (1u << 20)
#define OUT_ENOUGH    (192u << 10)
#define START_MS      60000 /* for a container to say that its program runs */
#define SILENCE_MS    15000 /* behind the wall limit; artifacts take up to 5 s */
#define KILL_MS       1000  /* for init to do it itself */
#define READER_MIN_MS 5000  /* as in backends/process */
#define STDIN_PIECE   (16u << 10)

int al_pump_init(struct al_pump *p, const struct al_job_spec *spec,
                 const struct al_container_plan *plan, const struct sock_fprog *filter,
                 struct al_ctl *ctl, struct al_sink *sink, struct al_result *result)
{
    *p = (struct al_pump){.spec = spec,
                          .ctl = ctl,
                          .sink = sink,
                          .result = result,
                          .stdin_window = AL_FRAME_STDIN_WINDOW,
                          .in = malloc(AL_PUMP_IN_BYTES)};
    al_buf_init(&p->out, OUT_MAX);
    al_frame_reader_init(&p->reader, true);
    al_artifact_reader_init(&p->artifacts, &result->artifacts, spec->quotas.artifact_bytes);
    return p->in ? al_sender_begin(&p->sender, spec, plan, filter, &p->out) : -ENOMEM;
}

void al_pump_finish(struct al_pump *p)
{
    al_artifact_reader_finish(&p->artifacts);
    al_ctl_stdin_closed(p->ctl);
    al_hijack_close(p->hijack);
    al_buf_finish(&p->out);
    free(p->in);
}

/* --- down --- */

static void tell(struct al_pump *p, enum al_frame_type type, const void *data, size_t n)
{
    if (al_frame_put(&p->out, type, data, n) < 0) {
        p->dying = true; /* nobody reads: the times below end it */
    }
}

static void kill_job(struct al_pump *p)
{
    if (p->killed_ms == 0 && !p->exited) {
        p->killed_ms = al_now_ms();
        tell(p, AL_FRAME_KILL, NULL, 0);
    }
    p->dying = true;
}

static void end_stdin(struct al_pump *p, bool say)
{
    if (say && !p->stdin_ended) {
        tell(p, AL_FRAME_STDIN_END, NULL, 0);
    }
    p->stdin_ended = true;
}

/* Of the request's stdin, then of the ctl's, as much as init has room for. */
static void send_stdin(struct al_pump *p)
{
    uint8_t buf[STDIN_PIECE];
    const struct al_bytes *fixed = &p->spec->stdin_bytes;
    while (p->sender.done && !p->stdin_ended && p->stdin_window > 0 && p->out.len < OUT_ENOUGH) {
        size_t most = p->stdin_window < sizeof buf ? p->stdin_window : sizeof buf;
        size_t left = fixed->len - p->stdin_sent;
        bool eof = !p->spec->stdin_open;
        size_t n = left < most ? left : most;
        if (left > 0) {
            tell(p, AL_FRAME_STDIN, fixed->data + p->stdin_sent, n);
            p->stdin_sent += n;
        } else if (p->spec->stdin_open && (n = al_ctl_stdin_peek(p->ctl, buf, most, &eof)) > 0) {
            tell(p, AL_FRAME_STDIN, buf, n);
            al_ctl_stdin_drop(p->ctl, n);
        }
        p->stdin_window -= n;
        if (n == 0) {
            if (eof) {
                end_stdin(p, true);
            }
            return;
        }
    }
}

/* Nobody listens any more; what was said until then may still come. */
static void give_up_sending(struct al_pump *p)
{
    p->sender.done = true;
    p->stdin_ended = true;
    p->out.len = 0;
}

int al_pump_send(struct al_pump *p)
{
    int rc = al_sender_fill(&p->sender, OUT_ENOUGH, &p->out);
    if (rc < 0) {
        return rc;
    }
    send_stdin(p);
    size_t at = 0;
    while (at < p->out.len) {
        ssize_t put = al_hijack_write(p->hijack, p->out.data + at, p->out.len - at);
        if (put < 0 && put != -EAGAIN) {
            give_up_sending(p);
            return 0;
        }
        if (put < 0) {
            break;
        }
        at += (size_t)put;
    }
    al_buf_consume(&p->out, at);
    return 0;
}

static void take_ctl(struct al_pump *p)
{
    al_ctl_clear(p->ctl);
    if (!p->cancelled && !p->over_output && al_ctl_cancelled(p->ctl)) {
        p->cancelled = true;
        kill_job(p);
    }
    for (int signo; (signo = al_ctl_take_signal(p->ctl)) != 0;) {
        uint8_t data[16];
        const struct al_msg_signal m = {.signo = signo};
        tell(p, AL_FRAME_SIGNAL, data, al_msg_encode_signal(&m, data));
    }
    struct al_terminal_size size = al_ctl_take_size(p->ctl);
    if (size.rows > 0 && p->spec->terminal.rows > 0) {
        tell(p, AL_FRAME_RESIZE, &size, sizeof size);
    }
}

/* --- up --- */

static enum al_channel channel_of(const struct al_frame *f)
{
    return f->type == AL_FRAME_STDOUT ? AL_STDOUT : AL_STDERR;
}

/* Cuts what goes beyond output_bytes; from then on the job is dying and the rest is dropped. */
static size_t within_limit(struct al_pump *p, enum al_channel channel, size_t n)
{
    uint64_t max = p->spec->quotas.output_bytes;
    uint64_t *total = &p->total[channel];
    if (max == 0 || n <= max - *total) {
        *total += n;
        return n;
    }
    size_t keep = (size_t)(max - *total);
    *total = max;
    p->truncated[channel] = true;
    p->over_output = true;
    kill_job(p);
    return keep;
}

static void offer(struct al_pump *p)
{
    struct al_frame *f = &p->pending;
    if (f->len > 0) {
        size_t taken = al_sink_append(p->sink, channel_of(f), f->data, f->len);
        f->data += taken;
        f->len -= taken;
        p->moved_ms = taken > 0 ? al_now_ms() : p->moved_ms;
    }
    if (f->len > 0 && p->dying) {
        p->truncated[channel_of(f)] = true;
        f->len = 0;
    }
}

static int take_control(struct al_pump *p, const uint8_t *data, size_t len)
{
    struct al_msg_compiled compiled;
    struct al_msg_usage usage;
    if (p->exited) {
        return -EBADMSG;
    }
    if (!p->started && al_msg_decode_empty(AL_MSG_STARTED, data, len) == 0) {
        p->started = true;
        p->started_ms = p->moved_ms = al_now_ms();
        al_sink_started(p->sink);
    } else if (al_msg_decode_usage(data, len, &usage) == 0) {
        al_sink_used(p->sink, usage.cpu_us);
    } else if (!p->result->compile.present && al_msg_decode_compiled(data, len, &compiled) == 0) {
        al_outcome_compiled(&compiled, p->result);
    } else if (al_msg_decode_exit(data, len, &p->exit) == 0) {
        p->exited = true;
    } else {
        return -EBADMSG;
    }
    return 0;
}

static int take_credit(struct al_pump *p, const struct al_frame *f)
{
    uint32_t n;
    memcpy(&n, f->data, sizeof n);
    if (n > AL_FRAME_STDIN_WINDOW - p->stdin_window) {
        return -EBADMSG;
    }
    p->stdin_window += n;
    return 0;
}

static int take_frame(struct al_pump *p, const struct al_frame *f)
{
    if (p->ended) {
        return -EBADMSG;
    }
    switch (f->type) {
    case AL_FRAME_CONTROL:
        return take_control(p, f->data, f->len);
    case AL_FRAME_STDOUT:
    case AL_FRAME_STDERR:
        if (!p->started || p->exited) {
            return -EBADMSG;
        }
        p->pending = *f;
        p->pending.len = within_limit(p, channel_of(f), f->len);
        offer(p);
        return 0;
    case AL_FRAME_COMPILE:
        al_buf_append_some(&p->result->compile.output, f->data, f->len);
        return 0;
    case AL_FRAME_ARTIFACTS:
        (void)al_artifact_reader_feed(&p->artifacts, f->data, f->len);
        return 0;
    case AL_FRAME_TAKEN:
        return take_credit(p, f);
    case AL_FRAME_ROOM:
        if (p->room_made) {
            return -EBADMSG;
        }
        p->room_made = true;
        p->make_room(p->arg);
        tell(p, AL_FRAME_ROOM_MADE, NULL, 0);
        return 0;
    case AL_FRAME_STDIN_CLOSED:
        end_stdin(p, false);
        al_ctl_stdin_closed(p->ctl);
        return 0;
    default:
        p->ended = p->exited;
        return p->exited ? 0 : -EBADMSG;
    }
}

/* What is said beside the frames is for people. */
static void keep_words(struct al_pump *p, const struct al_mux_piece *piece)
{
    size_t len = strlen(p->words);
    for (size_t i = 0; i < piece->len && len < sizeof p->words - 1; i++) {
        uint8_t c = piece->data[i];
        p->words[len++] = c >= 0x20 && c < 0x7f ? (char)c : ' ';
    }
}

/* As far as the sink goes along. */
static int take_input(struct al_pump *p)
{
    while (p->pending.len == 0) {
        size_t used;
        int rc;
        if (p->piece.len == 0) {
            rc = al_mux_next(&p->mux, p->in + p->in_start, p->in_end - p->in_start, &used,
                             &p->piece);
            p->in_start += used;
            if (rc <= 0) {
                return rc;
            }
            if (p->piece.stream != AL_MUX_STDOUT) {
                keep_words(p, &p->piece);
                p->piece.len = 0;
                continue;
            }
        }
        struct al_frame frame;
        rc = al_frame_next(&p->reader, p->piece.data, p->piece.len, &used, &frame);
        if (rc < 0) {
            return rc;
        }
        p->piece.data += used;
        p->piece.len -= used;
        if (rc > 0 && (rc = take_frame(p, &frame)) < 0) {
            return rc;
        }
    }
    return 0;
}

/* 1 when the connection has ended. */
static int receive(struct al_pump *p)
{
    int rc = take_input(p);
    while (rc == 0 && p->pending.len == 0) {
        ssize_t got = al_hijack_read(p->hijack, p->in, AL_PUMP_IN_BYTES);
        if (got <= 0) {
            return got == -EAGAIN ? 0 : 1;
        }
        p->heard_ms = al_now_ms();
        p->in_start = 0;
        p->in_end = (size_t)got;
        rc = take_input(p);
    }
    return rc;
}

/* --- the loop --- */

/* A reader that takes nothing for as long as the program might have run, and as it may linger
 * without one, loses the rest. */
static int64_t reader_until_ms(const struct al_pump *p)
{
    int64_t wall_ms = p->spec->quotas.wall_ms;
    int64_t wall_end_ms = p->started_ms + wall_ms;
    int64_t from_ms = p->moved_ms > wall_end_ms ? p->moved_ms : wall_end_ms;
    return from_ms + (wall_ms > READER_MIN_MS ? wall_ms : READER_MIN_MS) + p->spec->linger_ms;
}

/* When something is wrong if nothing has come by then. */
static int64_t hangs_at_ms(const struct al_pump *p)
{
    if (p->killed_ms > 0 && !p->exited) {
        return p->killed_ms + KILL_MS;
    }
    if (!p->started) {
        return p->begun_ms + START_MS;
    }
    int64_t wall_end_ms = p->started_ms + p->spec->quotas.wall_ms;
    return (p->heard_ms > wall_end_ms ? p->heard_ms : wall_end_ms) + SILENCE_MS;
}

static int64_t next_ms(const struct al_pump *p)
{
    return p->pending.len > 0 ? reader_until_ms(p) : hangs_at_ms(p);
}

static int wait_for_events(struct al_pump *p)
{
    int64_t left_ms = next_ms(p) - al_now_ms();
    struct pollfd fds[] = {
        {.fd = al_hijack_fd(p->hijack),
         .events = (short)((p->pending.len == 0 ? POLLIN : 0) | (p->out.len > 0 ? POLLOUT : 0))},
        {.fd = al_ctl_fd(p->ctl), .events = POLLIN},
    };
    if (fds[0].events == 0) {
        fds[0].fd = -1;
    }
    int timeout = left_ms < 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
    if (poll(fds, 2, timeout) < 0 && errno != EINTR) {
        return -errno;
    }
    if (fds[1].revents) {
        take_ctl(p);
    }
    return 0;
}

/* 0, or 1 when init hangs. */
static int keep_time(struct al_pump *p)
{
    if (al_now_ms() < next_ms(p)) {
        return 0;
    }
    if (p->pending.len > 0) {
        p->dying = true;
        return 0;
    }
    return 1;
}

enum al_pump_end al_pump_run(struct al_pump *p, struct al_err *err)
{
    for (;;) {
        offer(p);
        int gone = receive(p);
        if (p->ended && p->pending.len == 0) {
            return AL_PUMP_ENDED;
        }
        if (gone < 0) {
            al_err_set(err, AL_ERR_INTERNAL, "docker: what the container's init says is malformed");
            return AL_PUMP_FAILED;
        }
        if (gone > 0) {
            return AL_PUMP_LOST;
        }
        int rc = al_pump_send(p); /* after what came: it may have been leave to send more */
        rc = rc < 0 ? rc : wait_for_events(p);
        if (rc < 0) {
            al_err_errno(err, -rc, "docker: cannot go on");
            return AL_PUMP_FAILED;
        }
        if (keep_time(p)) {
            return AL_PUMP_HANGS;
        }
    }
}
