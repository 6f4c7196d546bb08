/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages between two members: what has been written since the last
 * one goes out as the next, one at a time, so that under load messages get
 * longer and not more. A message is a head of fixed length, which carries short
 * contents itself, and a body for long ones.
 *
 *      u32 length of the contents, u32 0, u64 applied, contents
 */
#ifndef RUEDA_NEGOTIATE_TALK_H
#define RUEDA_NEGOTIATE_TALK_H

#include "negotiate/wire.h"
#include "transport/transport.h"

#define RUEDA_TALK_HEAD   128
#define RUEDA_TALK_PREFIX 16

/* Longer contents are no contents that a member of ours would send. */
#define RUEDA_TALK_MOST ((size_t)1 << 30)

struct rueda_talk {
    struct rueda_mesh *mesh;
    int peer;
    struct rueda_tag tag;

    struct rueda_out out; /* what comes next */
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
    size_t in_len; /* of the body under way; 0: none is */

    uint64_t sent;
    uint64_t received;
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

/*
 * Send on what is written, if nothing is under way; `applied` goes with it.
 * RUEDA_OK if that moved anything, RUEDA_IN_PROGRESS if not;
 * RUEDA_ERR_PEER_LOST, RUEDA_ERR_NOMEM.
 */
rueda_status rueda_talk_send(struct rueda_talk *talk, uint64_t applied);

/* The next message in *out and RUEDA_OK, or RUEDA_IN_PROGRESS; else it has
 * failed: RUEDA_ERR_PEER_LOST, RUEDA_ERR_NOMEM, RUEDA_ERR_IO for what is no
 * message. */
rueda_status rueda_talk_hear(struct rueda_talk *talk, struct rueda_heard *out);

static inline bool rueda_talk_is_sending(const struct rueda_talk *talk)
{
    return talk->is_flying || talk->out.len > 0;
}

#endif /* RUEDA_NEGOTIATE_TALK_H */
