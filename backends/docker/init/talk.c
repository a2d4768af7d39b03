/* Between airlockd and the program; see main.c. */
#include "backends/docker/init/init.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "backends/base/cleanup.h"

#define READ_BYTES  (64u << 10)
#define EXIT_FAILED 70

_Noreturn void al_init_die(const char *what)
{
    dprintf(STDERR_FILENO, "airlock-container-init: %s\n", what);
    _exit(EXIT_FAILED);
}

void al_init_say(struct al_init *i, enum al_frame_type type, const void *data, size_t n)
{
    if (al_frame_put(&i->out, type, data, n) < 0) {
        al_init_die("no room for a message");
    }
}

static const enum al_frame_type frame_of[SOURCES] = {
    [SOURCE_STDOUT] = AL_FRAME_STDOUT,
    [SOURCE_STDERR] = AL_FRAME_STDERR,
    [SOURCE_COMPILE] = AL_FRAME_COMPILE,
    [SOURCE_ARTIFACTS] = AL_FRAME_ARTIFACTS,
};

static void close_stdin(struct al_init *i)
{
    al_close_fd(&i->stdin_fd);
    i->in.len = 0;
    al_init_say(i, AL_FRAME_STDIN_CLOSED, NULL, 0);
}

/* The program is to see the end of its terminal's input, of which it may read on. */
static void end_stdin(struct al_init *i)
{
    struct termios mode;
    if (!i->terminal) {
        close_stdin(i);
        return;
    }
    if (tcgetattr(i->stdin_fd, &mode) == 0 && mode.c_cc[VEOF] != _POSIX_VDISABLE) {
        ssize_t put = write(i->stdin_fd, &mode.c_cc[VEOF], 1);
        (void)put; /* no room: as with a person who types too fast */
    }
    close_stdin(i);
}

void al_init_write_stdin(struct al_init *i)
{
    while (i->stdin_fd >= 0 && i->started && i->in.len > 0) {
        ssize_t put = TEMP_FAILURE_RETRY(write(i->stdin_fd, i->in.data, i->in.len));
        if (put < 0 && errno == EAGAIN) {
            return;
        }
        if (put < 0) {
            close_stdin(i); /* the program does not listen: harmless */
            return;
        }
        al_buf_consume(&i->in, (size_t)put);
        i->stdin_taken += (uint32_t)put;
    }
    if (i->stdin_fd >= 0 && i->started && i->stdin_ended && i->in.len == 0) {
        i->stdin_ended = false;
        end_stdin(i);
    }
}

bool al_init_has_room(const struct al_init *i)
{
    return i->out.len < AL_INIT_OUT_MAX / 4;
}

void al_init_read_source(struct al_init *i, enum al_init_source source)
{
    static uint8_t data[AL_FRAME_PIECE_MAX];
    ssize_t got = TEMP_FAILURE_RETRY(read(i->sources[source], data, sizeof data));
    if (got > 0) {
        al_init_say(i, frame_of[source], data, (size_t)got);
    } else if (got == 0 || errno != EAGAIN) { /* EIO: a terminal that nobody holds */
        al_close_fd(&i->sources[source]);
    }
}

void al_init_write_up(struct al_init *i)
{
    if (i->stdin_taken > 0 && al_init_has_room(i)) {
        al_init_say(i, AL_FRAME_TAKEN, &i->stdin_taken, sizeof i->stdin_taken);
        i->stdin_taken = 0;
    }
    size_t at = 0;
    while (at < i->out.len) {
        ssize_t put = TEMP_FAILURE_RETRY(write(STDOUT_FILENO, i->out.data + at, i->out.len - at));
        if (put < 0 && errno == EAGAIN) {
            break;
        }
        if (put < 0) {
            _exit(0);
        }
        at += (size_t)put;
    }
    al_buf_consume(&i->out, at);
}

/* --- down --- */

static void take_stdin(struct al_init *i, const struct al_frame *f)
{
    if (i->phase > PHASE_RUN || (i->phase == PHASE_RUN && i->stdin_fd < 0)) {
        return;
    }
    if (al_buf_append(&i->in, f->data, f->len) < 0) {
        al_init_die("more stdin than was agreed");
    }
}

static void resize(const struct al_init *i, const struct al_frame *f)
{
    struct al_terminal_size size;
    memcpy(&size, f->data, sizeof size);
    const struct winsize window = {.ws_row = size.rows, .ws_col = size.cols};
    if (i->terminal && i->sources[SOURCE_STDOUT] >= 0) {
        (void)ioctl(i->sources[SOURCE_STDOUT], TIOCSWINSZ, &window);
    }
}

static void take_frame(struct al_init *i, const struct al_frame *f)
{
    struct al_msg_signal signal_message;
    switch (f->type) {
    case AL_FRAME_STDIN:
        take_stdin(i, f);
        break;
    case AL_FRAME_STDIN_END:
        i->stdin_ended = true;
        break;
    case AL_FRAME_SIGNAL:
        if (al_msg_decode_signal(f->data, f->len, &signal_message) == 0) {
            al_init_signal(i, signal_message.signo);
        }
        break;
    case AL_FRAME_RESIZE:
        resize(i, f);
        break;
    case AL_FRAME_KILL:
        al_init_kill_for_caller(i);
        break;
    case AL_FRAME_ROOM_MADE:
        al_init_on_room(i);
        break;
    default:
        if (i->phase == PHASE_RECEIVING) {
            al_init_receive(i, f);
        }
        break;
    }
}

void al_init_read_down(struct al_init *i)
{
    static uint8_t data[READ_BYTES];
    ssize_t got = TEMP_FAILURE_RETRY(read(STDIN_FILENO, data, sizeof data));
    if (got < 0 && errno == EAGAIN) {
        return;
    }
    if (got <= 0) {
        _exit(0); /* airlockd is gone: the kernel kills the rest with this process */
    }
    for (size_t at = 0, used; at < (size_t)got; at += used) {
        struct al_frame frame;
        int rc = al_frame_next(&i->reader, data + at, (size_t)got - at, &used, &frame);
        if (rc < 0) {
            al_init_die("malformed frames");
        }
        if (rc > 0) {
            take_frame(i, &frame);
        }
    }
}
