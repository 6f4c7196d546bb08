/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meetings of pairs of ranks at distances of powers of two: what
 * doubling.c, halving_doubling.c and adasum.c have in common.
 *
 * The core is the largest power of two of ranks, not above the number there
 * is. On level l its rank r meets rank r ^ 2^l. Each rank beyond the core
 * belongs to one of it, which takes its vector in at first and gives it the
 * result at the end: it is folded into the core.
 *
 * The functions fill in an exchange that has been begun. Called like the task.
 */
#ifndef RUEDA_ALGO_CORE_H
#define RUEDA_ALGO_CORE_H

#include "algo/chunk.h"
#include "algo/exchange.h"

/* The number of levels. */
int rueda_algo_core_levels(const struct rueda_task *task);

/* Does this rank belong to the core? */
bool rueda_algo_core_has(const struct rueda_task *task);

/* The rank beyond the core that is folded into this one, or the one that this
 * one is folded into; negative if there is none. */
int rueda_algo_core_folded(const struct rueda_task *task);

int rueda_algo_core_partner(const struct rueda_task *task, int level);

/* What this rank and its partner of a level keep after the vector has been
 * halved between them. */
struct rueda_range rueda_algo_core_mine(const struct rueda_task *task,
                                        int level);
struct rueda_range rueda_algo_core_theirs(const struct rueda_task *task,
                                          int level);

/* Give the partner what I have of recv after this level, and get its part. */
void rueda_algo_core_double(struct rueda_exchange *exchange,
                            const struct rueda_task *task, int level);

/* Bring recv to the rank beyond the core, if there is one. */
void rueda_algo_core_unfold(struct rueda_exchange *exchange,
                            const struct rueda_task *task);

#endif /* RUEDA_ALGO_CORE_H */
