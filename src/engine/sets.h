/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process sets as other threads see them, and how sets are added and removed:
 * all ranks, members or not, carry out the same decisions of the lane of all
 * ranks.
 */
#ifndef RUEDA_ENGINE_SETS_H
#define RUEDA_ENGINE_SETS_H

#include "engine/lanes.h"

/* A set, or NULL; any thread. Valid as long as the lanes. */
const struct rueda_set *rueda_sets_find(const struct rueda_lanes *lanes,
                                        int id);

/* A copy of a set of the table that stays as long as the lanes, or NULL. The
 * holder of the token, also for the next three. */
const struct rueda_set *rueda_sets_keep(struct rueda_lanes *lanes, int id);

/* Such a copy of a set that is in no table; the ranks are ascending. */
const struct rueda_set *rueda_sets_copy(struct rueda_lanes *lanes, int id,
                                        const int *ranks, int count);

/* A copy of the set of all ranks of a formation, not yet that of the lanes. */
const struct rueda_set *
rueda_sets_copy_all(struct rueda_lanes *lanes,
                    const struct rueda_formation *formation);

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
