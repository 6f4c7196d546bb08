/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network that cuts: a thread that forwards TCP connections over loopback to
 * another port, and ends one now and then, at any byte in either direction, as
 * a middlebox, a crash or a full table of connections would; and that changes
 * or repeats a piece, as an attacker would. It draws moments and ways from a
 * seed; what it meets there depends on the run. The end of a process, also by a
 * reset, reaches the other side as an ordinary end.
 */
#ifndef RUEDA_TESTS_SUPPORT_CUTTER_H
#define RUEDA_TESTS_SUPPORT_CUTTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CUTTER_MOST 32 /* connections at a time */

struct cutter {
    int port; /* where it listens */
    int to;   /* port to which it forwards */
    /* One piece in so many that pass ends its connection, has a bit changed or
     * passes twice; 0: none. */
    atomic_int one_in;
    atomic_int cuts;
    atomic_int changes;

    int listener;
    int wake[2];
    uint64_t seed;
    struct cutter_pair {
        int fds[2];      /* -1: free */
        bool is_over[2]; /* nothing more comes from there */
    } pairs[CUTTER_MOST];
    pthread_t thread;
};

/* Begin to forward. False: the system has no socket or thread. */
bool cutter_open(struct cutter *cutter, int to, uint64_t seed);

/* End all connections, and the thread. */
void cutter_close(struct cutter *cutter);

#endif /* RUEDA_TESTS_SUPPORT_CUTTER_H */
