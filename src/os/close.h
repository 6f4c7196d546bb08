/* SPDX-License-Identifier: Apache-2.0 */
/* How to close a descriptor on the way out of a failure. Any thread. */
#ifndef RUEDA_OS_CLOSE_H
#define RUEDA_OS_CLOSE_H

#include <errno.h>
#include <unistd.h>

/* errno keeps the reason of the failure. */
static inline void rueda_close_keeping_errno(int fd)
{
    int cause = errno;

    close(fd);
    errno = cause;
}

#endif /* RUEDA_OS_CLOSE_H */
