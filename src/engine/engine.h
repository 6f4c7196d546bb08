/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress: which thread makes it, and one turn of it.
 *
 * The thread that holds the engine's token runs engine_turn(): a waiting caller
 * if there is one, else the background thread, which otherwise sleeps, and is
 * started only when a thread submits without waiting, or when stalls must be
 * checked. Nothing in a turn blocks; between turns the holder spins briefly,
 * then yields, then sleeps until a doorbell rings or a peer dies.
 *
 * Operations run in the lanes of their process set (lane.h): ordered ones in
 * one, and those by name in another. No lane waits for another.
 *
 * After the first failure every operation of the context ends with the same
 * status, and the words of that failure stay.
 */
#ifndef RUEDA_ENGINE_ENGINE_H
#define RUEDA_ENGINE_ENGINE_H

#include <rueda/rueda.h>

#include <pthread.h>

#include "base/text.h"
#include "device/accelerator.h"
#include "engine/census.h"
#include "engine/failing.h"
#include "engine/lanes.h"
#include "engine/policy.h"
#include "engine/terms.h"
#include "engine/watch.h"
#include "job/job.h"
#include "op/numbers.h"
#include "op/op.h"

struct rueda_engine {
    struct rueda_job *job;             /* borrowed, like the next */
    struct rueda_formation *formation; /* of the job, in force */
    struct rueda_select select;
    struct rueda_accelerator accelerator; /* any thread; outlives the lanes */

    struct rueda_numbers numbers; /* of operations without a name */

    /* The holder's own: */
    struct rueda_lanes lanes;
    struct rueda_then_list due; /* callbacks, once the token is free */
    struct rueda_op *own; /* the holder waits for it, and no other thread can;
                             or NULL */
    bool is_endless;      /* the holder waits for its operation without end */
    pthread_t yielder;    /* the last thread that waited for its core, ... */
    int64_t delay_ns; /* ... and how long it had waited by then in its life */

    atomic_bool is_failing; /* a thread is writing: */
    struct rueda_text error;
    struct rueda_text
        cause;         /* of a lost peer, for ranks that lose us; holder's */
    atomic_int failed; /* rueda_status, once error is written */
    struct rueda_failing failing; /* the holder's own, */
    struct rueda_terms terms;     /* like this */

    /* The token, and threads that wait for it or for the holder's deliveries.
     */
    atomic_int token;
    atomic_int callers; /* threads that would like to drive */
    atomic_int parked;  /* threads that sleep on `changed` */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the token was released, or one was delivered */
    pthread_cond_t work;    /* for the background thread */
    pthread_t thread;
    atomic_bool has_thread; /* set under lock */
    int64_t retry_ns;       /* when to try to start it again, or 0: it was never
                               tried; under lock */
    bool is_stopping;       /* under lock */
    atomic_bool is_told;    /* the background thread was woken for work */
    bool is_hurried;        /* and must not leave it to others; under lock */

    struct rueda_policy policy; /* its threads: policy.h */
    struct rueda_watch watch;   /* the holder's */
    struct rueda_census census; /* the program's threads */
};

rueda_status rueda_engine_init(struct rueda_engine *engine,
                               struct rueda_job *job, struct rueda_text *error);

/* Ends what is unfinished with RUEDA_ERR_CLOSED. */
void rueda_engine_fini(struct rueda_engine *engine);

/* Submit an operation, ordered or named. A thread that waits drives it, or the
 * background thread, or threads that submit more. Any thread. */
void rueda_engine_submit(struct rueda_engine *engine, struct rueda_op *op);

/* The same, for one that others follow at once: no thread is woken before those
 * have come. */
void rueda_engine_submit_more(struct rueda_engine *engine, struct rueda_op *op);

/* The same, for a chain by `next`: no turn sees only some. */
void rueda_engine_submit_chain(struct rueda_engine *engine,
                               struct rueda_op *first);

/* Submit an operation that lives on the caller's stack, and wait until it has
 * ended; returns its status. */
rueda_status rueda_engine_run(struct rueda_engine *engine, struct rueda_op *op);

/* A caller asks whether an operation has ended, and does not wait: take a turn
 * if the background thread would need a core for it. */
void rueda_engine_poll(struct rueda_engine *engine);

/* The thread that submitted will not wait: its operation has a callback. The
 * background thread takes over at once, for this and for what comes soon. */
void rueda_engine_leave(struct rueda_engine *engine);

/*
 * Wait until op has ended, driving the engine if no other thread does. Returns
 * its status, or RUEDA_ERR_TIMEOUT at the deadline (negative: none).
 */
rueda_status rueda_engine_wait(struct rueda_engine *engine, struct rueda_op *op,
                               int64_t deadline_ns);

/* The same for a slice of a wait without end: at the deadline the caller does
 * nothing but wait again (or says by rueda_engine_poll() that it does not). */
rueda_status rueda_engine_wait_slice(struct rueda_engine *engine,
                                     struct rueda_op *op, int64_t deadline_ns);

/* Where ordered operations of all ranks run. */
const struct rueda_place *rueda_engine_place(const struct rueda_engine *engine);

/* A process set, or NULL; any thread. Valid until it is released, which is to
 * be soon; NULL need not be. */
const struct rueda_set *rueda_engine_hold_set(struct rueda_engine *engine,
                                              int id);
void rueda_engine_release_set(struct rueda_engine *engine,
                              const struct rueda_set *set);

/* One turn; true if anything moved. Only by the holder of the token. */
bool engine_turn(struct rueda_engine *engine);

/* Deliver what has ended. Only by the holder of the token. */
void rueda_engine_deliver(struct rueda_engine *engine);

/* Take a turn also if there is nothing to do here, because other ranks may wait
 * for this one. Only by the holder of the token. */
bool rueda_engine_check(struct rueda_engine *engine);

/* Keep this status and these words if nothing has failed before; true if so.
 * Any thread. */
bool rueda_engine_keep_first(struct rueda_engine *engine, rueda_status status,
                             const char *why);

/* Fail for the program, and make sure that there is a next turn, which ends all
 * operations (failing.h). Any thread that does not hold the token. */
void rueda_engine_abort(struct rueda_engine *engine, const char *why);

/* Fail for good, without a report to other ranks: end all operations with the
 * status of the first failure, or this one. Only by the holder of the token. */
void rueda_engine_end(struct rueda_engine *engine, rueda_status status,
                      const char *why);

/* Before shutdown: for at most a second, finish what other ranks may be waiting
 * for. No other thread drives any more. */
void rueda_engine_flush(struct rueda_engine *engine);

#endif /* RUEDA_ENGINE_ENGINE_H */
