/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process sets as other threads see them, and how sets are added and removed:
 * all ranks, members or not, carry out the same decisions of the lane of all
 * ranks.
 */
#ifndef RUEDA_ENGINE_SETS_H
#define RUEDA_ENGINE_SETS_H

#include "engine/lanes.h"

/* A set, or NULL. The holder of the token; valid until the set is hidden and
 * no lane has it. */
const struct rueda_set *rueda_sets_find(const struct rueda_lanes *lanes,
                                        int id);

/* The same for any thread: valid until it is released, which is to be soon,
 * because meanwhile no memory of sets is given back. NULL need not be
 * released. */
const struct rueda_set *rueda_sets_hold(struct rueda_lanes *lanes, int id);
void rueda_sets_release(struct rueda_lanes *lanes, const struct rueda_set *set);

/* A copy of a set of the table, or NULL. It stays until it was shown and is
 * hidden, and no lane has it; or is discarded. The holder of the token, also
 * for all below. */
const struct rueda_set *rueda_sets_keep(struct rueda_lanes *lanes, int id);

/* Such a copy of a set that is in no table; the ranks are ascending. */
const struct rueda_set *rueda_sets_copy(struct rueda_lanes *lanes, int id,
                                        const int *ranks, int count);

/* A copy of the set of all ranks of a formation, not yet that of the lanes. */
const struct rueda_set *
rueda_sets_copy_all(struct rueda_lanes *lanes,
                    const struct rueda_formation *formation);

/* A copy that was not shown, and that no lane has. */
void rueda_sets_discard(struct rueda_lanes *lanes, const struct rueda_set *set);

/* Show such a copy to all threads, or hide it. Nothing is changed where there
 * is no memory. */
rueda_status rueda_sets_show(struct rueda_lanes *lanes,
                             const struct rueda_set *set);
rueda_status rueda_sets_hide(struct rueda_lanes *lanes, int id);

/* Show such a copy in place of the set of the same id. */
rueda_status rueda_sets_replace(struct rueda_lanes *lanes,
                                const struct rueda_set *set);

void rueda_sets_free(struct rueda_lanes *lanes);

#endif /* RUEDA_ENGINE_SETS_H */
