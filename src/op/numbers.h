/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations without a name are matched by their number among those of their
 * process set: one counter a set. Any thread; takes no lock.
 */
#ifndef RUEDA_OP_NUMBERS_H
#define RUEDA_OP_NUMBERS_H

#include <rueda/rueda.h>

#include <stdatomic.h>

/* Ids of sets grow and are never reused, so their number is limited. */
#define RUEDA_NUMBERS_PAGE  1024
#define RUEDA_NUMBERS_PAGES 1024

struct rueda_numbers {
    _Atomic(_Atomic uint64_t *) pages[RUEDA_NUMBERS_PAGES];
};

/* Zeroed, it is ready. */
void rueda_numbers_fini(struct rueda_numbers *numbers);

/* The next number of this set, from 0. RUEDA_ERR_NOMEM, RUEDA_ERR_LIMIT for an
 * id over a million, or RUEDA_ERR_INVALID: this rank has joined it. */
rueda_status rueda_numbers_next(struct rueda_numbers *numbers, int set,
                                uint64_t *out);

/*
 * This rank joins the set: there are no numbers until it may go on, from one
 * that is the same on all ranks. (An operation submitted meanwhile is rejected,
 * and must not use up a number that the other ranks use.) RUEDA_ERR_INVALID: it
 * has joined already.
 */
rueda_status rueda_numbers_join(struct rueda_numbers *numbers, int set);
void rueda_numbers_go_on(struct rueda_numbers *numbers, int set,
                         uint64_t number);

#endif /* RUEDA_OP_NUMBERS_H */
