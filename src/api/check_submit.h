/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a named operation possible, as far as one rank can tell? src/negotiate
 * compares it with the other ranks. Any thread.
 */
#ifndef RUEDA_API_CHECK_SUBMIT_H
#define RUEDA_API_CHECK_SUBMIT_H

#include <rueda/rueda.h>

#include "base/text.h"
#include "job/set.h"

/* The size of the arguments in the first release, which never changes. */
#define RUEDA_FIRST_SUBMIT_ARGS_BYTES 144

/* Of a name. Messages carry it, so there is an end. */
#define RUEDA_MAX_NAME_BYTES 65535

/*
 * By `rank`, with the set that args->set says, NULL if there is none. args is
 * complete, of the size that we know. On failure error names the rank, the
 * problem and the remedy:
 *
 *      RUEDA_ERR_INVALID      it cannot be
 *      RUEDA_ERR_UNSUPPORTED  it could be, and is not done here
 */
rueda_status rueda_check_submit(int rank, const struct rueda_set *set,
                                const struct rueda_submit_args *args,
                                struct rueda_text *error);

/* The rank and the operation, at the beginning of an error message: `rank 1:
 * allreduce "x" in process set 2: `. */
void rueda_check_begin(int rank, const struct rueda_submit_args *args,
                       struct rueda_text *error);

/* My share of rows that are divided among the members: equal ones, and one more
 * for the lowest. */
static inline size_t rueda_share_of(size_t rows, int members, int me)
{
    return rows / (size_t)members + ((size_t)me < rows % (size_t)members);
}

#endif /* RUEDA_API_CHECK_SUBMIT_H */
