/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations without a name are matched by their number among those of their
 * process set: one counter a set. Any thread; takes no lock.
 */
#ifndef RUEDA_OP_NUMBERS_H
#define RUEDA_OP_NUMBERS_H

#include <rueda/rueda.h>

#include <stdatomic.h>

/* Sets are counted up and never come again, so there is an end to them. */
#define RUEDA_NUMBERS_PAGE  1024
#define RUEDA_NUMBERS_PAGES 1024

struct rueda_numbers {
    _Atomic(_Atomic uint64_t *) pages[RUEDA_NUMBERS_PAGES];
};

/* Zeroed, it is ready. */
void rueda_numbers_fini(struct rueda_numbers *numbers);

/* The next number of this set, from 0. RUEDA_ERR_NOMEM, or RUEDA_ERR_LIMIT for
 * an id over a million. */
rueda_status rueda_numbers_next(struct rueda_numbers *numbers, int set,
                                uint64_t *out);

/*
 * Others have used this number in an operation to which this rank, having
 * joined, gave nothing of its own: its own numbers go on after it. Without
 * memory the number is lost, and a later operation does not match.
 */
void rueda_numbers_skip(struct rueda_numbers *numbers, int set,
                        uint64_t number);

#endif /* RUEDA_OP_NUMBERS_H */
