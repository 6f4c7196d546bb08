/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failure has one of three sizes, which rueda_failing_size_of() decides:
 *
 *      operation the members end this one alike, or it concerns this rank
 *                alone: a mismatch that the order source found, an argument, a
 *                message of another length. It has words of its own
 *                (rueda_batch_refuse()), and all others go on.
 *      term      a member is lost. With RUEDA_REPAIR=1 the others go on in
 *                the next term (terms.h); else, or where that does not cover
 *                what is in flight, the context ends with the term.
 *      context   this rank cannot go on, or the program says so.
 *
 * The last two are a state that turns of the engine carry on:
 *
 *      REPAIRING the members change to the next term; back to NOT, or, if they
 *                cannot, on to the next stage
 *      HEARING   a peer is lost: wait for the words of the rank that failed
 *                first, on this host or another
 *      TELLING   the words stand: wait until the store has them
 *      OVER      the ranks of this host were told, all operations have ended,
 *                and the connections are closed
 *
 * The words go to the store before the ranks of this host hear them, and before
 * connections end, for the peers that lose one then find the words waiting. No
 * step waits: the stages have deadlines (failure_report.h), and in a job of one
 * host all of them pass within one turn. New operations that are submitted
 * meanwhile end with the others.
 *
 * Only by the holder of the engine's token, except where noted.
 */
#ifndef RUEDA_ENGINE_FAILING_H
#define RUEDA_ENGINE_FAILING_H

#include <rueda/rueda.h>

#include <stdint.h>

#include "job/failure_report.h"

struct rueda_engine;

typedef enum rueda_failing_stage {
    RUEDA_FAILING_NOT,
    RUEDA_FAILING_REPAIRING,
    RUEDA_FAILING_HEARING,
    RUEDA_FAILING_TELLING,
    RUEDA_FAILING_OVER,
} rueda_failing_stage;

typedef enum rueda_failing_size {
    RUEDA_FAILING_OPERATION,
    RUEDA_FAILING_TERM,
    RUEDA_FAILING_CONTEXT,
} rueda_failing_size;

struct rueda_failing {
    rueda_failing_stage stage;
    rueda_failing_size size; /* unless the stage is NOT; no operation alone */
    struct rueda_hearing hearing;
    int peer; /* whose connection was lost; -1: not known */
};

/* How much ends with this failure: of a send or receive of one operation, or of
 * anything else that a turn has returned. */
rueda_failing_size rueda_failing_size_of(rueda_status status, bool is_message);

/* A turn has returned this failure: begin to fail in the size that it has. peer
 * is the rank whose connection was lost, or -1. */
void rueda_failing_take(struct rueda_engine *engine, rueda_status status,
                        int peer, const char *why);

/* Begin to fail, the whole context, with this status and these words, unless
 * the engine fails already. */
void rueda_failing_begin(struct rueda_engine *engine, rueda_status status,
                         const char *why);

/* Begin to fail, the term, with RUEDA_ERR_PEER_LOST and words that say which
 * rank is gone; peer is the one whose connection was lost, if no other is
 * found. An operation is in flight. */
void rueda_failing_begin_by_peer(struct rueda_engine *engine, int peer);

/* Carry on; true if operations ended by it. */
bool rueda_failing_turn(struct rueda_engine *engine);

/* The change of terms is over, or has been given up: on with the failure. */
void rueda_failing_end_repair(struct rueda_engine *engine, bool is_repaired);

/* Does the engine fail, with turns still to be taken for it? */
bool rueda_failing_is_on(const struct rueda_engine *engine);

/* Carry on to the end, which deadlines bring. For a thread that may sleep and
 * whose engine no other thread drives any more. */
void rueda_failing_finish(struct rueda_engine *engine);

/* A thread that does not hold the token fails for the program: its words stand
 * if they are the first. Returns when the store has them, after 300 ms at most;
 * operations end at the holder's next turn. */
void rueda_failing_by_program(struct rueda_engine *engine, const char *why);

#endif /* RUEDA_ENGINE_FAILING_H */
