/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a rank comes to know where the job's store is, and the job's key: from
 * settings, or from rank 0 by a card that travels through the launcher's own
 * exchange. Rank 0 opens the store on the way.
 *
 * A launcher takes leave of a process after its exchange, so what it said is
 * remembered for the life of the process: a later rueda_init() finds the same
 * store. That is state of the process, like its environment, and the only such
 * state in job/.
 */
#ifndef RUEDA_JOB_INTRODUCE_H
#define RUEDA_JOB_INTRODUCE_H

#include <rueda/rueda.h>

#include "auth/key.h"
#include "base/text.h"
#include "job/seat.h"
#include "job/store/keeper.h"

struct rueda_introduce_args {
    const struct rueda_seat *seat;
    const struct rueda_key *key; /* of RUEDA_KEY_FILE; present or not */
    rueda_config_keeper keeper;  /* of the store that settings name */

    int questions; /* of a store of ours (keeper.h) */

    /* For RUEDA_INTRODUCE_CALLER: as rueda_init_args.exchange. */
    int (*exchange)(void *arg, void *bytes, size_t len);
    void *exchange_arg;
    int64_t deadline_ns;
};

/* How to reach the store. */
struct rueda_contact {
    char socket[128]; /* "": none */
    struct rueda_address addresses[RUEDA_KEEPER_MOST_ADDRESSES];
    int address_count;
    struct rueda_key key;
    struct rueda_keeper *keeper; /* rank 0, unless the launcher keeps it */

    /* A store that outlives the job serves the lives of a process one after
     * another: which one this is, from 1; 0: the store is this life's own. */
    unsigned life;
};

/* Blocks until the deadline at most, in getaddrinfo() perhaps longer. On
 * failure error has the words and nothing is left. */
rueda_status rueda_introduce(const struct rueda_introduce_args *args,
                             struct rueda_contact *out,
                             struct rueda_text *error);

/* Close the store, if it is ours; forget the key. */
void rueda_contact_fini(struct rueda_contact *contact);

/* Write a new key to a new file, which only its owner may read. */
rueda_status rueda_introduce_new_key(const char *path,
                                     struct rueda_text *error);

#endif /* RUEDA_JOB_INTRODUCE_H */
