/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames over a stream, in a loop of libuv: one socket for both directions, or
 * two descriptors. On the loop's thread only. The link's memory is the caller's
 * and has to stay until the loop has run dry after rueda_link_close().
 */
#ifndef RUEDA_LAUNCH_LINK_H
#define RUEDA_LAUNCH_LINK_H

#include <uv.h>

#include "auth/sealed_stream.h"
#include "base/buffer.h"
#include "launch/frame.h"

struct rueda_link;

struct rueda_link_ops {
    /* The frame is borrowed for the call. The link may be closed in it. */
    void (*frame)(struct rueda_link *link, const struct rueda_frame *frame);

    /* The peer has gone, or sent what is no frame; why is borrowed. Once, and
     * not after rueda_link_close(). */
    void (*end)(struct rueda_link *link, const char *why);

    /* Optional: what was queued has shrunk below half of RUEDA_LINK_FULL, or
     * to nothing. Perhaps inside rueda_link_send(). */
    void (*drained)(struct rueda_link *link);
};

/* More than that should not be queued. */
#define RUEDA_LINK_FULL ((size_t)1 << 20)

struct rueda_link {
    const struct rueda_link_ops *ops;
    void *owner;
    int in; /* -1: closed */
    int out;
    uv_poll_t in_poll;
    uv_poll_t out_poll; /* of a second descriptor */
    bool is_paused;
    bool is_lost;     /* writing has failed: the end comes by reading */
    const char *mark; /* what the stream begins with, until it has come */
    struct rueda_buffer got;    /* bytes that have come */
    struct rueda_buffer queue;  /* bytes to send */
    bool is_sealed;             /* then: */
    struct rueda_buffer sealed; /* bytes that have come, not opened yet */
    struct rueda_sealed_stream sealed_stream;
};

/* Takes the descriptors, which become non-blocking; in and out may be one.
 * mark: drop everything before this text and the text itself, or NULL. */
rueda_status rueda_link_open(struct rueda_link *link, uv_loop_t *loop, int in,
                             int out, const char *mark,
                             const struct rueda_link_ops *ops, void *owner);

/* From now on both directions are encrypted and authenticated, under the
 * session key of a handshake in which we had this role. */
rueda_status rueda_link_seal(struct rueda_link *link,
                             const struct rueda_key *session,
                             rueda_handshake_role role);

/* Send a frame, which is ended and freed here. */
void rueda_link_send(struct rueda_link *link, struct rueda_packer *packer);

/* How many bytes wait to be sent. */
size_t rueda_link_queued(const struct rueda_link *link);

/* Do not read for a while, or go on. */
void rueda_link_pause(struct rueda_link *link, bool is_paused);

/* Call this now and then if the stream is TCP's: it ends a link if the peer's
 * system has not acknowledged data for long. (While nothing is in flight, TCP's
 * own questions do that.) One that does not read is not silent. */
void rueda_link_check(struct rueda_link *link);

/* What came before the mark, for messages; not ended by a zero. */
const char *rueda_link_noise(const struct rueda_link *link, size_t *out_len);

/* Close, without a word; what is queued is lost. May be repeated. */
void rueda_link_close(struct rueda_link *link);

/* Free what is left, after the loop has run dry. */
void rueda_link_fini(struct rueda_link *link);

#endif /* RUEDA_LAUNCH_LINK_H */
