/*
 * Theory of operation. One poll loop a job. Output is read only while there is room: what the sink
 * did not take stays in the channel's buffer and its pipe is not polled until ctl wakes the loop,
 * so that a slow reader stops the program and nothing grows. Once the job is to die (cancel, output
 * limit) the launcher is told and the rest of the output is kept as far as it fits and otherwise
 * dropped, so that nothing waits for a reader. The same when the program has ended and its reader
 * takes nothing for as long as the program might have run, and as it may linger without a reader:
 * no reader holds a job for ever. The loop ends when EXIT has come and every pipe has ended; by
 * then the launcher has reaped everything.
 */
#include "backends/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/process/artifact_reader.h"
#include "backends/process/outcome.h"
#include "backends/process/terminal.h"

#define READS_MAX 128 /* of output before anything else is looked at */
#define READER_MIN_MS \
    5000 /* the least that a reader may take to go on once the program has ended */
#define GIVE_BYTES \
    (AL_SINK_CHUNK_BYTES / 2) /* from here on a buffer is handed over rather than copied */

enum {
    POLL_CONTROL,
    POLL_CTL,
    POLL_STDOUT,
    POLL_STDERR,
    POLL_COMPILE,
    POLL_ARTIFACTS,
    POLL_TERMINAL,
    POLL_STDIN,
    POLL_COUNT,
};

struct channel {
    int *fd;
    enum al_channel id;
    uint8_t *data;     /* AL_SINK_CHUNK_BYTES, made at the first byte */
    size_t start, end; /* what the sink has not taken */
    uint64_t total;    /* taken or dropped by the limit */
    bool truncated;
};

struct pump {
    struct al_launched job;
    const struct al_job_spec *spec;
    struct al_ctl *ctl;
    struct al_sink *sink;
    struct al_result *result;
    struct channel out[2];
    struct al_artifact_reader artifacts;
    size_t stdin_sent; /* of spec->stdin_bytes */
    bool dying;        /* KILL was sent: no waiting for readers any more */
    bool kill_waits;   /* or will be, once the control socket has room */
    bool cancelled;
    bool over_output;
    bool exited;
    struct al_terminal_size resize; /* came before the terminal did */
    int64_t moved_ms;               /* when EXIT came, or the sink last took something after it */
    struct al_msg_exit exit;
};

static bool has_pending(const struct channel *c)
{
    return c->end > c->start;
}

/* Until it is out: a control socket full of signals only delays it. A dead launcher shows as the
 * end of control. */
static void send_kill(struct pump *p)
{
    uint8_t data[8];
    size_t n = al_msg_encode_empty(AL_MSG_KILL, data);
    ssize_t put = TEMP_FAILURE_RETRY(send(p->job.control, data, n, MSG_NOSIGNAL | MSG_DONTWAIT));
    p->kill_waits = put < 0 && errno == EAGAIN;
}

static void kill_job(struct pump *p)
{
    if (!p->dying && !p->exited) {
        send_kill(p);
    }
    p->dying = true;
}

/* --- output --- */

/* Cuts what goes beyond output_bytes; from then on the job is dying and the rest is dropped. */
static size_t within_limit(struct pump *p, struct channel *c, size_t n)
{
    uint64_t max = p->spec->quotas.output_bytes;
    if (max == 0 || n <= max - c->total) {
        c->total += n;
        return n;
    }
    size_t keep = (size_t)(max - c->total);
    c->total = max;
    c->truncated = true;
    p->over_output = true;
    kill_job(p);
    return keep;
}

static void offer(struct pump *p, struct channel *c)
{
    size_t n = c->end - c->start;
    size_t taken = n;
    if (c->start == 0 && n >= GIVE_BYTES &&
        al_sink_give(p->sink, c->id, c->data, n, AL_SINK_CHUNK_BYTES))
    {
        c->data = NULL; /* the next read makes another one */
        c->end = 0;
    } else if (has_pending(c)) {
        taken = al_sink_append(p->sink, c->id, c->data + c->start, n);
        c->start += taken;
    }
    if (p->exited && taken > 0) {
        p->moved_ms = al_now_ms();
    }
    if (p->dying && has_pending(c)) {
        c->truncated = true;
        c->start = c->end;
    }
}

