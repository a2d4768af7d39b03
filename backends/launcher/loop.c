#include "backends/launcher/loop.h"

#include <errno.h>
#include <unistd.h>

int al_loop_init(struct al_loop *loop)
{
    *loop = (struct al_loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    return loop->epoll_fd < 0 ? -errno : 0;
}

int al_loop_add(struct al_loop *loop, struct al_source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

void al_loop_remove(struct al_loop *loop, struct al_source *source)
{
    if (source->fd < 0) {
        return;
    }
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    for (int i = 0; i < loop->n_pending; i++) {
        if (loop->pending[i].data.ptr == source) {
            loop->pending[i].data.ptr = NULL;
        }
    }
}

int al_loop_run(struct al_loop *loop)
{
    while (!loop->stop) {
        loop->n_pending = epoll_wait(loop->epoll_fd, loop->pending, AL_LOOP_EVENTS, -1);
        if (loop->n_pending < 0 && errno != EINTR) {
            return -errno;
        }
        for (int i = 0; i < loop->n_pending && !loop->stop; i++) {
            struct al_source *source = loop->pending[i].data.ptr;
            if (source) {
                source->fn(source);
            }
        }
        loop->n_pending = 0;
    }
    return 0;
}
