/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes are the ranks of an elastic job, and when that changes. A
 * state machine without I/O, clock or thread: events go in, actions come out
 * through a callback, and the time is told to it.
 *
 *      host     where processes may run: name, slots, and whether its agent is
 *               there. Its number stays the same for the life of the job.
 *      slot     room for one process on a host
 *      worker   one process; it has a number that is never used again
 *      member   a worker that has a rank in the present term
 *      term     the ranks between two changes, numbered from 1
 *
 * A worker begins by asking for a place, which is to say that it is ready. It
 * gets one when the next term is formed; and when it has left a term, because
 * a rank is lost or because it heard of a change, it asks again.
 *
 *            START           ready           PLACE
 *      (new) -----> starting -----> waiting -------> member
 *                                      ^               |
 *                                      +--- ready -----+
 *
 * A term is formed once no member of the one before is left in it, and enough
 * workers wait. So nothing interrupts ranks that work: a newcomer starts in the
 * background, and the members hear of it (CHANGE) when it waits. Ranks are 0 to
 * n-1. Those who stay keep theirs; where one is free the highest moves down.
 * Rank 0, which hands out its state, is a worker whose training has come
 * farthest, never a newcomer.
 *
 * A process that fails bars its slot, or its whole host if the job is run as
 * Horovod runs it; a lost agent bars the host. What is barred comes back after
 * the cooldown, if there is one.
 *
 * A worker or a host that is told to leave is drained: it stays a member until
 * the others hear of it at their next commit, and is left out of the term
 * after that.
 */
#ifndef RUEDA_LAUNCH_MEMBERSHIP_H
#define RUEDA_LAUNCH_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "job/rendezvous.h"
#include "launch/hosts.h"

struct rueda_membership_args {
    int size;            /* ranks of the first term */
    int least;           /* ranks of any other */
    int most;            /* processes at a time */
    int reset_limit;     /* terms after the first; -1: any number */
    int cooldown_low_s;  /* 0: what is barred stays so */
    int cooldown_high_s; /* at most */
    int64_t patience_ns; /* for enough ranks to be there */
    bool bars_hosts;     /* for one failed process */
    bool tells_early;    /* of newcomers that have not asked yet; the next term
                            waits for them */
    uint64_t seed;       /* of the cooldowns */
};

typedef enum rueda_action_kind {
    RUEDA_ACTION_REACH,  /* host: an agent is needed there */
    RUEDA_ACTION_LEAVE,  /* host: its agent is no longer needed */
    RUEDA_ACTION_START,  /* worker, host, slot, ranks: start a process; the
                            ranks are a guess for its variables, of term 0 */
    RUEDA_ACTION_RANKS,  /* worker, ranks */
    RUEDA_ACTION_REFUSE, /* worker, words: it has no place any more, and ends */
    RUEDA_ACTION_KILL,   /* worker */
    RUEDA_ACTION_OVER,   /* term, words: no rank is to wait for it to begin */
    RUEDA_ACTION_CHANGE, /* term, flags: its members hear of a change */
    RUEDA_ACTION_SAY,    /* words, for the user */
    RUEDA_ACTION_END,    /* code, words or "": of the job; the last action */
} rueda_action_kind;

struct rueda_action {
    rueda_action_kind kind;
    int host;
    int slot;
    int worker;
    struct rueda_rendezvous_ranks ranks;
    uint32_t term;
    unsigned flags;
    int code;
    const char *words; /* borrowed for the call; never NULL */
};

struct rueda_membership;

/* Must not call the membership. NULL: no memory. */
struct rueda_membership *
rueda_membership_new(const struct rueda_membership_args *args,
                     void (*act)(void *arg, const struct rueda_action *action),
                     void *arg);
void rueda_membership_free(struct rueda_membership *members);

/* ---- Events. After END nothing happens any more. ------------------------- */

/* These hosts may be used, no others. The first call begins the job. */
void rueda_membership_hosts(struct rueda_membership *members,
                            const struct rueda_hosts *hosts, int64_t now_ns);

/* The agent of a host is there. */
void rueda_membership_reached(struct rueda_membership *members, int host,
                              int64_t now_ns);

/* There is no agent, or no longer, and none of its processes either. */
void rueda_membership_lost(struct rueda_membership *members, int host,
                           const char *why, int64_t now_ns);

/* A worker asks for a place. progress: how far the training has come in the
 * state that it keeps; 0: it has none. */
void rueda_membership_ready(struct rueda_membership *members, int worker,
                            uint64_t progress, int64_t now_ns);

/* A worker has ended: well (code 0), or as words say. */
void rueda_membership_ended(struct rueda_membership *members, int worker,
                            int code, const char *words, int64_t now_ns);

/* A worker, or all of a host, is to leave soon; words say why. Its slots are
 * barred. */
void rueda_membership_drain(struct rueda_membership *members, int worker,
                            const char *words, int64_t now_ns);
void rueda_membership_drain_host(struct rueda_membership *members, int host,
                                 const char *words, int64_t now_ns);

/* A host has come by itself: what it was barred for is forgotten. */
void rueda_membership_welcome(struct rueda_membership *members,
                              const char *name);

/* It may be time for something. */
void rueda_membership_tick(struct rueda_membership *members, int64_t now_ns);

/* When that is; INT64_MAX: never, as it looks now. */
int64_t rueda_membership_next_ns(const struct rueda_membership *members);

/* ---- Questions ---------------------------------------------------------- */

const char *rueda_membership_host_name(const struct rueda_membership *members,
                                       int host);
int rueda_membership_host_slots(const struct rueda_membership *members,
                                int host);
/* -1: it has none yet. The last one, if it has left. */
int rueda_membership_rank(const struct rueda_membership *members, int worker);

#endif /* RUEDA_LAUNCH_MEMBERSHIP_H */
