/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/pack.h"

/* One way through the slab of a round. */
struct passage {
    struct rueda_round *round;
    const struct rueda_device *device;
    struct rueda_work *work;
    bool is_out; /* from the slab to the tensors */
    size_t at;   /* in the slab, of the next part */
    int count;   /* of round->parts that the device has not been given */
};

/* The parts that are in the list so far. */
static void flush(struct passage *pack)
{
    struct rueda_round *round = pack->round;

    if (pack->count == 0)
        return;
    if (pack->is_out)
        rueda_device_scatter(pack->device, pack->work, round->slab,
                             round->parts, pack->count);
    else
        rueda_device_gather(pack->device, pack->work, round->slab, round->parts,
                            pack->count);
    pack->count = 0;
}

/* The next bytes of the slab are those of a tensor from `from` on. */
static void move(struct passage *pack, const struct rueda_tensor *tensor,
                 size_t from, size_t bytes)
{
    struct rueda_part *part;

    if (pack->count == pack->round->most)
        flush(pack);
    part = &pack->round->parts[pack->count++];
    part->at = pack->at;
    part->bytes = bytes;
    part->send = tensor->send != NULL ? tensor->send + from : NULL;
    part->recv = tensor->recv != NULL ? tensor->recv + from : NULL;
    pack->at += bytes;
}

/* The block of this member, which has no more of the tensors than that. */
static void move_mine(struct passage *pack)
{
    const struct rueda_round *round = pack->round;

    for (int i = 0; i < round->count; i++)
        move(pack, &round->tensors[i], 0,
             rueda_round_rows(round, i, round->me) *
                 round->tensors[i].row_bytes);
    flush(pack);
}

/* The blocks of all: each member's rows of a tensor begin where those of the
 * member before it end. */
static void move_all(struct passage *pack)
{
    struct rueda_round *round = pack->round;

    for (int i = 0; i < round->count; i++)
        round->tensors[i].done = 0;
    for (int member = 0; member < round->members; member++)
        for (int i = 0; i < round->count; i++) {
            struct rueda_tensor *tensor = &round->tensors[i];
            const size_t bytes =
                rueda_round_rows(round, i, member) * tensor->row_bytes;

            move(pack, tensor, tensor->done, bytes);
            tensor->done += bytes;
        }
    flush(pack);
}

void rueda_pack_in(struct rueda_round *round, const struct rueda_device *device,
                   struct rueda_work *work)
{
    struct passage pack = {.round = round, .device = device, .work = work};

    if (round->kind == RUEDA_BROADCAST && round->me != round->root)
        return;
    if (rueda_round_is_whole(round)) {
        pack.count = round->count;
        flush(&pack);
    } else if (round->kind == RUEDA_ALLGATHER) {
        pack.at = rueda_round_begin(round, round->me);
        move_mine(&pack);
    } else {
        move_all(&pack);
    }
}

void rueda_pack_out(struct rueda_round *round,
                    const struct rueda_device *device, struct rueda_work *work)
{
    struct passage pack = {
        .round = round, .device = device, .work = work, .is_out = true};

    if (rueda_round_is_whole(round)) {
        pack.count = round->count;
        flush(&pack);
    } else if (round->kind == RUEDA_ALLGATHER) {
        move_all(&pack);
    } else {
        pack.at = rueda_layout_span(round->end);
        move_mine(&pack);
    }
}
