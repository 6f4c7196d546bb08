/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All ranks say through the store where they are, and learn where all others
 * are. Keys:
 *
 *      rank/<r>   what rank r says of itself (topology.h)
 *      job        from rank 0: a nonce and the table, or why there is none
 */
#ifndef RUEDA_JOB_ROLLCALL_H
#define RUEDA_JOB_ROLLCALL_H

#include <rueda/rueda.h>

#include "base/text.h"
#include "job/card.h"
#include "job/seat.h"
#include "job/store/client.h"
#include "job/topology.h"

struct rueda_rollcall {
    unsigned char nonce[RUEDA_NONCE_BYTES]; /* the same in all ranks */
    struct rueda_topology *topology;        /* the caller frees it */
};

/* Blocks until all ranks have come, at most until the deadline. On failure
 * error says who is missing. */
rueda_status rueda_rollcall(struct rueda_client *client,
                            const struct rueda_seat *seat, int64_t deadline_ns,
                            struct rueda_rollcall *out,
                            struct rueda_text *error);

#endif /* RUEDA_JOB_ROLLCALL_H */
