/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper serves the store where no launcher does: a thread of rank 0 that
 * answers the ranks over a Unix socket and TCP. It sleeps while no rank asks.
 *
 * Every connection proves the job's key before another byte of it is read;
 * over the Unix socket the same user is proof enough where there is no key.
 * Then it says which rank of how many it is, inside the handshake, and speaks
 * the frames of wire.h.
 */
#ifndef RUEDA_JOB_STORE_KEEPER_H
#define RUEDA_JOB_STORE_KEEPER_H

#include <stdbool.h>

#include <rueda/rueda.h>

#include "auth/key.h"
#include "base/text.h"
#include "os/tcp.h"

#define RUEDA_KEEPER_MOST_ADDRESSES 8

struct rueda_keeper_args {
    int size; /* ranks of the job; 0: it changes */
    int most; /* guests at a time; 0: as many as a job of this size has */
    const char *socket;          /* name of the Unix socket, or NULL */
    const struct rueda_key *key; /* present or not; copied */

    /* Where to listen for TCP, which takes a key; port 0: any that is free. */
    const struct rueda_address *addresses;
    int address_count;

    /* Over TCP: questions without an answer, one a second, until a guest is
     * gone. 0: 4. */
    int questions;

    /* Called on the keeper's thread for every key with this prefix that is set,
     * with what it is set to; NULL: not at all. The key has no end. */
    const char *watched;
    void (*changed)(void *arg, const char *key, size_t key_bytes,
                    const void *value, size_t bytes);
    void *arg;
};

struct rueda_keeper;

/* Listen, and start the thread. On failure error has the words and nothing is
 * left. */
rueda_status rueda_keeper_open(const struct rueda_keeper_args *args,
                               struct rueda_keeper **out,
                               struct rueda_text *error);

/* The addresses with the ports that were taken. */
const struct rueda_address *
rueda_keeper_addresses(const struct rueda_keeper *keeper, int *out_count);

/* Has a rank come so far? Any thread. */
bool rueda_keeper_has_met(const struct rueda_keeper *keeper);

/* Set a key, as a guest would, after all that was set before; any thread. Does
 * not wait. False: no memory. */
bool rueda_keeper_set(struct rueda_keeper *keeper, const char *key,
                      const void *value, size_t bytes);

/* Take leave of all guests, stop the thread, free. NULL is allowed. */
void rueda_keeper_close(struct rueda_keeper *keeper);

#endif /* RUEDA_JOB_STORE_KEEPER_H */
