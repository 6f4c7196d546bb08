/* SPDX-License-Identifier: Apache-2.0 */
#include "job/store/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "job/store/wire.h"
#include "os/stream.h"

/* How much is sealed ahead of what is sent. */
#define SEALED_BYTES ((size_t)65536)

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

/* What is left of a letter, as far as it lies in one piece. */
static const unsigned char *rest_of(const struct rueda_letter *letter,
                                    size_t *out_len)
{
    size_t done;

    if (letter->sent < letter->start_bytes) {
        *out_len = letter->start_bytes - letter->sent;
        return letter->start + letter->sent;
    }
    done = letter->sent - letter->start_bytes;
    *out_len = letter->value_bytes - done;
    return letter->value + done;
}

/* Count what was sent of the first letter, or sealed. */
static void advance(struct rueda_outbox *outbox, size_t moved)
{
    struct rueda_letter *letter = outbox->first;

    letter->sent += moved;
    if (letter->sent == letter->start_bytes + letter->value_bytes)
        drop_first(outbox);
}

/* Some more of the first letter. */
static rueda_status send_plain(struct rueda_outbox *outbox, int fd)
{
    rueda_status status;
    size_t moved;
    size_t left;
    const unsigned char *from = rest_of(outbox->first, &left);

    status = rueda_stream_send(fd, from, left, &moved);
    advance(outbox, moved);
    return status;
}

/* Seal some more once all that was sealed is sent, so that a long value is
 * never sealed as a whole. */
static rueda_status send_sealed(struct rueda_outbox *outbox, int fd)
{
    rueda_status status;
    size_t moved;

    while (outbox->first != NULL &&
           rueda_buffer_len(&outbox->sealed) < SEALED_BYTES) {
        size_t left;
        const unsigned char *from = rest_of(outbox->first, &left);

        if (left > SEALED_BYTES)
            left = SEALED_BYTES;
        if (!rueda_sealed_stream_close(outbox->seal, from, left,
                                       &outbox->sealed))
            return RUEDA_ERR_NOMEM;
        advance(outbox, left);
    }
    status = rueda_stream_send(fd, rueda_buffer_front(&outbox->sealed),
                               rueda_buffer_len(&outbox->sealed), &moved);
    rueda_buffer_drop(&outbox->sealed, moved);
    return status;
}

rueda_status rueda_outbox_send(struct rueda_outbox *outbox, int fd)
{
    while (!rueda_outbox_is_empty(outbox)) {
        rueda_status status = outbox->seal != NULL ? send_sealed(outbox, fd)
                                                   : send_plain(outbox, fd);

        if (status != RUEDA_OK)
            return status;
    }
    return RUEDA_OK;
}

void rueda_outbox_fini(struct rueda_outbox *outbox)
{
    while (outbox->first != NULL)
        drop_first(outbox);
    rueda_buffer_fini(&outbox->sealed);
}
