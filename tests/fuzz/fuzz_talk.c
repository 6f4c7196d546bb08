/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages of a neighbour that has proved itself, and then sends what
 * it likes: heads and bodies are filled with the input, as far as that goes.
 * What is heard lies in memory that came.
 */
#include "base/bytes.h"
#include "fuzz/fuzz.h"
#include "negotiate/talk.h"

#define MOST_MESSAGES 64

/* Memory for more, which is never filled, would only be slow to get. */
#define MOST_BYTES ((uint32_t)1 << 16)

struct peer {
    struct rueda_ep super;
    struct fuzz_input input;
};

static void never_send(struct rueda_ep *ep, struct rueda_tag tag,
                       const void *buf, size_t len, struct rueda_req *req)
{
    (void)ep;
    (void)tag;
    (void)buf;
    (void)len;
    req->status = RUEDA_ERR_PEER_LOST;
}

/* What is too short never comes whole. */
static void fill(struct rueda_ep *ep, struct rueda_tag tag, void *buf,
                 size_t len, struct rueda_req *req)
{
    struct peer *peer = (struct peer *)ep;
    const uint8_t *bytes;
    size_t got = fuzz_take(&peer->input, len, &bytes);

    (void)tag;
    if (got > 0)
        memcpy(buf, bytes, got);
    if (got == RUEDA_TALK_HEAD && rueda_get_u32(buf) > MOST_BYTES &&
        rueda_get_u32(buf) <= RUEDA_TALK_MOST)
        rueda_put_u32(buf, MOST_BYTES);
    req->status = got == len ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

static void leave(struct rueda_ep *ep)
{
    (void)ep;
}

static rueda_status join(struct rueda_mesh *mesh, int peer,
                         struct rueda_ep **out_ep)
{
    (void)peer;
    *out_ep = mesh->owner;
    return RUEDA_OK;
}

static void read_all(const struct rueda_heard *heard)
{
    unsigned sum = 0;

    must(heard->in.at <= heard->in.end);
    for (const unsigned char *at = heard->in.at; at < heard->in.end; at++)
        sum += *at;
    (void)*(volatile unsigned *)&sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rueda_transport_ops ops = {
        .name = "fuzz", .send = never_send, .recv = fill, .close = leave};
    struct peer peer = {.super = {.ops = &ops, .peer = 1},
                        .input = {data, size}};
    rueda_status status = RUEDA_OK;
    struct rueda_mesh mesh;
    struct rueda_talk talk;

    must(rueda_mesh_init(&mesh, 0, 2, join, &peer) == RUEDA_OK);
    rueda_talk_init(&talk, &mesh, 1, (struct rueda_tag){.sequence = 1});
    for (int64_t i = 1; i < MOST_MESSAGES && status == RUEDA_OK; i++) {
        bool was_last = talk.has_heard_last;
        struct rueda_heard heard;

        status = rueda_talk_hear(&talk, i * 1000000000, &heard);
        must(!was_last || status == RUEDA_IN_PROGRESS);
        must(talk.best_way_ns >= 0);
        if (status == RUEDA_OK)
            read_all(&heard);
    }
    must(status == RUEDA_OK || status == RUEDA_IN_PROGRESS ||
         status == RUEDA_ERR_IO);
    rueda_talk_fini(&talk);
    rueda_mesh_fini(&mesh);
    return 0;
}
