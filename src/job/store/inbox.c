/* SPDX-License-Identifier: Apache-2.0 */
#include "job/store/inbox.h"

#include <stdlib.h>
#include <string.h>

#include "os/stream.h"

#define LEAST_ROOM 4096
#define KEPT_ROOM  65536 /* what is more is given back when it is empty */

/* How much is received at once from a sealed stream. */
#define SEALED_ROOM ((size_t)65536)

static rueda_status make_room(struct rueda_inbox *inbox, size_t wanted)
{
    unsigned char *more;

    if (wanted < LEAST_ROOM)
        wanted = LEAST_ROOM;
    if (inbox->room >= wanted)
        return RUEDA_OK;
    more = realloc(inbox->bytes, wanted);
    if (more == NULL)
        return RUEDA_ERR_NOMEM;
    inbox->bytes = more;
    inbox->room = wanted;
    return RUEDA_OK;
}

/* Open what is whole of what has arrived. */
static rueda_status open_sealed(struct rueda_inbox *inbox)
{
    struct rueda_buffer opened = {.bytes = NULL};
    rueda_status status = RUEDA_OK;
    size_t len;

    if (!rueda_sealed_stream_open(inbox->seal, &inbox->sealed, &opened))
        status = RUEDA_ERR_AUTH;
    len = rueda_buffer_len(&opened);
    if (status == RUEDA_OK && len > 0)
        status = make_room(inbox, inbox->len + len);
    if (status == RUEDA_OK && len > 0) {
        memcpy(inbox->bytes + inbox->len, rueda_buffer_front(&opened), len);
        inbox->len += len;
    }
    rueda_buffer_fini(&opened);
    return status;
}

static rueda_status fill_sealed(struct rueda_inbox *inbox, int fd)
{
    unsigned char *place = rueda_buffer_reserve(&inbox->sealed, SEALED_ROOM);
    rueda_status status;
    size_t moved;

    if (place == NULL)
        return RUEDA_ERR_NOMEM;
    status = rueda_stream_recv(fd, place, SEALED_ROOM, &moved);
    rueda_buffer_added(&inbox->sealed, moved);
    return status == RUEDA_OK ? open_sealed(inbox) : status;
}

rueda_status rueda_inbox_fill(struct rueda_inbox *inbox, int fd, size_t wanted)
{
    rueda_status status = make_room(inbox, wanted);
    size_t moved;

    if (status != RUEDA_OK)
        return status;
    if (inbox->seal != NULL)
        return fill_sealed(inbox, fd);
    status = rueda_stream_recv(fd, inbox->bytes + inbox->len,
                               inbox->room - inbox->len, &moved);
    inbox->len += moved;
    return status;
}

void rueda_inbox_drop(struct rueda_inbox *inbox, size_t count)
{
    inbox->len -= count;
    if (inbox->len > 0) {
        memmove(inbox->bytes, inbox->bytes + count, inbox->len);
    } else if (inbox->room > KEPT_ROOM) {
        free(inbox->bytes);
        inbox->bytes = NULL;
        inbox->room = 0;
    }
}

void rueda_inbox_fini(struct rueda_inbox *inbox)
{
    free(inbox->bytes);
    rueda_buffer_fini(&inbox->sealed);
    *inbox = (struct rueda_inbox){.bytes = NULL};
}
