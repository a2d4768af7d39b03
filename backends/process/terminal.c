#include "backends/process/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "backends/base/io.h"

int al_terminal_receive(int sock)
{
    char byte;
    int fds[AL_IO_FDS_MAX];
    size_t n = 0;
    ssize_t got = al_io_recv_fds(sock, &byte, 1, fds, &n);
    if (got > 0 && n == 1 && isatty(fds[0])) {
        return fds[0];
    }
    for (size_t i = 0; i < n; i++) {
        close(fds[i]);
    }
    return got < 0 ? (int)got : -EBADMSG;
}

void al_terminal_resize(int master, struct al_terminal_size size)
{
    const struct winsize window = {.ws_row = size.rows, .ws_col = size.cols};
    (void)ioctl(master, TIOCSWINSZ, &window); /* the kernel signals SIGWINCH */
}

int al_terminal_eof_character(int master)
{
    struct termios mode;
    if (tcgetattr(master, &mode) < 0 || mode.c_cc[VEOF] == _POSIX_VDISABLE) {
        return -1;
    }
    return mode.c_cc[VEOF];
}
