/* SPDX-License-Identifier: Apache-2.0 */
#include "job/store/inbox.h"

#include <stdlib.h>
#include <string.h>

#include "os/stream.h"

#define LEAST_ROOM 4096
#define KEPT_ROOM  65536 /* what is more is given back when it is empty */

rueda_status rueda_inbox_fill(struct rueda_inbox *inbox, int fd, size_t wanted)
{
    rueda_status status;
    size_t moved;

    if (wanted < LEAST_ROOM)
        wanted = LEAST_ROOM;
    if (inbox->room < wanted) {
        unsigned char *more = realloc(inbox->bytes, wanted);

        if (more == NULL)
            return RUEDA_ERR_NOMEM;
        inbox->bytes = more;
        inbox->room = wanted;
    }
    status = rueda_stream_recv(fd, inbox->bytes + inbox->len,
                               inbox->room - inbox->len, &moved);
    inbox->len += moved;
    return status;
}

void rueda_inbox_drop(struct rueda_inbox *inbox, size_t count)
{
    inbox->len -= count;
    if (inbox->len > 0)
        memmove(inbox->bytes, inbox->bytes + count, inbox->len);
    else if (inbox->room > KEPT_ROOM)
        rueda_inbox_fini(inbox);
}

void rueda_inbox_fini(struct rueda_inbox *inbox)
{
    free(inbox->bytes);
    *inbox = (struct rueda_inbox){0};
}
