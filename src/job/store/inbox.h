/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that have arrived over a stream and wait to be understood. It grows to
 * what its reader asks for, once that has seen from the first bytes that they
 * make sense. Over a sealed stream (auth/sealed_stream.h) only what was opened
 * gets here. One thread.
 */
#ifndef RUEDA_JOB_STORE_INBOX_H
#define RUEDA_JOB_STORE_INBOX_H

#include <rueda/rueda.h>

#include "auth/sealed_stream.h"

struct rueda_inbox {
    unsigned char *bytes;
    size_t len;                       /* of them that have arrived */
    size_t room;                      /* of them that there is memory for */
    struct rueda_sealed_stream *seal; /* borrowed; NULL: the stream is plain */
    struct rueda_buffer sealed;       /* has arrived, and is not opened yet */
};

/*
 * Take what fd has to give, into room for `wanted` bytes at least. RUEDA_OK:
 * some came; RUEDA_IN_PROGRESS: none; else as rueda_stream_recv(), or
 * RUEDA_ERR_NOMEM, or RUEDA_ERR_AUTH: what came is not what the peer has
 * sealed.
 */
rueda_status rueda_inbox_fill(struct rueda_inbox *inbox, int fd, size_t wanted);

/* The first count bytes are done with. */
void rueda_inbox_drop(struct rueda_inbox *inbox, size_t count);

void rueda_inbox_fini(struct rueda_inbox *inbox);

#endif /* RUEDA_JOB_STORE_INBOX_H */
