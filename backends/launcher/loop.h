/* The launcher's event loop: one thread, epoll, no callbacks from anywhere else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#define AL_LOOP_EVENTS 64

/* Something the loop waits for. Embed it in its owner; `fn` runs when the fd is ready. */
struct al_source {
    int fd; /* -1: not watched */
    void (*fn)(struct al_source *source);
};

struct al_loop {
    int epoll_fd;
    bool stop;
    /* Fetched and not yet handled; removing a source takes it out, so that a handler may free any.
     */
    struct epoll_event pending[AL_LOOP_EVENTS];
    int n_pending;
};

int al_loop_init(struct al_loop *loop);

/* Watches for readability. */
int al_loop_add(struct al_loop *loop, struct al_source *source);

/* Stops watching; events of it that were already fetched are dropped. The fd stays open. */
void al_loop_remove(struct al_loop *loop, struct al_source *source);

/* Until `stop` is set. -errno when epoll fails. */
int al_loop_run(struct al_loop *loop);