static int read_output(struct pump *p, struct channel *c)
{
    if (!c->data && !(c->data = malloc(AL_SINK_CHUNK_BYTES))) {
        return -ENOMEM;
    }
    /* All that is there: a program that writes 4 KiB at a time shall not cost a message each time.
     */
    size_t len = 0;
    for (int reads = 0; len < AL_SINK_CHUNK_BYTES && reads < READS_MAX; reads++) {
        ssize_t got = TEMP_FAILURE_RETRY(read(*c->fd, c->data + len, AL_SINK_CHUNK_BYTES - len));
        if (got <= 0) {
            if (got == 0 || errno != EAGAIN) {
                al_close_fd(c->fd);
            }
            break;
        }
        len += (size_t)got;
    }
    c->start = 0;
    c->end = within_limit(p, c, len);
    offer(p, c);
    return 0;
}

static void read_compile_output(struct pump *p)
{
    uint8_t data[4096];
    ssize_t got = TEMP_FAILURE_RETRY(read(p->job.compile_fd, data, sizeof data));
    if (got > 0) {
        al_buf_append_some(&p->result->compile.output, data, (size_t)got);
    } else if (got == 0 || errno != EAGAIN) {
        al_close_fd(&p->job.compile_fd);
    }
}

/* --- stdin --- */

/* The program is to see the end of its terminal's input, of which it may read on. */
static void end_terminal_input(const struct pump *p)
{
    int eof = p->spec->terminal.rows > 0 ? al_terminal_eof_character(p->job.stdin_fd) : -1;
    ssize_t put = eof >= 0 ? write(p->job.stdin_fd, &(uint8_t){(uint8_t)eof}, 1) : 0;
    (void)put; /* no room: as with a person who types too fast */
}

static void close_stdin(struct pump *p)
{
    al_close_fd(&p->job.stdin_fd);
    al_ctl_stdin_closed(p->ctl);
}

/* What of the request's stdin, then of the ctl's, is to be written next; *ret_eof: nothing will
 * follow it. */
static size_t next_stdin(struct pump *p, uint8_t *buf, size_t size, const uint8_t **ret,
                         bool *ret_eof)
{
    const struct al_bytes *fixed = &p->spec->stdin_bytes;
    if (p->stdin_sent < fixed->len) {
        *ret = fixed->data + p->stdin_sent;
        *ret_eof = false;
        return fixed->len - p->stdin_sent;
    }
    *ret = buf;
    *ret_eof = true;
    return p->spec->stdin_open ? al_ctl_stdin_peek(p->ctl, buf, size, ret_eof) : 0;
}

/* True when the pipe is full and has to be polled. SIGPIPE is blocked or ignored in airlockd. */
static bool write_stdin(struct pump *p)
{
    uint8_t buf[16 << 10];
    while (p->job.stdin_fd >= 0) {
        const uint8_t *data;
        bool eof;
        size_t n = next_stdin(p, buf, sizeof buf, &data, &eof);
        if (n == 0) {
            if (eof) {
                end_terminal_input(p);
                close_stdin(p);
            }
            return false;
        }
        ssize_t put = TEMP_FAILURE_RETRY(write(p->job.stdin_fd, data, n));
        if (put < 0 && errno == EAGAIN) {
            return true;
        }
        if (put < 0) {
            close_stdin(p); /* the program does not listen: harmless */
        } else if (data == buf) {
            al_ctl_stdin_drop(p->ctl, (size_t)put);
        } else {
            p->stdin_sent += (size_t)put;
        }
    }
    return false;
}

/* --- control --- */

