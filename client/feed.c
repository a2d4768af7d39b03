#include "client/feed.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/buf.h"
#include "backends/base/cleanup.h"
#include "client/output.h"
#include "client/terminal.h"

#define CHUNK_BYTES ((size_t)32 << 10)

struct al_feed {
    struct al_feed_options options;
    int wake; /* eventfd: something below has changed */
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t idle;
    struct al_stream *stream; /* NULL: none, or it takes no more */
    bool busy;                /* the thread is in a function of the stream */
    bool stopping;
    bool used; /* there has been a stream */
    bool ended;
    bool end_sent; /* to this stream */
    struct al_buf bytes;
    size_t start;    /* of what in `bytes` is still kept */
    uint64_t number; /* of the byte at `start` */
    uint64_t sent;   /* the next one to be sent to this stream */
};

static size_t kept(const struct al_feed *feed)
{
    return feed->bytes.len - feed->start;
}

/* Forgets the first n bytes; moves the rest to the front only when that is little work. */
static void forget(struct al_feed *feed, size_t n)
{
    feed->start += n;
    feed->number += n;
    if (feed->start >= feed->bytes.len / 2) {
        al_buf_consume(&feed->bytes, feed->start);
        feed->start = 0;
    }
}

/* What has been sent and is more than may be kept. */
static void forget_too_much(struct al_feed *feed)
{
    size_t sent = (size_t)(feed->sent - feed->number);
    size_t too_much = kept(feed) > feed->options.keep_max ? kept(feed) - feed->options.keep_max : 0;
    forget(feed, sent < too_much ? sent : too_much);
}

/* Around a call that may wait for the network; the lock is not held in between. */
static struct al_stream *begin_send(struct al_feed *feed)
{
    feed->busy = true;
    struct al_stream *stream = feed->stream;
    pthread_mutex_unlock(&feed->lock);
    return stream;
}

static void end_send(struct al_feed *feed, struct al_stream *stream, int rc)
{
    pthread_mutex_lock(&feed->lock);
    feed->busy = false;
    if (rc < 0 && feed->stream == stream) {
        feed->stream = NULL; /* the reader learns why */
    }
    pthread_cond_signal(&feed->idle);
}

static void send_bytes(struct al_feed *feed)
{
    uint8_t chunk[CHUNK_BYTES];
    size_t from = feed->start + (size_t)(feed->sent - feed->number);
    size_t n = feed->bytes.len - from;
    n = n < sizeof chunk ? n : sizeof chunk;
    memcpy(chunk, feed->bytes.data + from, n);
    struct al_stream *stream = begin_send(feed);
    int rc = al_stream_send_stdin(stream, chunk, n, -1);
    end_send(feed, stream, rc);
    if (rc == 0 && feed->stream == stream) {
        feed->sent += n;
        forget_too_much(feed);
    }
}

static void send_end(struct al_feed *feed)
{
    struct al_stream *stream = begin_send(feed);
    int rc = al_stream_half_close(stream, -1);
    end_send(feed, stream, rc);
    feed->end_sent = true;
}

static void send_size(struct al_feed *feed)
{
    uint32_t rows, cols;
    al_terminal_take_change(feed->options.size_fd);
    al_terminal_size(&rows, &cols);
    if (rows > 0 && feed->stream && !feed->end_sent) {
        struct al_stream *stream = begin_send(feed);
        end_send(feed, stream, al_stream_send_resize(stream, rows, cols, -1));
    }
}

static void read_input(struct al_feed *feed)
{
    uint8_t chunk[CHUNK_BYTES];
    pthread_mutex_unlock(&feed->lock);
    ssize_t got = TEMP_FAILURE_RETRY(read(STDIN_FILENO, chunk, sizeof chunk));
    bool later = got < 0 && errno == EAGAIN;
    pthread_mutex_lock(&feed->lock);
    int rc = got > 0 ? al_buf_append(&feed->bytes, chunk, (size_t)got) : 0;
    if (rc < 0) {
        al_output_error("standard input is cut: %s", strerror(-rc));
    }
    feed->ended |= rc < 0 || (got <= 0 && !later);
}

