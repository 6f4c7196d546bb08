/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way to connect to a process that may be reached in several ways: at
 * a Unix socket of this host, and at addresses. They are tried in turn; a round
 * over all of them is followed by a pause, each twice as long as the one before
 * it, up to `most_pause_ns`.
 *
 *      PAUSED --> CONNECTING --> CONNECTED --> taken by the owner
 *        ^            |              |
 *        +------------+--------------+--> GIVEN_UP
 *
 * An attempt to connect lasts RUEDA_DIAL_NS at most. What a connection leads to
 * is the owner's matter: it does the handshake, and says by rueda_dial_fail()
 * that it failed, whereupon the next way is tried. A process that does not
 * answer may compute, or be stopped: it has RUEDA_DIAL_NS, twice as long each
 * time, and an answer of its system alone puts off giving up.
 *
 * Running out of descriptors or of ports is logged once in a process, with the
 * remedy, and puts off nothing. Nothing blocks but rueda_dial_wait(). One
 * thread at a time.
 */
#ifndef RUEDA_OS_DIAL_H
#define RUEDA_OS_DIAL_H

#include "base/duration.h"
#include "os/tcp.h"

#define RUEDA_DIAL_NS RUEDA_S(3)

typedef enum rueda_dial_stage {
    RUEDA_DIAL_PAUSED,
    RUEDA_DIAL_CONNECTING,
    RUEDA_DIAL_CONNECTED,
    RUEDA_DIAL_GIVEN_UP,
} rueda_dial_stage;

/* Set by the owner, borrowed. There is one way at least. */
struct rueda_dial_args {
    const char *socket; /* of this host; or NULL */
    const struct rueda_address *addresses;
    int address_count;
    int64_t first_pause_ns;
    int64_t most_pause_ns;
    int64_t limit_ns;                 /* give up after that; INT64_MAX: never */
    void (*watch)(void *arg, int fd); /* told of each socket; or NULL */
    void *arg;
};

struct rueda_dial {
    struct rueda_dial_args args;
    rueda_dial_stage stage;
    int fd;    /* -1: none */
    int way;   /* that is tried, or will be next; the Unix socket comes first */
    int tried; /* ways, in this round */
    int dead_ends;         /* attempts in a row that found no such process */
    int refused_for;       /* attempts for which a refusal still counts */
    int64_t refused_ns;    /* when it first did; 0: never */
    int64_t due_ns;        /* when the pause or the attempt ends */
    int64_t pause_ns;      /* the next one */
    int64_t patience_ns;   /* with the process at the next connection */
    int64_t give_up_ns;    /* may be set by the owner */
    int cause;             /* errno of the last attempt that failed; 0: none */
    struct rueda_text why; /* the same, with the address */
};

/* Start at this way, at the time start_ns. */
void rueda_dial_init(struct rueda_dial *dial,
                     const struct rueda_dial_args *args, int way,
                     int64_t start_ns);

/*
 * Go on as far as possible. RUEDA_OK: dial->fd is connected; whether it has
 * become so by this call is told by *out_is_new. RUEDA_IN_PROGRESS: call again
 * when fd tells, or at rueda_dial_next_ns(). RUEDA_ERR_TIMEOUT: given up.
 */
rueda_status rueda_dial_step(struct rueda_dial *dial, int64_t now_ns,
                             bool *out_is_new);

/*
 * This way does not lead to the process, because of cause, a value of errno.
 * EACCES: another process is there, or it refuses us; ECONNREFUSED: none is.
 * why may be NULL if cause says it all.
 */
void rueda_dial_fail(struct rueda_dial *dial, int cause, const char *why,
                     int64_t now_ns);

/* Close the connection and begin again at start_ns. */
void rueda_dial_rest(struct rueda_dial *dial, int64_t start_ns);

/*
 * Has the other end refused us, and does it still a second later? A process
 * that ends, or that makes room for others, looks for a moment like one that
 * refuses.
 */
bool rueda_dial_is_refused(const struct rueda_dial *dial, int64_t now_ns);

/* Is the way that is tried the Unix socket? */
bool rueda_dial_is_local(const struct rueda_dial *dial);

/* How many ways there are. */
int rueda_dial_ways(const struct rueda_dial *dial);

/* The connection is the owner's now. */
int rueda_dial_take(struct rueda_dial *dial);

/* When a step is due although fd does not tell. */
int64_t rueda_dial_next_ns(const struct rueda_dial *dial);

/* Wait until a step is worth while, or the deadline. */
void rueda_dial_wait(const struct rueda_dial *dial, int64_t deadline_ns);

/* Close the connection, if there is one. May be repeated. */
void rueda_dial_fini(struct rueda_dial *dial);

#endif /* RUEDA_OS_DIAL_H */
