/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a context is made of; only for src/api.
 *
 * This folder holds the functions of rueda.h. A function here checks what one
 * rank alone can check, makes an operation and hands it to the engine, which
 * finds out the rest together with the other ranks:
 *
 *     rueda_init(), rueda_shutdown()          ctx.c
 *     rueda_submit() and groups               check_submit.c, submit.c
 *     rueda_start(), rueda_run() and on       check.c, coll.c
 *     process sets, timeline, GPUs            sets.c, timeline.c, gpus.c
 *     rueda_poll(), rueda_wait(), results     result.c
 *
 * Three headers are for others than programs: default.h and pickle.h for the
 * modules of bindings, internal.h for the tools.
 *
 * Any thread may call, also several at once; rueda_shutdown() alone is the last
 * call of its context. Each function that fails leaves a message for
 * rueda_last_error() of its thread (rueda_fault()). Nothing here waits except
 * functions that say so in rueda.h, and those refuse to be called in a callback
 * (rueda_ctx_check_wait()).
 */
#ifndef RUEDA_API_CTX_H
#define RUEDA_API_CTX_H

#include <rueda/rueda.h>

#include "device/gauge.h"
#include "engine/engine.h"
#include "job/job.h"
#include "op/names.h"
#include "op/op.h"
#include "os/process.h"

/* For the sequences of objects (pickle.h). */
#define RUEDA_PICKLE_COUNTERS 16384

/* rueda_shutdown() ends the engine first, since its threads use all the rest.
 */
struct rueda_ctx {
    struct rueda_job *job;
    struct rueda_engine engine;
    struct rueda_op_pool ops;
    struct rueda_names names; /* of operations that are in flight */
    struct rueda_fork_hook fork_hook;
    struct rueda_timeline *timeline; /* rank 0's, or NULL; under timeline_lock,
                                        with this: */
    char *timeline_path;
    pthread_mutex_t timeline_lock;
    atomic_uint_least64_t pickle_counts[RUEDA_PICKLE_COUNTERS];
    struct rueda_gauge gauge; /* of GPUs */
    atomic_bool is_forked;    /* this is a child's copy: dead */
};

/* The ranks and their numbers, as the program sees them now (engine/terms.h):
 * these change only in rueda_step(). Any thread; valid as long as the context.
 */
static inline const struct rueda_formation *
rueda_ctx_formation(const rueda_ctx *ctx)
{
    return atomic_load_explicit(&ctx->engine.terms.seen, memory_order_acquire);
}

/* RUEDA_OK, or why nothing can start any more, as status and message: the first
 * failure of the engine, or a fork. */
rueda_status rueda_ctx_check(const rueda_ctx *ctx);

/* RUEDA_OK, or, in a callback, that this thread must not wait, as status and
 * message. Call it before submitting anything that would be waited for. */
rueda_status rueda_ctx_check_wait(void);

/* A server is in no collective: RUEDA_ERR_INVALID there, with words. */
rueda_status rueda_ctx_check_worker(const rueda_ctx *ctx);

/* Keep the message for rueda_last_error(); returns status. */
rueda_status rueda_fault(rueda_status status, const char *words);

/* Make the process sets of a text (job/set_text.h), with all other ranks. */
rueda_status rueda_static_sets_make(rueda_ctx *ctx, const char *text,
                                    struct rueda_text *error);

/* The timeline that settings ask for, if any, on rank 0; a file that cannot be
 * made is logged. Before anything is submitted. */
void rueda_ctx_begin_timeline(rueda_ctx *ctx);

/* Write what there is; the engine is gone. */
void rueda_ctx_end_timeline(rueda_ctx *ctx);

#endif /* RUEDA_API_CTX_H */
