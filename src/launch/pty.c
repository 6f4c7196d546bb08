/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "os/event.h"

bool rueda_pty_open(int columns, int rows, int *out_ours, int *out_theirs)
{
    const struct winsize size = {.ws_col = (unsigned short)columns,
                                 .ws_row = (unsigned short)rows};
    const int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct termios how;
    char name[64];
    int theirs = -1;

    if (ours < 0)
        return false;
    if (grantpt(ours) == 0 && unlockpt(ours) == 0 &&
        ptsname_r(ours, name, sizeof(name)) == 0)
        theirs = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (theirs < 0 || fcntl(ours, F_SETFL, O_RDWR | O_NONBLOCK) < 0) {
        rueda_fd_close(theirs);
        rueda_fd_close(ours);
        return false;
    }
    /* The user's terminal adds the returns. */
    if (tcgetattr(theirs, &how) == 0) {
        how.c_oflag &= ~(tcflag_t)ONLCR;
        tcsetattr(theirs, TCSANOW, &how);
    }
    if (columns > 0 && rows > 0)
        ioctl(theirs, TIOCSWINSZ, &size);
    *out_ours = ours;
    *out_theirs = theirs;
    return true;
}

void rueda_pty_take(void)
{
    setsid();
    ioctl(STDIN_FILENO, TIOCSCTTY, 0);
}
