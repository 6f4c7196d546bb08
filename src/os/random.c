/* SPDX-License-Identifier: Apache-2.0 */
#include "os/random.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

rueda_status rueda_random_fill(void *buf, size_t len)
{
    unsigned char *bytes = buf;
    size_t done = 0;

    while (done < len) {
        ssize_t got = getrandom(bytes + done, len - done, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return RUEDA_ERR_IO;
        done += (size_t)got;
    }
    return RUEDA_OK;
}
