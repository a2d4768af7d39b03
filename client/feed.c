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
#include "client/escape.h"
#include "client/output.h"
#include "client/terminal.h"

#define CHUNK_BYTES ((size_t)32 << 10)

/* How long the network may hold up a user's keys before it is looked whether they say to leave. */
#define KEYS_SEND_MS 100

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
    bool left;     /* the user did */
    struct al_escape escape;
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
    if (rc < 0 && rc != -EAGAIN && feed->stream == stream) {
        feed->stream = NULL; /* the reader learns why */
    }
    pthread_cond_signal(&feed->idle);
}

/* False: there is no room for them as yet. */
static bool send_bytes(struct al_feed *feed)
{
    uint8_t chunk[CHUNK_BYTES];
    size_t from = feed->start + (size_t)(feed->sent - feed->number);
    size_t n = feed->bytes.len - from;
    n = n < sizeof chunk ? n : sizeof chunk;
    memcpy(chunk, feed->bytes.data + from, n);
    struct al_stream *stream = begin_send(feed);
    int rc = al_stream_send_stdin(stream, chunk, n, feed->options.leave ? KEYS_SEND_MS : -1);
    end_send(feed, stream, rc);
    if (rc == 0 && feed->stream == stream) {
        feed->sent += n;
        forget_too_much(feed);
    }
    return rc != -EAGAIN;
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

static int keep_input(struct al_feed *feed, const uint8_t *bytes, size_t n)
{
    uint8_t keys[CHUNK_BYTES + 1];
    if (feed->options.leave) {
        n = al_escape_filter(&feed->escape, bytes, n, keys, &feed->left);
        bytes = keys;
    }
    return al_buf_append(&feed->bytes, bytes, n);
}

static void read_input(struct al_feed *feed)
{
    uint8_t chunk[CHUNK_BYTES];
    pthread_mutex_unlock(&feed->lock);
    ssize_t got = TEMP_FAILURE_RETRY(read(STDIN_FILENO, chunk, sizeof chunk));
    bool later = got < 0 && errno == EAGAIN;
    pthread_mutex_lock(&feed->lock);
    int rc = got > 0 ? keep_input(feed, chunk, (size_t)got) : 0;
    if (rc < 0) {
        al_output_error("standard input is cut: %s", strerror(-rc));
    }
    feed->ended |= rc < 0 || (got <= 0 && !later);
}

/* A user's keys are read ahead of what can be sent, since they may say to leave. */
static bool wants_input(const struct al_feed *feed)
{
    bool reads_ahead = feed->options.leave && kept(feed) <= feed->options.keep_max + CHUNK_BYTES;
    bool sends = feed->stream && feed->sent == feed->number + kept(feed);
    return (sends || reads_ahead) && !feed->ended;
}

static void wait_for_news(struct al_feed *feed, int timeout_ms)
{
    struct pollfd fds[] = {{.fd = feed->wake, .events = POLLIN},
                           {.fd = wants_input(feed) ? STDIN_FILENO : -1, .events = POLLIN},
                           {.fd = feed->options.size_fd, .events = POLLIN}};
    pthread_mutex_unlock(&feed->lock);
    int n = TEMP_FAILURE_RETRY(poll(fds, 3, timeout_ms));
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
    while (!feed->stopping && !feed->left) {
        if (feed->stream && feed->sent < feed->number + kept(feed)) {
            if (!send_bytes(feed)) {
                wait_for_news(feed, 0);
            }
        } else if (feed->stream && feed->ended && feed->options.reads && !feed->end_sent) {
            send_end(feed);
        } else {
            wait_for_news(feed, -1);
        }
    }
    bool left = feed->left;
    pthread_mutex_unlock(&feed->lock);
    if (left) {
        feed->options.leave(feed->options.arg);
    }
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
    al_buf_init(&feed->bytes, 2 * (options->keep_max + 2 * CHUNK_BYTES));
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
