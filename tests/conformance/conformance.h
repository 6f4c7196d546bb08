/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every transport must do, as cases that know nothing of transports but
 * the contract in transport.h. A transport's test program says how a pair of
 * endpoints comes about and runs them all.
 */
#ifndef RUEDA_TESTS_CONFORMANCE_H
#define RUEDA_TESTS_CONFORMANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "segment/segment.h"
#include "transport/transport.h"

struct fixture;

/* The two ends of one connection. A case that closes an end sets it to NULL. */
struct pair {
    const struct fixture *fixture;
    struct rueda_ep *a;
    struct rueda_ep *b;
    void *owner; /* the fixture's */
};

struct fixture {
    const char *name;

    /* Fill in a, b and owner. Asserts what it needs. */
    void (*open)(struct pair *pair);

    /* Close the ends that are there, and whatever open() made. */
    void (*close)(struct pair *pair);

    /* Optional: b's rank dies without closing its end, which stays to be
     * closed by close(). */
    void (*vanish)(struct pair *pair);
};

/* Runs the cases of messages from any peer; part of conformance_run(). */
int conformance_run_any(const struct fixture *fixture);

/* Runs all cases; returns the number of those that failed. */
int conformance_run(const struct fixture *fixture);

/* ---- For cases, of the suite and of a transport's own ---------------- */

struct rueda_tag tag_of(uint64_t sequence);

int64_t now_ns(void);

/* Progress on both ends until the request has ended, or seconds have passed;
 * returns its status. */
rueda_status drive(struct pair *pair, const struct rueda_req *req);

/* Progress on one end until it says PEER_LOST, or seconds have passed; returns
 * what it said last. */
rueda_status drive_to_end(struct rueda_ep *ep);

/* Bytes that differ from place to place and from seed to seed. */
void fill(unsigned char *buf, size_t len, uint64_t seed);
bool is_filled(const unsigned char *buf, size_t len, uint64_t seed);

/* ---- Stress ---------------------------------------------------------- */

/* One end of a conversation in which both send and receive at random. */
struct stress {
    struct rueda_ep *ep;
    int side;    /* 0 and 1, as the two sides send different things */
    int windows; /* how long: each is four messages each way */
    struct rueda_segment *segment; /* to sleep in when idle; NULL: yield */
};

/* Runs one end, in any thread or process. */
rueda_status stress_run(const struct stress *stress);

#endif /* RUEDA_TESTS_CONFORMANCE_H */
