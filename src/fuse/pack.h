/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors into the slab that they share, and out of it, for every kind of
 * collective: a list of parts is made one after another, and the device moves
 * them together.
 *
 *      allreduce       whole tensors, each from a multiple of 64 bytes on
 *      allgather       in:  the rows that this member gives, of each tensor
 *                      out: the rows of each member, of each tensor
 *      reduce-scatter  in:  each member's share of each tensor
 *                      out: this member's share of each tensor
 *
 * A slab that other ranks read is published by being packed. Called by the
 * thread that owns the slab and the row of work.
 */
#ifndef RUEDA_FUSE_PACK_H
#define RUEDA_FUSE_PACK_H

#include "device/device.h"
#include "fuse/layout.h"

/* Parts that are moved one way. They go to the device when there are `room` of
 * them, and by rueda_pack_flush(). */
struct rueda_pack {
    const struct rueda_device *device;
    struct rueda_work *work;
    char *slab;
    bool is_out;              /* from the slab to the tensors */
    struct rueda_part *parts; /* [room], borrowed */
    int room;
    int count;
    size_t end; /* of the last part in the slab */
};

/* The parts that are in the list so far. */
void rueda_pack_flush(struct rueda_pack *pack);

static inline struct rueda_part *rueda_pack_next(struct rueda_pack *pack,
                                                 size_t bytes)
{
    struct rueda_part *part;

    if (pack->count == pack->room)
        rueda_pack_flush(pack);
    part = &pack->parts[pack->count++];
    part->at = pack->end;
    part->bytes = bytes;
    pack->end += bytes;
    return part;
}

/* The next bytes of the slab are these; NULL: zeros. */
static inline void rueda_pack_in(struct rueda_pack *pack, const void *tensor,
                                 size_t bytes)
{
    rueda_pack_next(pack, bytes)->send = tensor;
}

/* The next bytes of the slab go there; NULL: nowhere. */
static inline void rueda_pack_out(struct rueda_pack *pack, void *tensor,
                                  size_t bytes)
{
    rueda_pack_next(pack, bytes)->recv = tensor;
}

#endif /* RUEDA_FUSE_PACK_H */
