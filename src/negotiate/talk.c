/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message at a time between two neighbours of the tree, in each direction.
 * A short message fits its head; the rest of a longer one follows. The head
 * also carries clocks: from how long messages take, the two ends estimate by
 * how much their clocks differ, which the timeline needs.
 */
#include "negotiate/talk.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/duration.h"

#define SHORT (RUEDA_TALK_HEAD - RUEDA_TALK_PREFIX)

/* Flags of a head. */
#define IS_LAST   1u
#define HAS_SHIFT 2u

void rueda_talk_init(struct rueda_talk *talk, struct rueda_mesh *mesh, int peer,
                     struct rueda_tag tag)
{
    memset(talk, 0, sizeof(*talk));
    talk->mesh = mesh;
    talk->peer = peer;
    talk->tag = tag;
    talk->tag.sequence = RUEDA_TAG_CONTROL;
}

void rueda_talk_fini(struct rueda_talk *talk)
{
    rueda_out_fini(&talk->out);
    rueda_out_fini(&talk->flying);
    free(talk->in_body);
}

/* ---- Sending ------------------------------------------------------------ */

static void write_head(struct rueda_talk *talk, size_t len,
                       const struct rueda_talk_stamp *stamp)
{
    const bool has_heard = talk->heard_ns != 0;

    rueda_put_u32(talk->out_head, (uint32_t)len);
    rueda_put_u32(talk->out_head + 4, (talk->is_ending ? IS_LAST : 0) |
                                          (stamp->has_shift ? HAS_SHIFT : 0));
    rueda_put_u64(talk->out_head + 8, stamp->applied);
    rueda_put_u64(talk->out_head + 16, (uint64_t)stamp->now_ns);
    rueda_put_u64(talk->out_head + 24,
                  has_heard ? (uint64_t)talk->peer_sent_ns : 0);
    rueda_put_u64(talk->out_head + 32,
                  has_heard ? (uint64_t)(stamp->now_ns - talk->heard_ns) : 0);
    rueda_put_u64(talk->out_head + 40, (uint64_t)stamp->shift_ns);
}

static void launch(struct rueda_talk *talk,
                   const struct rueda_talk_stamp *stamp)
{
    struct rueda_out written = talk->out;
    const size_t len = written.len;

    /* The two buffers change places. */
    talk->out = talk->flying;
    talk->out.len = 0;
    talk->ready.end = 0;
    talk->flying = written;
    write_head(talk, len, stamp);
    if (len > 0)
        memcpy(talk->out_head + RUEDA_TALK_PREFIX, written.bytes,
               len < SHORT ? len : SHORT);
    rueda_mesh_send(talk->mesh, talk->peer, talk->tag, talk->out_head,
                    RUEDA_TALK_HEAD, &talk->out_head_req);
    talk->out_body_req.status = RUEDA_OK;
    if (len > SHORT)
        rueda_mesh_send(talk->mesh, talk->peer, talk->tag,
                        written.bytes + SHORT, len - SHORT,
                        &talk->out_body_req);
    talk->is_flying = true;
    talk->has_said_last = talk->is_ending;
    talk->sent++;
}

/* The state of the message in flight. */
static rueda_status land(struct rueda_talk *talk)
{
    rueda_status head = talk->out_head_req.status;
    rueda_status body = talk->out_body_req.status;

    if (head < 0)
        return head;
    if (body < 0)
        return body;
    if (head == RUEDA_IN_PROGRESS || body == RUEDA_IN_PROGRESS)
        return RUEDA_IN_PROGRESS;
    talk->is_flying = false;
    return RUEDA_OK;
}

rueda_status rueda_talk_send(struct rueda_talk *talk,
                             const struct rueda_talk_stamp *stamp)
{
    rueda_status landed = RUEDA_IN_PROGRESS;

    if (talk->out.has_failed || talk->out.len > RUEDA_TALK_MOST)
        return RUEDA_ERR_NOMEM;
    if (talk->is_flying) {
        landed = land(talk);
        if (landed != RUEDA_OK)
            return landed;
    }
    if (!rueda_talk_is_sending(talk) || talk->has_said_last)
        return landed;
    launch(talk, stamp);
    landed = land(talk);
    return landed < 0 ? landed : RUEDA_OK;
}

