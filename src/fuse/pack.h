/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors into the slab that they share, and out of it. The device moves them,
 * many parts in one call:
 *
 *                      in                          out
 *      allreduce       whole tensors               whole tensors
 *      broadcast       whole tensors of the root   whole tensors
 *      allgather       this member's block         the blocks of all members
 *      reduce-scatter  the blocks of all members   this member's block, which
 *                                                  is behind all the others
 *
 * A slab that other ranks read is published by being packed. The calls return
 * without waiting; rueda_device_poll() tells when the row of work is done. They
 * are made by the thread that owns the slab and the row.
 */
#ifndef RUEDA_FUSE_PACK_H
#define RUEDA_FUSE_PACK_H

#include "fuse/rounds.h"

void rueda_pack_in(struct rueda_round *round, const struct rueda_device *device,
                   struct rueda_work *work);
void rueda_pack_out(struct rueda_round *round,
                    const struct rueda_device *device, struct rueda_work *work);

#endif /* RUEDA_FUSE_PACK_H */
