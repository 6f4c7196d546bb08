/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a lane's tensors run that are not in the memory of the host: a place of
 * the algorithms beside the track's, with a slab in the accelerator's memory to
 * pack them in. It is made for the first batch of such tensors.
 *
 * A rank that has joined and has no accelerator takes part with memory of the
 * host.
 */
#ifndef RUEDA_ENGINE_AWAY_H
#define RUEDA_ENGINE_AWAY_H

#include "algo/algo.h"
#include "base/text.h"

struct rueda_lane;

struct rueda_away {
    struct rueda_place place; /* device NULL: it is not there yet */
    char *fusion;             /* [lane->fusion_bytes] or NULL, as the lane's */
};

/* Make it, if need be, for the accelerator that is open now. Blocks the first
 * time. On failure error has words. */
rueda_status rueda_away_enter(struct rueda_lane *lane,
                              struct rueda_text *error);

/* No batch runs. */
void rueda_away_fini(struct rueda_away *away);

#endif /* RUEDA_ENGINE_AWAY_H */
