/* SPDX-License-Identifier: Apache-2.0 */
#include "job/store/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "job/store/wire.h"
#include "os/stream.h"

/* The beginning of a frame is the letter's own, the value the store's. */
struct rueda_letter {
    struct rueda_letter *next;
    struct rueda_store_value *owner; /* of value; NULL: there is none */
    const unsigned char *value;
    size_t value_bytes;
    size_t start_bytes;
    size_t sent; /* of both together */
    unsigned char start[];
};

rueda_status rueda_outbox_add(struct rueda_outbox *outbox,
                              const struct rueda_store_reply *reply)
{
    unsigned char start[RUEDA_STORE_START_BYTES];
    size_t start_bytes = rueda_store_reply_encode(reply, start);
    struct rueda_letter *letter;

    if (outbox->queued + start_bytes + reply->value_bytes > RUEDA_OUTBOX_MOST)
        return RUEDA_ERR_LIMIT;
    letter = malloc(sizeof(*letter) + start_bytes);
    if (letter == NULL)
        return RUEDA_ERR_NOMEM;
    *letter = (struct rueda_letter){.owner = reply->owner,
                                    .value = reply->value,
                                    .value_bytes = reply->value_bytes,
                                    .start_bytes = start_bytes};
    memcpy(letter->start, start, start_bytes);
    if (letter->owner != NULL)
        rueda_store_value_keep(letter->owner);
    if (outbox->first == NULL)
        outbox->first = letter;
    else
        outbox->last->next = letter;
    outbox->last = letter;
    outbox->queued += start_bytes + reply->value_bytes;
    return RUEDA_OK;
}

static void drop_first(struct rueda_outbox *outbox)
{
    struct rueda_letter *letter = outbox->first;

    outbox->first = letter->next;
    outbox->queued -= letter->start_bytes + letter->value_bytes;
    rueda_store_value_drop(letter->owner);
    free(letter);
}

/* Some more of the first letter. */
static rueda_status send_some(struct rueda_letter *letter, int fd)
{
    const unsigned char *from = letter->start + letter->sent;
    size_t left = letter->start_bytes - letter->sent;
    rueda_status status;
    size_t moved;

    if (letter->sent >= letter->start_bytes) {
        size_t done = letter->sent - letter->start_bytes;

        from = letter->value + done;
        left = letter->value_bytes - done;
    }
    status = rueda_stream_send(fd, from, left, &moved);
    letter->sent += moved;
    return status;
}

rueda_status rueda_outbox_send(struct rueda_outbox *outbox, int fd)
{
    while (outbox->first != NULL) {
        struct rueda_letter *letter = outbox->first;
        rueda_status status = send_some(letter, fd);

        if (status != RUEDA_OK)
            return status;
        if (letter->sent == letter->start_bytes + letter->value_bytes)
            drop_first(outbox);
    }
    return RUEDA_OK;
}

void rueda_outbox_fini(struct rueda_outbox *outbox)
{
    while (outbox->first != NULL)
        drop_first(outbox);
}
