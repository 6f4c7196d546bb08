/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages between two members, one at a time: everything that was
 * written since the last one goes out as the next, so that under load messages
 * become longer, not more frequent. A message is a head of fixed length, which
 * carries short contents itself, and a body for long ones.
 *
 *      u32 length of the contents, u32 flags, u64 applied,
 *      i64 when it was sent, i64 when what the sender heard last was sent,
 *      i64 how long before it heard that, i64 what the sender adds to its clock
 *      to have the coordinator's; contents
 *
 * The times of a message and of one that answers it give the way there and
 * back, and how far two clocks are apart (as NTP does, RFC 5905, section 8).
 */
#ifndef RUEDA_NEGOTIATE_TALK_H
#define RUEDA_NEGOTIATE_TALK_H

#include "negotiate/wire.h"
#include "transport/transport.h"

#define RUEDA_TALK_HEAD   128
#define RUEDA_TALK_PREFIX 48

/* No member of ours sends longer contents. */
#define RUEDA_TALK_MOST ((size_t)1 << 30)

struct rueda_talk {
    struct rueda_mesh *mesh;
    int peer;
    struct rueda_tag tag;

    struct rueda_out out;      /* what comes next */
    struct rueda_id_run ready; /* in that: ids of what I have */
    struct rueda_out flying;
    bool is_flying;
    unsigned char out_head[RUEDA_TALK_HEAD];
    struct rueda_req out_head_req;
    struct rueda_req out_body_req;

    bool is_listening;
    unsigned char in_head[RUEDA_TALK_HEAD];
    struct rueda_req in_head_req;
    struct rueda_req in_body_req;
    unsigned char *in_body; /* of in_room bytes */
    size_t in_room;
    size_t in_len; /* of the body in flight; 0: none is */

    /* Each side marks its last message, so that both know when nothing is in
     * flight any more. */
    bool is_ending; /* the next is mine */
    bool has_said_last;
    bool has_heard_last;

    uint64_t sent;
    uint64_t received;

    /* What the peer said last: when, by its clock, and when that came here. */
    int64_t peer_sent_ns;
    int64_t heard_ns;
    int64_t peer_shift_ns; /* from its clock to the coordinator's */
    bool peer_has_shift;   /* it knows that */

    /* How far the peer's clock is ahead of mine, by the message with the
     * shortest round trip. */
    int64_t ahead_ns;
    int64_t best_way_ns; /* there and back; 0: not known */
};

/* A message that has come. Valid until the next call. */
struct rueda_heard {
    uint64_t applied;
    struct rueda_in in;
};

void rueda_talk_init(struct rueda_talk *talk, struct rueda_mesh *mesh, int peer,
                     struct rueda_tag tag);

/* Nothing of it is in flight any more. */
void rueda_talk_fini(struct rueda_talk *talk);

/* What goes with every message. */
struct rueda_talk_stamp {
    uint64_t applied;
    int64_t now_ns;
    int64_t shift_ns; /* from my clock to the coordinator's */
    bool has_shift;   /* that is known */
};

/*
 * Send on what is written, if nothing is in flight. RUEDA_OK if that moved
 * anything, RUEDA_IN_PROGRESS if not; RUEDA_ERR_PEER_LOST, RUEDA_ERR_NOMEM.
 */
rueda_status rueda_talk_send(struct rueda_talk *talk,
                             const struct rueda_talk_stamp *stamp);

/* The next message in *out and RUEDA_OK, or RUEDA_IN_PROGRESS; else it has
 * failed: RUEDA_ERR_PEER_LOST, RUEDA_ERR_NOMEM, RUEDA_ERR_IO for bytes that are
 * not a message. */
rueda_status rueda_talk_hear(struct rueda_talk *talk, int64_t now_ns,
                             struct rueda_heard *out);

/* What is written, even if that is nothing, goes out as the last message. */
static inline void rueda_talk_end(struct rueda_talk *talk)
{
    talk->is_ending = true;
}

/* Is the peer gone? Then nothing more is sent to it. */
static inline bool rueda_talk_is_lost(const struct rueda_talk *talk)
{
    return (talk->is_flying &&
            (talk->out_head_req.status < 0 || talk->out_body_req.status < 0)) ||
           (talk->is_listening &&
            (talk->in_head_req.status < 0 ||
             (talk->in_len > 0 && talk->in_body_req.status < 0)));
}

static inline bool rueda_talk_is_sending(const struct rueda_talk *talk)
{
    return talk->is_flying || talk->out.len > 0 ||
           (talk->is_ending && !talk->has_said_last);
}

/* Both have said their last, and nothing is in flight. */
static inline bool rueda_talk_is_over(const struct rueda_talk *talk)
{
    return talk->has_heard_last && !rueda_talk_is_sending(talk) &&
           talk->has_said_last;
}

#endif /* RUEDA_NEGOTIATE_TALK_H */
