/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the launcher and its agents. A frame is
 *
 *      at   bytes
 *       0       4   length of what follows the head, little-endian
 *       4       1   kind
 *       5       3   zero
 *       8           numbers of 4 bytes; texts with their length before them;
 *                   lists with their count before them
 *
 * in the order in which the fields stand below. Bytes from outside are hostile:
 * lengths are checked against what is there and what a kind may have. Pure; any
 * thread.
 *
 *      launcher                                   agent
 *         HELLO     key, over ssh only      -->
 *                                           <--   READY     here I am
 *         START     what to run             -->
 *                                           <--   PREPARED, or REFUSED
 *         GO        all hosts are prepared  -->
 *                                           <--   STARTED, or REFUSED
 *                                           <--   OUTPUT, NOTE, EXIT
 *         INPUT     for rank 0; none: end   -->
 *                                           <--   TAKEN     bytes of it
 *         SIGNAL    to all ranks            -->
 *                   (those that stop and continue them end nothing)
 *                                           <--   end of the stream: all gone
 *
 *         WORKER    one more process      -->
 *         STOP      a signal for one      -->
 *                                           <--   DRAIN     this host is to go
 *
 * The agent of an elastic job has no ranks at first; after GO it starts a
 * process for each WORKER, and it stays when all of them have ended, until a
 * SIGNAL comes.
 *
 * A host that has all ranks of the job needs no GO. A launcher that is gone,
 * too, ends the stream, and the agent ends its ranks.
 */
#ifndef RUEDA_LAUNCH_FRAME_H
#define RUEDA_LAUNCH_FRAME_H

#include <stdint.h>

#include <rueda/rueda.h>

#include "launch/strings.h"

#define RUEDA_AGENT_VERSION 5
#define RUEDA_FRAME_HEAD    8

/* Of TCP, one a second, until the host at the other end is taken for lost; and
 * how long that takes. */
#define RUEDA_AGENT_QUESTIONS  10
#define RUEDA_AGENT_SILENCE_MS ((int64_t)1000 * (RUEDA_AGENT_QUESTIONS + 1))

/* Bytes of INPUT that are sent before as many are TAKEN. */
#define RUEDA_INPUT_WINDOW ((size_t)1 << 18)

/* Where an agent's stream begins on the standard output of ssh; shells like to
 * say other things first. */
#define RUEDA_AGENT_MARK "\n\001rueda agent\001\n"

typedef enum rueda_frame_kind {
    RUEDA_FRAME_HELLO = 1,
    RUEDA_FRAME_START,
    RUEDA_FRAME_SIGNAL,
    RUEDA_FRAME_INPUT,
    RUEDA_FRAME_GO,
    RUEDA_FRAME_WORKER,
    RUEDA_FRAME_STOP,
    RUEDA_FRAME_READY = 16,
    RUEDA_FRAME_STARTED,
    RUEDA_FRAME_REFUSED,
    RUEDA_FRAME_OUTPUT,
    RUEDA_FRAME_EXIT,
    RUEDA_FRAME_NOTE,
    RUEDA_FRAME_TAKEN,
    RUEDA_FRAME_PREPARED,
    RUEDA_FRAME_DRAIN,
} rueda_frame_kind;

/* A frame in a buffer, which owns it. */
struct rueda_frame {
    rueda_frame_kind kind;
    const unsigned char *bytes;
    size_t len;
};

/* RUEDA_OK: *out is the frame, *out_bytes what it took of the buffer.
 * RUEDA_IN_PROGRESS: *out_bytes are needed to go on. RUEDA_ERR_INVALID: this
 * is no frame. */
rueda_status rueda_frame_next(const void *buf, size_t len,
                              struct rueda_frame *out, size_t *out_bytes);

/* ---- Writing ------------------------------------------------------------ */

struct rueda_packer {
    unsigned char *bytes; /* a whole frame once it is ended; ours to free */
    size_t len;
    size_t room;
    bool is_short; /* no memory, or too long: not to be sent */
};

void rueda_packer_begin(struct rueda_packer *packer, rueda_frame_kind kind);
void rueda_frame_pack_number(struct rueda_packer *packer, uint32_t number);
void rueda_frame_pack_bytes(struct rueda_packer *packer, const void *bytes,
                            size_t len);
void rueda_frame_pack_text(struct rueda_packer *packer, const char *text);
void rueda_frame_pack_list(struct rueda_packer *packer,
                           const struct rueda_strings *list);
void rueda_packer_end(struct rueda_packer *packer);
void rueda_packer_fini(struct rueda_packer *packer);

/* ---- Reading ------------------------------------------------------------ */

/* What is not there reads as 0 or empty, and marks the reader as bad. */
struct rueda_unpacker {
    const unsigned char *at;
    size_t left;
    bool is_bad;
};

void rueda_unpacker_begin(struct rueda_unpacker *unpacker,
                          const struct rueda_frame *frame);
uint32_t rueda_frame_unpack_number(struct rueda_unpacker *unpacker);
const void *rueda_frame_unpack_bytes(struct rueda_unpacker *unpacker,
                                     size_t *out_len);
/* Cut to fit, and without zero bytes. */
void rueda_frame_unpack_text(struct rueda_unpacker *unpacker, char *out,
                             size_t bytes);
void rueda_frame_unpack_list(struct rueda_unpacker *unpacker,
                             struct rueda_strings *out);
/* Was all there, and nothing else? */
bool rueda_unpacker_is_done(const struct rueda_unpacker *unpacker);

#endif /* RUEDA_LAUNCH_FRAME_H */