/* ---- Listening ---------------------------------------------------------- */

static void listen_for_head(struct rueda_talk *talk)
{
    talk->is_listening = true;
    rueda_mesh_recv(talk->mesh, talk->peer, talk->tag, talk->in_head,
                    RUEDA_TALK_HEAD, &talk->in_head_req);
}

/* The head says that a body follows. */
static rueda_status listen_for_body(struct rueda_talk *talk, size_t len)
{
    if (len > RUEDA_TALK_MOST)
        return RUEDA_ERR_IO;
    if (talk->in_room < len) {
        unsigned char *body = realloc(talk->in_body, len);

        if (body == NULL)
            return RUEDA_ERR_NOMEM;
        talk->in_body = body;
        talk->in_room = len;
    }
    memcpy(talk->in_body, talk->in_head + RUEDA_TALK_PREFIX, SHORT);
    talk->in_len = len;
    rueda_mesh_recv(talk->mesh, talk->peer, talk->tag, talk->in_body + SHORT,
                    len - SHORT, &talk->in_body_req);
    return RUEDA_OK;
}

/* Longer round trips say nothing about clocks. */
#define LONGEST_WAY_NS RUEDA_S(3600)

/*
 * The message with the shortest round trip gives the best estimate of how far
 * the clocks are apart. Estimates grow old, because clocks drift, so each
 * message makes the best one a little worse. Numbers of a peer may be any, so
 * they are added without a sign.
 */
static void compare_clocks(struct rueda_talk *talk, int64_t now_ns)
{
    const uint64_t sent = rueda_get_u64(talk->in_head + 16);
    const uint64_t echo = rueda_get_u64(talk->in_head + 24);
    const uint64_t held = rueda_get_u64(talk->in_head + 32);
    int64_t way;

    talk->peer_sent_ns = (int64_t)sent;
    talk->heard_ns = now_ns;
    talk->peer_shift_ns = (int64_t)rueda_get_u64(talk->in_head + 40);
    talk->peer_has_shift = (rueda_get_u32(talk->in_head + 4) & HAS_SHIFT) != 0;
    if (echo == 0)
        return;
    way = (int64_t)((uint64_t)now_ns - echo - held);
    if (way < 0 || way > LONGEST_WAY_NS)
        return;
    talk->best_way_ns += talk->best_way_ns / 64;
    if (talk->best_way_ns != 0 && way > talk->best_way_ns)
        return;
    talk->best_way_ns = way + 1;
    talk->ahead_ns = (int64_t)(sent - (uint64_t)now_ns + (uint64_t)(way / 2));
}

rueda_status rueda_talk_hear(struct rueda_talk *talk, int64_t now_ns,
                             struct rueda_heard *out)
{
    const unsigned char *contents = talk->in_head + RUEDA_TALK_PREFIX;
    rueda_status status;
    size_t len;

    if (talk->has_heard_last)
        return RUEDA_IN_PROGRESS;
    if (!talk->is_listening)
        listen_for_head(talk);
    if (talk->in_head_req.status != RUEDA_OK)
        return talk->in_head_req.status;
    len = rueda_get_u32(talk->in_head);
    if (len > SHORT) {
        if (talk->in_len == 0) {
            status = listen_for_body(talk, len);
            if (status != RUEDA_OK)
                return status;
        }
        if (talk->in_body_req.status != RUEDA_OK)
            return talk->in_body_req.status;
        contents = talk->in_body;
    }
    out->applied = rueda_get_u64(talk->in_head + 8);
    out->in = (struct rueda_in){.at = contents, .end = contents + len};
    compare_clocks(talk, now_ns);
    talk->in_len = 0;
    talk->is_listening = false;
    talk->has_heard_last = (rueda_get_u32(talk->in_head + 4) & IS_LAST) != 0;
    talk->received++;
    return RUEDA_OK;
}
