#include "client/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "client/exit_code.h"
#include "client/terminal.h"

#define GRACE_MS 1000

struct al_interrupt {
    struct al_client *client;
    pthread_t thread;
    bool started;
    sigset_t before; /* the signal mask of the creator */
    int signals;
    int stop;
    atomic_int signo;
};

static bool wait_for_stop(const struct al_interrupt *interrupt, int timeout_ms)
{
    struct pollfd stop = {.fd = interrupt->stop, .events = POLLIN};
    return TEMP_FAILURE_RETRY(poll(&stop, 1, timeout_ms)) > 0;
}

static void *watch_signals(void *arg)
{
    struct al_interrupt *interrupt = arg;
    struct signalfd_siginfo info;
    struct pollfd fds[] = {{.fd = interrupt->signals, .events = POLLIN},
                           {.fd = interrupt->stop, .events = POLLIN}};
    while (TEMP_FAILURE_RETRY(poll(fds, 2, -1)) < 0) {
    }
    if (fds[1].revents || read(interrupt->signals, &info, sizeof info) != sizeof info) {
        return NULL;
    }
    int signo = (int)info.ssi_signo;
    atomic_store(&interrupt->signo, signo);
    al_client_cancel(interrupt->client);
    if (!wait_for_stop(interrupt, GRACE_MS)) {
        al_terminal_leave();
        _exit(AL_EXIT_SIGNAL + signo);
    }
    return NULL;
}

/* A signal that is blocked and ignored would still be read from a signalfd: nohup's is left out. */
static void choose_signals(sigset_t *ret)
{
    struct sigaction hangup;
    sigemptyset(ret);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
        sigaddset(ret, SIGHUP);
    }
}

struct al_interrupt *al_interrupt_create(void)
{
    sigset_t set;
    struct al_interrupt *interrupt = calloc(1, sizeof *interrupt);
    if (!interrupt) {
        return NULL;
    }
    choose_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, &interrupt->before);
    interrupt->signals = signalfd(-1, &set, SFD_CLOEXEC);
    interrupt->stop = eventfd(0, EFD_CLOEXEC);
    if (interrupt->signals < 0 || interrupt->stop < 0) {
        al_interrupt_destroy(interrupt);
        return NULL;
    }
    return interrupt;
}

int al_interrupt_start(struct al_interrupt *interrupt, struct al_client *client)
{
    interrupt->client = client;
    int rc = -pthread_create(&interrupt->thread, NULL, watch_signals, interrupt);
    interrupt->started = rc == 0;
    return rc;
}

void al_interrupt_destroy(struct al_interrupt *interrupt)
{
    if (!interrupt) {
        return;
    }
    if (interrupt->started) {
        eventfd_write(interrupt->stop, 1);
        pthread_join(interrupt->thread, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
    al_close_fd(&interrupt->signals);
    al_close_fd(&interrupt->stop);
    free(interrupt);
}

int al_interrupt_signal(const struct al_interrupt *interrupt)
{
    return atomic_load(&interrupt->signo);
}
