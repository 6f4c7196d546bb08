/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines about connections that were refused. Any process can connect, a
 * thousand times a second, so each kind of refusal is logged once, with the
 * address; the number of further ones is logged when a while is over. One
 * thread at a time.
 */
#ifndef RUEDA_AUTH_REFUSALS_H
#define RUEDA_AUTH_REFUSALS_H

#include <stdint.h>

#include "os/tcp.h"

/* Kinds of callers. */
typedef enum rueda_refusal {
    RUEDA_REFUSED_UNPROVEN, /* no key, a wrong one, or another protocol */
    RUEDA_REFUSED_VERSION,
    RUEDA_REFUSED_MISFIT, /* knows the key and does not belong here */
    RUEDA_REFUSED_LEFT,   /* before it had proven itself */
    RUEDA_REFUSED_SLOW,   /* did not say so in time */
    RUEDA_REFUSED_CROWD,  /* made room for others */
    RUEDA_REFUSAL_KINDS,
} rueda_refusal;

/* Zeroed to begin with. */
struct rueda_refusals {
    struct {
        int64_t until_ns; /* nothing is said before; 0: it can be */
        unsigned held;    /* what was not said meanwhile */
    } kinds[RUEDA_REFUSAL_KINDS];
};

/* Which kind of caller a failed handshake was. */
rueda_refusal rueda_refusal_of(rueda_status status);

/* Log that `who` refused the connection from there, and why; from may be NULL.
 */
void rueda_refuse(struct rueda_refusals *refusals, rueda_refusal kind,
                  const char *who, const struct rueda_address *from,
                  const char *why, int64_t now_ns);

/* Say how many more there were, of those kinds whose while is over. INT64_MAX:
 * all of them. */
void rueda_refusals_sum(struct rueda_refusals *refusals, const char *who,
                        int64_t now_ns);

#endif /* RUEDA_AUTH_REFUSALS_H */
