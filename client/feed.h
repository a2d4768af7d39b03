/*
 * Standard input, and changes of the terminal's size, on their way to a job: a thread that sends
 * them to the stream which follows the job at the moment. Bytes that the server may not have got
 * yet are kept, up to a bound, and sent again to the next stream when one breaks. The reader's
 * thread calls everything here.
 */
#pragma once

#include "client/client.h"

struct al_feed_options {
    bool reads;      /* false: nothing is read, nor its end sent */
    bool is_at_end;  /* there is no more to read from the start: its end is sent at once */
    size_t keep_max; /* bytes; 0: no second stream will follow */
    int size_fd;     /* as from al_terminal_watch_size() */
    /* Not NULL: keys at a terminal are read, and "~." (client/escape.h) calls this, once, on the
     * feed's thread. Nothing is sent any more from then on. */
    void (*leave)(void *arg);
    void *arg;
};

struct al_feed;

/* NULL when memory, fds or threads are out. */
struct al_feed *al_feed_create(const struct al_feed_options *options);

/* No stream is in use. NULL is ignored. */
void al_feed_destroy(struct al_feed *feed);

/* Sends to this stream from now on, beginning with the byte of that number; for the first stream
 * that is the number of the first byte. -ENODATA: that one is not kept any more. */
int al_feed_use(struct al_feed *feed, struct al_stream *stream, uint64_t received);

/* The stream has ended, or was cancelled: waits until it is not in use. */
void al_feed_leave(struct al_feed *feed);

/* The server has got so many bytes: they are not needed any more. */
void al_feed_received(struct al_feed *feed, uint64_t received);