static void take_control(struct pump *p, const uint8_t *data, size_t len)
{
    struct al_msg_compiled compiled;
    struct al_msg_usage usage;
    if (al_msg_decode_empty(AL_MSG_STARTED, data, len) == 0) {
        al_sink_started(p->sink);
    } else if (al_msg_decode_usage(data, len, &usage) == 0) {
        al_sink_used(p->sink, usage.cpu_us);
    } else if (al_msg_decode_compiled(data, len, &compiled) == 0) {
        al_outcome_compiled(&compiled, p->result);
    } else if (al_msg_decode_exit(data, len, &p->exit) == 0) {
        p->exited = true;
        p->moved_ms = al_now_ms();
    }
}

static int read_control(struct pump *p, struct al_err *err)
{
    uint8_t data[2048];
    ssize_t got = TEMP_FAILURE_RETRY(recv(p->job.control, data, sizeof data, 0));
    if (got < 0 && errno == EAGAIN) {
        return 0;
    }
    if (got <= 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "the launcher is gone");
    }
    take_control(p, data, (size_t)got);
    return 0;
}

static void resize(struct pump *p, struct al_terminal_size size)
{
    if (p->job.terminal_fd >= 0) {
        p->resize = size;
    } else if (p->job.stdout_fd >= 0 && p->spec->terminal.rows > 0 && size.rows > 0) {
        al_terminal_resize(p->job.stdout_fd, size);
    }
}

/* Its master is the program's stdin and stdout from now on. */
static void receive_terminal(struct pump *p)
{
    int master = al_terminal_receive(p->job.terminal_fd);
    if (master == -EAGAIN) {
        return;
    }
    al_close_fd(&p->job.terminal_fd);
    al_close_fd(&p->job.stdout_fd); /* ended from the start */
    if (master >= 0) {
        p->job.stdout_fd = master;
        p->job.stdin_fd = fcntl(master, F_DUPFD_CLOEXEC, 3); /* -1: as if nobody typed */
        resize(p, p->resize);
    }
}

static void take_ctl(struct pump *p)
{
    al_ctl_clear(p->ctl);
    if (!p->cancelled && !p->over_output && al_ctl_cancelled(p->ctl)) {
        p->cancelled = true;
        kill_job(p);
    }
    for (int signo; (signo = al_ctl_take_signal(p->ctl)) != 0;) {
        uint8_t data[16];
        struct al_msg_signal m = {.signo = signo};
        send(p->job.control, data, al_msg_encode_signal(&m, data), MSG_NOSIGNAL);
    }
    struct al_terminal_size size = al_ctl_take_size(p->ctl);
    if (size.rows > 0) {
        resize(p, size);
    }
}

/* --- the loop --- */

static bool is_done(const struct pump *p)
{
    return p->exited && p->job.stdout_fd < 0 && p->job.stderr_fd < 0 && p->job.compile_fd < 0 &&
           p->job.artifacts_fd < 0 && p->job.terminal_fd < 0 && !has_pending(&p->out[0]) &&
           !has_pending(&p->out[1]);
}

static void fill_poll(struct pump *p, bool stdin_full, struct pollfd *fds)
{
    const int wanted[POLL_COUNT] = {
        [POLL_CONTROL] = p->exited ? -1 : p->job.control,
        [POLL_CTL] = al_ctl_fd(p->ctl),
        [POLL_STDOUT] = has_pending(&p->out[0]) ? -1 : p->job.stdout_fd,
        [POLL_STDERR] = has_pending(&p->out[1]) ? -1 : p->job.stderr_fd,
        [POLL_COMPILE] = p->job.compile_fd,
        [POLL_ARTIFACTS] = p->job.artifacts_fd,
        [POLL_TERMINAL] = p->job.terminal_fd,
        [POLL_STDIN] = stdin_full ? p->job.stdin_fd : -1,
    };
    for (int i = 0; i < POLL_COUNT; i++) {
        fds[i] = (struct pollfd){.fd = wanted[i], .events = i == POLL_STDIN ? POLLOUT : POLLIN};
    }
    fds[POLL_CONTROL].events |= p->kill_waits ? POLLOUT : 0;
}

