/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipe: the shared memory of one direction between two ranks, what its writer
 * keeps of it and what its reader keeps.
 *
 *     notices     the announcements of messages, number n in notice n % 8
 *     channels  a ring of bytes each, for the message that it carries
 *     acks      for each channel, the number of the last message taken from it
 *
 * Messages are numbered from 1. To send one, the writer takes a free channel,
 * puts the first piece of the bytes into its ring (all of them into the notice,
 * if they are few), fills in the notice and publishes it by storing its number.
 * It goes on writing pieces while there is room in the ring. The reader looks
 * at one place only for news, the notice of the next number, and so accepts
 * messages in order; one that has no receive yet keeps its channel and leaves
 * the notice. Whatever is read to the end is acknowledged, which frees the
 * channel.
 *
 * A notice needs no acknowledgement of its own. When the writer has found a
 * free channel for message n, at most 7 of the 8 messages before it still hold
 * one; so it has seen the ack of one of them, and that one was accepted after,
 * or is, message n - 8. The notice of n - 8 has been read.
 *
 * Positions in a ring begin at 0 with every message, so short ones use the same
 * few cache lines again and again. `written` and `read` are touched only for
 * messages that need them: longer than a piece, longer than the ring.
 *
 * Zero is the valid first state. There are no pointers in shared memory, and
 * what is read there is checked before it is used: the peer may be broken.
 */
#ifndef RUEDA_TRANSPORT_SHM_PIPE_H
#define RUEDA_TRANSPORT_SHM_PIPE_H

#include <stdatomic.h>

#include "transport/reqs.h"
#include "transport/transport.h"

#define RUEDA_SHM_CHANNELS 8 /* and as many notices */
#define RUEDA_SHM_RING     ((size_t)128 << 10)
#define RUEDA_SHM_PIECE    ((size_t)16 << 10)
#define RUEDA_SHM_INLINE   88
/* Two lines: what is written by one side stays clear of the other's even where
 * lines are fetched in pairs. */
#define RUEDA_SHM_APART 128

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "atomics with a lock do not work between processes");
_Static_assert(RUEDA_SHM_RING % RUEDA_SHM_PIECE == 0,
               "a piece lies in one place");

/* Written by the writer, read by the reader. */
struct rueda_shm_notice {
    _Alignas(RUEDA_SHM_APART) atomic_ullong number; /* stored last */
    struct rueda_tag tag;
    uint64_t len;
    uint32_t channel;
    uint32_t ready; /* bytes that are in the ring, or here, already */
    char text[RUEDA_SHM_INLINE];
};
_Static_assert(sizeof(struct rueda_shm_notice) == RUEDA_SHM_APART,
               "a notice is two cache lines");

struct rueda_shm_flow {
    _Alignas(RUEDA_SHM_APART) atomic_ullong written; /* by the writer */
    _Alignas(RUEDA_SHM_APART) atomic_ullong read;    /* by the reader */
};

struct rueda_shm_pipe {
    struct rueda_shm_notice notices[RUEDA_SHM_CHANNELS];

    /* By the reader; all in one line, so that one look finds all news. */
    _Alignas(RUEDA_SHM_APART) atomic_ullong acks[RUEDA_SHM_CHANNELS];

    /* By the writer: it waits for room, or for a channel, and wants to be
     * notified of acks; it has closed its end. */
    _Alignas(RUEDA_SHM_APART) atomic_uint is_stuck;
    atomic_uint is_closed;

    struct rueda_shm_flow flows[RUEDA_SHM_CHANNELS];
    _Alignas(4096) char rings[RUEDA_SHM_CHANNELS][RUEDA_SHM_RING];
};

/* The notice of message n, and what is in it before that. */
static inline struct rueda_shm_notice *
rueda_shm_notice(struct rueda_shm_pipe *pipe, uint64_t number)
{
    return &pipe->notices[number % RUEDA_SHM_CHANNELS];
}

static inline uint64_t rueda_shm_notice_before(uint64_t number)
{
    return number > RUEDA_SHM_CHANNELS ? number - RUEDA_SHM_CHANNELS : 0;
}

