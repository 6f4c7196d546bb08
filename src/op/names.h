/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that are in flight in this rank, so that a second operation of a
 * name is refused where it is submitted, by whichever thread. They are in
 * flight until their owners know that the operations have ended.
 *
 * A name is known by 63 bits that are made of it and of its process set. Two
 * names that have the same ones cannot be in flight at once: the second is
 * refused as if it were the first. With a million names the odds of that are
 * one to ten million in a whole job, and nothing worse comes of it.
 *
 * Entering and leaving take no lock: the buckets of a table are filled and
 * never emptied again, a name that left keeps its bucket and finds it when it
 * comes again. When most buckets are used up, by names that are not used again
 * or by many at once, the next thread that enters makes a new table of the
 * names in flight. Other threads wait meanwhile.
 */
#ifndef RUEDA_OP_NAMES_H
#define RUEDA_OP_NAMES_H

#include <rueda/rueda.h>

#include <pthread.h>
#include <stdatomic.h>

struct rueda_names_table;

struct rueda_names {
    struct rueda_names_table
        *table; /* NULL: none yet. Changed only while no thread is inside */
    atomic_int inside;       /* threads that use the table */
    atomic_bool is_closed;   /* one of them wants to change it */
    pthread_mutex_t change;  /* held by that one, to its end */
    pthread_mutex_t lock;    /* of the condition alone */
    pthread_cond_t is_empty; /* no thread is inside */
};

void rueda_names_init(struct rueda_names *names);
void rueda_names_fini(struct rueda_names *names);

/* What a name is known by: its process set, and rueda_name_hash() of it. */
uint64_t rueda_names_key(int set, uint64_t hash);

/*
 * Of several threads that enter a name, one gets RUEDA_OK and is to leave; the
 * others get RUEDA_ERR_INVALID until it has. RUEDA_ERR_NOMEM: too many are in
 * flight for the memory there is.
 */
rueda_status rueda_names_enter(struct rueda_names *names, uint64_t key);

/* Which has been entered. */
void rueda_names_leave(struct rueda_names *names, uint64_t key);

#endif /* RUEDA_OP_NAMES_H */
