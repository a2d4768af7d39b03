#include "backends/api/ctl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/buf.h"

struct al_ctl {
    int event_fd;
    pthread_mutex_t lock; /* guards everything below */
    bool cancelled;
    bool stdin_eof;
    bool stdin_closed;
    bool stdin_was_full;
    struct al_buf stdin_buf;
    size_t stdin_start; /* bytes of stdin_buf already dropped */
    void (*on_room)(void *arg);
    void *on_room_arg;
    int signals[AL_CTL_SIGNALS_MAX];
    size_t n_signals;
    struct al_terminal_size size;
};

struct al_ctl *al_ctl_create(void)
{
    struct al_ctl *ctl = calloc(1, sizeof *ctl);
    if (!ctl) {
        return NULL;
    }
    ctl->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ctl->event_fd < 0) {
        free(ctl);
        return NULL;
    }
    pthread_mutex_init(&ctl->lock, NULL);
    al_buf_init(&ctl->stdin_buf, AL_CTL_STDIN_MAX);
    return ctl;
}

void al_ctl_destroy(struct al_ctl *ctl)
{
    if (!ctl) {
        return;
    }
    close(ctl->event_fd);
    pthread_mutex_destroy(&ctl->lock);
    al_buf_finish(&ctl->stdin_buf);
    free(ctl);
}

static void wake(struct al_ctl *ctl)
{
    eventfd_write(ctl->event_fd, 1);
}

void al_ctl_cancel(struct al_ctl *ctl)
{
    pthread_mutex_lock(&ctl->lock);
    ctl->cancelled = true;
    pthread_mutex_unlock(&ctl->lock);
    wake(ctl);
}

void al_ctl_room(struct al_ctl *ctl)
{
    wake(ctl);
}

/* Moves what is left to the front once more than half of the buffer is dropped bytes. */
static void compact(struct al_ctl *ctl)
{
    if (ctl->stdin_start == ctl->stdin_buf.len || ctl->stdin_start > AL_CTL_STDIN_MAX / 2) {
        al_buf_consume(&ctl->stdin_buf, ctl->stdin_start);
        ctl->stdin_start = 0;
    }
}

size_t al_ctl_stdin_push(struct al_ctl *ctl, const uint8_t *data, size_t n)
{
    pthread_mutex_lock(&ctl->lock);
    size_t taken = n;
    if (!ctl->stdin_eof && !ctl->stdin_closed) {
        taken = al_buf_append_some(&ctl->stdin_buf, data, n);
        ctl->stdin_was_full = taken < n;
    }
    pthread_mutex_unlock(&ctl->lock);
    wake(ctl);
    return taken;
}

void al_ctl_stdin_eof(struct al_ctl *ctl)
{
    pthread_mutex_lock(&ctl->lock);
    ctl->stdin_eof = true;
    pthread_mutex_unlock(&ctl->lock);
    wake(ctl);
}

void al_ctl_on_stdin_room(struct al_ctl *ctl, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&ctl->lock);
    ctl->on_room = fn;
    ctl->on_room_arg = arg;
    pthread_mutex_unlock(&ctl->lock);
}

bool al_ctl_signal(struct al_ctl *ctl, int signo)
{
    pthread_mutex_lock(&ctl->lock);
    bool fits = ctl->n_signals < AL_CTL_SIGNALS_MAX;
    if (fits) {
        ctl->signals[ctl->n_signals++] = signo;
    }
    pthread_mutex_unlock(&ctl->lock);
    wake(ctl);
    return fits;
}

void al_ctl_resize(struct al_ctl *ctl, struct al_terminal_size size)
{
    pthread_mutex_lock(&ctl->lock);
    ctl->size = size;
    pthread_mutex_unlock(&ctl->lock);
    wake(ctl);
}

int al_ctl_fd(const struct al_ctl *ctl)
{
    return ctl->event_fd;
}

void al_ctl_clear(struct al_ctl *ctl)
{
    eventfd_t count;
    eventfd_read(ctl->event_fd, &count);
}

bool al_ctl_cancelled(struct al_ctl *ctl)
{
    pthread_mutex_lock(&ctl->lock);
    bool cancelled = ctl->cancelled;
    pthread_mutex_unlock(&ctl->lock);
    return cancelled;
}

size_t al_ctl_stdin_peek(struct al_ctl *ctl, uint8_t *data, size_t n, bool *ret_eof)
{
    pthread_mutex_lock(&ctl->lock);
    size_t waiting = ctl->stdin_buf.len - ctl->stdin_start;
    size_t take = waiting < n ? waiting : n;
    if (take > 0) {
        memcpy(data, ctl->stdin_buf.data + ctl->stdin_start, take);
    }
    *ret_eof = ctl->stdin_eof && take == waiting;
    pthread_mutex_unlock(&ctl->lock);
    return take;
}

/* Unlocks; then tells the service about room if it had met a full buffer. Dropped bytes that were
 * not compacted away make none yet. */
static void unlock_and_tell_room(struct al_ctl *ctl)
{
    bool tell = ctl->stdin_was_full && ctl->stdin_buf.len < AL_CTL_STDIN_MAX;
    void (*fn)(void *arg) = tell ? ctl->on_room : NULL;
    void *arg = ctl->on_room_arg;
    ctl->stdin_was_full = ctl->stdin_was_full && !tell;
    pthread_mutex_unlock(&ctl->lock);
    if (fn) {
        fn(arg);
    }
}

void al_ctl_stdin_drop(struct al_ctl *ctl, size_t n)
{
    pthread_mutex_lock(&ctl->lock);
    ctl->stdin_start += n;
    compact(ctl);
    unlock_and_tell_room(ctl);
}

void al_ctl_stdin_closed(struct al_ctl *ctl)
{
    pthread_mutex_lock(&ctl->lock);
    ctl->stdin_closed = true;
    al_buf_finish(&ctl->stdin_buf);
    al_buf_init(&ctl->stdin_buf, AL_CTL_STDIN_MAX);
    ctl->stdin_start = 0;
    unlock_and_tell_room(ctl);
}

int al_ctl_take_signal(struct al_ctl *ctl)
{
    pthread_mutex_lock(&ctl->lock);
    int signo = 0;
    if (ctl->n_signals > 0) {
        signo = ctl->signals[0];
        ctl->n_signals--;
        memmove(ctl->signals, ctl->signals + 1, ctl->n_signals * sizeof ctl->signals[0]);
    }
    pthread_mutex_unlock(&ctl->lock);
    return signo;
}

struct al_terminal_size al_ctl_take_size(struct al_ctl *ctl)
{
    pthread_mutex_lock(&ctl->lock);
    struct al_terminal_size size = ctl->size;
    ctl->size = (struct al_terminal_size){0};
    pthread_mutex_unlock(&ctl->lock);
    return size;
}