/* Everything has been sent, or cannot be. */
static void wait_for_news(struct al_feed *feed)
{
    bool wants_input = feed->stream && !feed->ended;
    struct pollfd fds[] = {{.fd = feed->wake, .events = POLLIN},
                           {.fd = wants_input ? STDIN_FILENO : -1, .events = POLLIN},
                           {.fd = feed->options.size_fd, .events = POLLIN}};
    pthread_mutex_unlock(&feed->lock);
    int n = TEMP_FAILURE_RETRY(poll(fds, 3, -1));
    eventfd_t count;
    if (n > 0 && fds[0].revents) {
        eventfd_read(feed->wake, &count);
    }
    pthread_mutex_lock(&feed->lock);
    if (n > 0 && fds[2].revents) {
        send_size(feed);
    }
    if (n > 0 && fds[1].revents) {
        read_input(feed);
    }
}

static void *forward(void *arg)
{
    struct al_feed *feed = arg;
    pthread_mutex_lock(&feed->lock);
    while (!feed->stopping) {
        if (feed->stream && feed->sent < feed->number + kept(feed)) {
            send_bytes(feed);
        } else if (feed->stream && feed->ended && feed->options.reads && !feed->end_sent) {
            send_end(feed);
        } else {
            wait_for_news(feed);
        }
    }
    pthread_mutex_unlock(&feed->lock);
    return NULL;
}

struct al_feed *al_feed_create(const struct al_feed_options *options)
{
    struct al_feed *feed = calloc(1, sizeof *feed);
    if (!feed) {
        return NULL;
    }
    feed->options = *options;
    feed->ended = !options->reads || options->is_at_end;
    al_buf_init(&feed->bytes, 2 * (options->keep_max + CHUNK_BYTES));
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->idle, NULL);
    feed->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (feed->wake < 0 || pthread_create(&feed->thread, NULL, forward, feed) != 0) {
        al_close_fd(&feed->wake);
        pthread_cond_destroy(&feed->idle);
        pthread_mutex_destroy(&feed->lock);
        free(feed);
        return NULL;
    }
    return feed;
}

void al_feed_destroy(struct al_feed *feed)
{
    if (!feed) {
        return;
    }
    pthread_mutex_lock(&feed->lock);
    feed->stopping = true;
    pthread_mutex_unlock(&feed->lock);
    eventfd_write(feed->wake, 1);
    pthread_join(feed->thread, NULL);
    al_close_fd(&feed->wake);
    al_buf_finish(&feed->bytes);
    pthread_cond_destroy(&feed->idle);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

int al_feed_use(struct al_feed *feed, struct al_stream *stream, uint64_t received)
{
    int rc = 0;
    pthread_mutex_lock(&feed->lock);
    if (!feed->used) {
        feed->used = true;
        feed->number = received;
    }
    if (received < feed->number || received > feed->number + kept(feed)) {
        rc = -ENODATA;
    } else {
        feed->stream = stream;
        feed->sent = received;
        feed->end_sent = false;
    }
    pthread_mutex_unlock(&feed->lock);
    eventfd_write(feed->wake, 1);
    return rc;
}

void al_feed_leave(struct al_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    feed->stream = NULL;
    while (feed->busy) {
        pthread_cond_wait(&feed->idle, &feed->lock);
    }
    pthread_mutex_unlock(&feed->lock);
    eventfd_write(feed->wake, 1);
}

void al_feed_received(struct al_feed *feed, uint64_t received)
{
    pthread_mutex_lock(&feed->lock);
    if (received > feed->number && received <= feed->sent) {
        forget(feed, (size_t)(received - feed->number));
    }
    pthread_mutex_unlock(&feed->lock);
}