static int step(struct pump *p, struct pollfd *fds, struct al_err *err)
{
    if (fds[POLL_CTL].revents) {
        take_ctl(p);
    }
    int rc = 0;
    if (fds[POLL_CONTROL].revents & POLLOUT) {
        send_kill(p);
    }
    if (fds[POLL_CONTROL].revents & ~POLLOUT) {
        rc = read_control(p, err);
    }
    for (int i = 0; i < 2 && rc == 0; i++) {
        if (fds[POLL_STDOUT + i].revents && read_output(p, &p->out[i]) < 0) {
            rc = al_err_errno(err, ENOMEM, "output buffer");
        }
        offer(p, &p->out[i]);
    }
    if (fds[POLL_COMPILE].revents && rc == 0) {
        read_compile_output(p);
    }
    if (fds[POLL_TERMINAL].revents) {
        receive_terminal(p);
    }
    if (fds[POLL_ARTIFACTS].revents) {
        al_artifact_reader_drain(&p->artifacts, &p->job.artifacts_fd);
    }
    return rc;
}

/* How long to wait for a reader, the program being dead; -1: for as long as it lives. */
static int patience_ms(const struct pump *p)
{
    if (!p->exited) {
        return -1;
    }
    int64_t wall_ms = p->spec->quotas.wall_ms;
    int64_t reader_ms = wall_ms > READER_MIN_MS ? wall_ms : READER_MIN_MS;
    int64_t until_ms = p->moved_ms + reader_ms + p->spec->linger_ms;
    int64_t left_ms = until_ms - al_now_ms();
    return left_ms < 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

static int pump_all(struct pump *p, struct al_err *err)
{
    while (!is_done(p)) {
        struct pollfd fds[POLL_COUNT];
        bool stdin_full = write_stdin(p);
        fill_poll(p, stdin_full, fds);
        if (poll(fds, POLL_COUNT, patience_ms(p)) < 0 && errno != EINTR) {
            return al_err_errno(err, errno, "poll");
        }
        p->dying |= patience_ms(p) == 0;
        int rc = step(p, fds, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* A job that was killed has none; neither has one whose program never ran. */
static void finish_artifacts(struct pump *p)
{
    const struct al_result *r = p->result;
    bool ended = r->status == AL_STATUS_SUCCEEDED || r->status == AL_STATUS_FAILED;
    al_artifact_reader_finish(&p->artifacts);
    if (p->spec->n_artifacts == 0 || !p->exit.ran || !ended || p->over_output) {
        al_artifacts_finish(&p->result->artifacts);
    }
}

int al_process_run(struct al_launcher *launcher, enum al_cell_kind kind,
                   const struct al_job_spec *spec, struct al_ctl *ctl, struct al_sink *sink,
                   struct al_result *result, struct al_err *err)
{
    struct pump p = {.spec = spec, .ctl = ctl, .sink = sink, .result = result};
    int rc = al_launcher_spawn(launcher, kind, spec, &p.job, err);
    if (rc < 0) {
        return rc;
    }
    p.out[0] = (struct channel){.fd = &p.job.stdout_fd, .id = AL_STDOUT};
    p.out[1] = (struct channel){.fd = &p.job.stderr_fd, .id = AL_STDERR};
    al_artifact_reader_init(&p.artifacts, &result->artifacts, spec->quotas.artifact_bytes);
    rc = pump_all(&p, err);
    if (rc == 0) {
        result->stdout_truncated = p.out[0].truncated;
        result->stderr_truncated = p.out[1].truncated;
        al_outcome_exit(spec, &p.exit, p.cancelled, p.over_output, result);
        rc = result->reason == AL_REASON_BACKEND
                 ? al_err_set(err, AL_ERR_INTERNAL, "%s", result->error)
                 : 0;
    }
    finish_artifacts(&p);
    close_stdin(&p);
    al_launched_close(&p.job);
    free(p.out[0].data);
    free(p.out[1].data);
    return rc;
}
