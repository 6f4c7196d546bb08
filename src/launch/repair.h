/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launcher knows of ranks that the others go on without
 * (RUEDA_REPAIR=1), by what it hears as the one that keeps their store: whether
 * they do so at all (job/rollcall.h), and of whom (job/ballot.h).
 */
#ifndef RUEDA_LAUNCH_REPAIR_H
#define RUEDA_LAUNCH_REPAIR_H

#include "job/store/keeper.h"

struct rueda_launch;
struct rueda_repair;

/* Begin to listen, for a job of this many ranks. Fills in what args says about
 * keys. False: no memory. */
bool rueda_repair_open(int size, struct rueda_keeper_args *args,
                       struct rueda_repair **out);

/* After the keeper is closed. NULL is allowed. */
void rueda_repair_close(struct rueda_repair *repair);

/* Have other ranks gone on without this one, as its host was silent for them?
 * It ends with a failure of its own then, which is none of the job's. */
bool rueda_repair_has_removed(const struct rueda_repair *repair, int rank);

/* Are there ranks that go on without those that have been lost, if they can? */
bool rueda_repair_can_go_on(const struct rueda_launch *launch);

#endif /* RUEDA_LAUNCH_REPAIR_H */
