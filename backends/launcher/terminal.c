#include "backends/launcher/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"

/* By fd, not by name: whatever lies in /dev/pts, it is this master's other end. */
static int open_slave(int master, struct al_terminal_size size, struct al_err *err)
{
    const struct winsize window = {.ws_row = size.rows, .ws_col = size.cols};
    int unlock = 0;
    if (ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCSWINSZ, &window) < 0) {
        return al_err_errno(err, errno, "cannot set up the terminal");
    }
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return slave < 0 ? al_err_errno(err, errno, "cannot open the terminal") : slave;
}

static int send_master(int sock, int master, struct al_err *err)
{
    struct iovec iov = {.iov_base = (char[]){0}, .iov_len = 1};
    int rc = al_io_set_nonblock(master, true);
    rc = rc < 0 ? rc : al_io_send_fds(sock, &iov, 1, &master, 1, true);
    return rc < 0 ? al_err_errno(err, -rc, "cannot hand the terminal over") : 0;
}

int al_terminal_open(int sock, struct al_terminal_size size, struct al_err *err)
{
    al_auto_close int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) {
        return al_err_errno(err, errno, "cannot make a terminal");
    }
    al_auto_close int slave = open_slave(master, size, err);
    int rc = slave < 0 ? slave : send_master(sock, master, err);
    if (rc < 0) {
        return rc;
    }
    if (ioctl(slave, TIOCSCTTY, 0) < 0) {
        return al_err_errno(err, errno, "cannot make the terminal the program's own");
    }
    for (int fd = 0; fd < 3; fd++) {
        if (dup2(slave, fd) < 0) {
            return al_err_errno(err, errno, "dup2");
        }
    }
    return 0;
}
