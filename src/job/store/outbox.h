/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of the store on their way to one client. Values are not copied, the
 * store shares them; a sealed stream seals them piece by piece. One thread, the
 * store's.
 */
#ifndef RUEDA_JOB_STORE_OUTBOX_H
#define RUEDA_JOB_STORE_OUTBOX_H

#include "auth/sealed_stream.h"
#include "job/store/store.h"

/* What may wait for a client that does not read. */
#define RUEDA_OUTBOX_MOST ((size_t)64 << 20)

struct rueda_letter;

struct rueda_outbox {
    struct rueda_letter *first;
    struct rueda_letter *last;
    size_t queued;                    /* bytes */
    struct rueda_sealed_stream *seal; /* borrowed; NULL: the stream is plain */
    struct rueda_buffer sealed;       /* on its way */
};

/* The reply is the store's: it is copied but for its value, which is kept.
 * RUEDA_ERR_LIMIT, RUEDA_ERR_NOMEM: not added. */
rueda_status rueda_outbox_add(struct rueda_outbox *outbox,
                              const struct rueda_store_reply *reply);

/* RUEDA_OK: all is sent; RUEDA_IN_PROGRESS: again when fd can be written; else
 * as rueda_stream_send(), or RUEDA_ERR_NOMEM where it cannot be sealed. */
rueda_status rueda_outbox_send(struct rueda_outbox *outbox, int fd);

static inline bool rueda_outbox_is_empty(const struct rueda_outbox *outbox)
{
    return outbox->first == NULL && rueda_buffer_len(&outbox->sealed) == 0;
}

void rueda_outbox_fini(struct rueda_outbox *outbox);

#endif /* RUEDA_JOB_STORE_OUTBOX_H */