/* Sets of channels are bits of an unsigned. */
#define RUEDA_SHM_ALL_CHANNELS ((1u << RUEDA_SHM_CHANNELS) - 1)

/* ---- Writer ---------------------------------------------------------- */

/* What the writer knows of a channel. */
struct rueda_shm_outgoing {
    uint64_t number; /* of the last message on it */
    uint64_t before; /* of the one before that: the ack while number is open */
    struct rueda_req *req; /* being written, or NULL */
    size_t written;
    size_t read; /* by the reader, as far as is known */
};

struct rueda_shm_writer {
    struct rueda_shm_pipe *pipe;
    uint64_t next;  /* number of the next message */
    unsigned free;  /* channels known to be free */
    unsigned busy;  /* channels with a message that is not all written */
    bool is_stuck;  /* what the pipe says */
    bool is_broken; /* the pipe holds what no reader writes */
    struct rueda_shm_outgoing channels[RUEDA_SHM_CHANNELS];
    struct rueda_reqs waiting; /* for a channel */
};

void rueda_shm_writer_init(struct rueda_shm_writer *writer,
                           struct rueda_shm_pipe *pipe);

/*
 * Take on a send, and write what there is room for. As progress(): RUEDA_OK if
 * something was published, RUEDA_IN_PROGRESS if not, RUEDA_ERR_PEER_LOST if the
 * pipe is broken.
 */
rueda_status rueda_shm_writer_send(struct rueda_shm_writer *writer,
                                   struct rueda_req *req);
rueda_status rueda_shm_writer_turn(struct rueda_shm_writer *writer);

/* End all requests. Returns whether a message stays half written, so that the
 * pipe cannot be used again. */
bool rueda_shm_writer_cancel(struct rueda_shm_writer *writer,
                             rueda_status status);

/* ---- Reader ---------------------------------------------------------- */

/* A message that was accepted and is not all read. */
struct rueda_shm_incoming {
    uint64_t number;
    struct rueda_tag tag;
    size_t len;
    size_t written; /* by the writer, as far as is known */
    size_t read;
    struct rueda_req *req; /* NULL: no receive yet, or the message is dropped */
    char text[RUEDA_SHM_INLINE];
};

struct rueda_shm_reader {
    struct rueda_shm_pipe *pipe;
    uint64_t next;           /* number of the next message */
    unsigned waiting;        /* channels whose message has no receive yet */
    unsigned busy;           /* channels whose message is being read */
    bool has_acked;          /* since the flag was last cleared */
    struct rueda_term *term; /* of the endpoint */
    struct rueda_shm_incoming channels[RUEDA_SHM_CHANNELS];
    struct rueda_reqs posted; /* receives without a message */
};

/* term is borrowed. */
void rueda_shm_reader_init(struct rueda_shm_reader *reader,
                           struct rueda_shm_pipe *pipe,
                           struct rueda_term *term);

/* As the writer's. */
rueda_status rueda_shm_reader_recv(struct rueda_shm_reader *reader,
                                   struct rueda_req *req);
rueda_status rueda_shm_reader_turn(struct rueda_shm_reader *reader);

/* Does a message of this tag wait for a receive? Then how long is it? */
bool rueda_shm_reader_has(const struct rueda_shm_reader *reader,
                          struct rueda_tag tag, size_t *out_len);

/* The term has risen: drop the messages without a receive that are too old. */
void rueda_shm_reader_begin_term(struct rueda_shm_reader *reader);

/* End all requests. Returns whether a message stays half read. Messages
 * without a receive stay. */
bool rueda_shm_reader_cancel(struct rueda_shm_reader *reader,
                             rueda_status status);

/* The writer will write no more: drop the messages that are not whole. Returns
 * whether whole ones are left that a receive could still ask for. */
bool rueda_shm_reader_has_whole(struct rueda_shm_reader *reader);

#endif /* RUEDA_TRANSPORT_SHM_PIPE_H */
