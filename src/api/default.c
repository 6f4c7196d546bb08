/* SPDX-License-Identifier: Apache-2.0 */
#include "api/default.h"

#include <pthread.h>
#include <stdatomic.h>

#include "api/ctx.h"
#include "os/clock.h"

#define LOOK_NS     100000 /* how often to see whether all have left */
#define PATIENCE_NS 500000000

static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(rueda_ctx *) current;
static atomic_int inside; /* calls that use it, or are about to look for it */

/* A child has the parent's count of threads that it does not have. */
static bool is_inherited(rueda_ctx *ctx)
{
    return ctx != NULL && atomic_load(&ctx->is_forked);
}

rueda_status rueda_default_open(const struct rueda_init_args *args)
{
    rueda_status status = RUEDA_OK;
    rueda_ctx *ctx;

    pthread_mutex_lock(&change);
    if (is_inherited(atomic_load(&current))) {
        atomic_store(&current, NULL);
        atomic_store(&inside, 0);
    }
    if (atomic_load(&current) == NULL) {
        status = rueda_init(args, &ctx);
        if (status == RUEDA_OK)
            atomic_store(&current, ctx);
    }
    pthread_mutex_unlock(&change);
    return status;
}

/* Those who wait in slices leave by themselves, the others when their operation
 * has ended, if need be by force. */
static void wait_until_all_left(rueda_ctx *ctx)
{
    const int64_t patience_ns = rueda_clock_ns() + PATIENCE_NS;
    bool is_patient = true;

    while (atomic_load(&inside) > 0) {
        rueda_sleep_ns(LOOK_NS);
        if (is_patient && rueda_clock_ns() > patience_ns) {
            is_patient = false;
            rueda_fail(ctx, "it was shut down");
        }
    }
}

void rueda_default_close(void)
{
    rueda_ctx *ctx;

    pthread_mutex_lock(&change);
    ctx = atomic_load(&current);
    if (ctx != NULL && !is_inherited(ctx)) {
        atomic_store(&current, NULL);
        wait_until_all_left(ctx);
        rueda_shutdown(ctx);
    }
    pthread_mutex_unlock(&change);
}

/* Both orders of the two accesses matter, here and in close(): who is counted
 * too late has not seen the context. */
rueda_ctx *rueda_default_enter(void)
{
    rueda_ctx *ctx;

    atomic_fetch_add(&inside, 1);
    ctx = atomic_load(&current);
    if (ctx == NULL)
        atomic_fetch_sub(&inside, 1);
    return ctx;
}

void rueda_default_leave(void)
{
    atomic_fetch_sub(&inside, 1);
}

bool rueda_default_is(const rueda_ctx *ctx)
{
    return atomic_load(&current) == ctx;
}
