#include "client/terminal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static atomic_bool is_raw;

/* What ends a process and is not turned into an orderly end by client/interrupt. */
static const int fatal[] = {SIGQUIT, SIGABRT, SIGSEGV,   SIGBUS,  SIGILL,
                            SIGFPE,  SIGTRAP, SIGSYS,    SIGUSR1, SIGUSR2,
                            SIGALRM, SIGXCPU, SIGVTALRM, SIGPROF, SIGSTKFLT};

void al_terminal_leave(void)
{
    if (atomic_exchange(&is_raw, false)) {
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    }
}

static void die(int signo)
{
    al_terminal_leave();
    raise(signo); /* SA_RESETHAND: as if this had not been here */
}

/* Leaves alone what is ignored, or has a handler that tells more. */
static void watch_fatal_signals(void)
{
    const struct sigaction action = {.sa_handler = die, .sa_flags = SA_RESETHAND | SA_NODEFER};
    struct sigaction present;
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        if (sigaction(fatal[i], NULL, &present) == 0 && present.sa_handler == SIG_DFL) {
            sigaction(fatal[i], &action, NULL);
        }
    }
}

int al_terminal_enter(void)
{
    if (!isatty(STDIN_FILENO)) {
        return 0;
    }
    if (tcgetattr(STDIN_FILENO, &before) < 0 || atexit(al_terminal_leave) != 0) {
        return -errno;
    }
    watch_fatal_signals();
    struct termios raw = before;
    cfmakeraw(&raw);
    atomic_store(&is_raw, true);
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0 ? -errno : 0;
}

void al_terminal_size(uint32_t *ret_rows, uint32_t *ret_cols)
{
    static const int fds[] = {STDIN_FILENO, STDOUT_FILENO};
    struct winsize size = {0};
    for (size_t i = 0; i < 2 && size.ws_row == 0; i++) {
        (void)ioctl(fds[i], TIOCGWINSZ, &size);
    }
    *ret_rows = size.ws_row;
    *ret_cols = size.ws_row > 0 ? size.ws_col : 0;
}

int al_terminal_watch_size(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void al_terminal_take_change(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
    }
}
