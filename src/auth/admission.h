/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way into a process for connections from outside: it accepts them at
 * listeners, lets each prove itself by the handshake, and hands the proven ones
 * to its owner. Until then a connection is a stranger, and nothing of it is
 * read but the handshake.
 *
 *      listener --accept--> stranger --handshake--> ops->proven()
 *                              |
 *                              +--> refused: slow, wrong, left, or the oldest
 *                                   of too many
 *
 * Strangers are many and may be hostile. `most` of them are held at a time; one
 * more takes the place of the oldest, and a rank that lost its place this way
 * dials again. Each has RUEDA_ADMISSION_NS for all of its handshake. Refusals
 * are counted and each kind is logged once in a while (refusals.h). When
 * descriptors run out, that is logged once with the remedy, and connections
 * are accepted with a spare descriptor and closed at once, so that the end that
 * dialled learns of it and can give up.
 *
 * The owner watches one descriptor, rueda_admission_fd(), and calls
 * rueda_admission_progress() when it is readable or when
 * rueda_admission_next_ns() has come. Nothing blocks. One thread at a time.
 *
 * The rest of this folder is what an admission stands on, and what follows it:
 *
 *      key.h                the secret that all ranks of a job have
 *      handshake.h          the proof of it, as a state machine without I/O
 *      shake.h              runs a handshake over a stream
 *      cipher.h             the ciphers that this machine has
 *      seal.h               encrypts and authenticates what follows
 *      sealed_stream.h      the same for a stream of bytes
 *      envelope.h           seals the key for one rank, on its way there
 *      object.h             seals of objects that ranks unpickle
 */
#ifndef RUEDA_AUTH_ADMISSION_H
#define RUEDA_AUTH_ADMISSION_H

#include "auth/refusals.h"
#include "auth/shake.h"
#include "base/duration.h"

#define RUEDA_ADMISSION_MOST      64
#define RUEDA_ADMISSION_LISTENERS 16
#define RUEDA_ADMISSION_NS        RUEDA_S(5)

struct rueda_admission_ops {
    /* Optional. Writes what this end says about itself on fd; returns how many
     * bytes. Without it this end says nothing. */
    size_t (*about)(void *arg, int fd,
                    unsigned char out[RUEDA_HANDSHAKE_ABOUT_MAX]);

    /*
     * The connection has proven itself; from has len 0 for Unix sockets.
     * RUEDA_OK: the owner has taken fd. RUEDA_IN_PROGRESS: it needs more bytes,
     * and is asked again when they are there, inside the same deadline. Else
     * fd is closed, and why, unless it is empty, is logged as a refusal. shake
     * is borrowed for the call.
     */
    rueda_status (*proven)(void *arg, int fd,
                           const struct rueda_handshake *shake,
                           const struct rueda_address *from,
                           struct rueda_text *why);

    /* Optional. True: a connection from there that leaves or is slow is not
     * worth a warning. */
    bool (*is_expected)(void *arg, const struct rueda_address *from);
};

struct rueda_admission_args {
    const char *who;  /* accepts, in log lines: "the store"; copied */
    unsigned purpose; /* of connections that are let in: one or a sum */
    const struct rueda_key *key; /* borrowed until fini */
    int most;                    /* strangers at a time; 0: the usual number */
    int keep_alive;              /* questions of TCP's keep-alive; 0: none */
    const struct rueda_admission_ops *ops;
    void *arg;
};

struct rueda_stranger;

/* Memory is the owner's; the fields are private. Zeroed: nothing to undo. */
struct rueda_admission {
    struct rueda_admission_args args;
    char who[32];
    int poller; /* of listeners and strangers; 0 if never made */
    int spare;  /* a descriptor to accept with when there is no other; or -1 */
    int listeners[RUEDA_ADMISSION_LISTENERS]; /* borrowed */
    bool is_local[RUEDA_ADMISSION_LISTENERS];
    int listener_count;
    int64_t rest_ns;  /* listeners are not watched until then; 0: they are */
    bool has_more;    /* connections wait, and the descriptor may not tell */
    bool is_short;    /* descriptors have run out at least once */
    int64_t short_ns; /* since when there are none; 0: there are */
    uint64_t count;   /* of strangers so far */
    struct rueda_refusals refusals;
    struct rueda_stranger *strangers; /* [args.most] */
};

/* RUEDA_ERR_NOMEM, or RUEDA_ERR_IO with the cause in errno. Undo with
 * rueda_admission_fini() in each case. */
rueda_status rueda_admission_init(struct rueda_admission *admission,
                                  const struct rueda_admission_args *args);

/* Accept at this listener, which stays the owner's and is to be closed after
 * fini. is_local: it is a Unix socket; without a key only processes of our own
 * user may connect to it. */
rueda_status rueda_admission_listen(struct rueda_admission *admission,
                                    int listener, bool is_local);

/* The descriptor to watch for reading. */
int rueda_admission_fd(const struct rueda_admission *admission);

/* Accept, take handshakes further, refuse what is late. */
void rueda_admission_progress(struct rueda_admission *admission,
                              int64_t now_ns);

/* When that is due although the descriptor does not tell; INT64_MAX: never. */
int64_t rueda_admission_next_ns(const struct rueda_admission *admission);

/* Have descriptors run out at least once? */
bool rueda_admission_is_short(const struct rueda_admission *admission);

/* Since when connections are not accepted because descriptors have run out; 0:
 * the last one was accepted. */
int64_t rueda_admission_short_ns(const struct rueda_admission *admission);

/* Log a refusal of a connection that this admission has let in. */
void rueda_admission_refuse(struct rueda_admission *admission,
                            rueda_refusal kind,
                            const struct rueda_address *from, const char *why);

/* In the child of a fork: close the copies of all descriptors but listeners. */
void rueda_admission_forked(const struct rueda_admission *admission);

/* Close all strangers and say how many were refused. May be repeated. */
void rueda_admission_fini(struct rueda_admission *admission);

#endif /* RUEDA_AUTH_ADMISSION_H */
