/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default context that bindings share: opening it on a thread, entering and
 * leaving it, and shutting it down.
 *
 *                  begin()             open_it() is done
 *     no context ----------> opening ---------------------> current
 *         ^                     |                              |
 *         +---------------------+------------------------------+
 *             is_unwanted               rueda_default_close()
 *
 * Opening and closing take seconds and hold `change`; entering and leaving take
 * two atomic operations and no lock, as they are part of every call of a
 * binding.
 */
#include "api/default.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "base/config.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/thread.h"

#define CHECK_NS    100000 /* how often to see whether all have left */
#define PATIENCE_NS 500000000
#define SLICE_NS    100000000 /* how often to ask whether a start is wanted */
#define WORDS_BYTES 2048

static _Atomic(rueda_ctx *) current;
static atomic_int inside; /* calls that use it, or are about to search for it */

/* The parent was closing its context: the calls that it waited for are those
 * of threads that the child does not have. */
static void forget_calls_in_child(void)
{
    if (atomic_load(&current) == NULL)
        atomic_store(&inside, 0);
}

/* Held while a context is opened or closed, which takes seconds. */
static struct rueda_fork_lock change = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                        .in_child = forget_calls_in_child};

/* A child has the parent's count of threads that it does not have. */
static bool is_inherited(rueda_ctx *ctx)
{
    return ctx != NULL && atomic_load(&ctx->is_forked);
}

/* ---- Opening ---------------------------------------------------------- */

/*
 * A start that is in flight, on a thread of its own, so that callers that wait
 * for it can leave. All but the arguments is under `change`. The thread and
 * each waiting caller hold it, and the last of them frees it.
 */
struct opening {
    struct rueda_init_args args;
    char *strings[4]; /* those of the arguments; some may be NULL */
    char words[WORDS_BYTES];
    struct rueda_fork_hook fork_hook;
    pthread_cond_t changed;
    int holders;
    bool is_over;
    bool is_unwanted; /* it is to be shut down when it is there */
    rueda_status status;

    /* The caller's exchange runs on the caller's thread. */
    const struct rueda_init_args
        *caller; /* a caller that waits and has one, or NULL */
    void *bytes; /* to be exchanged, or NULL */
    size_t len;
    int answer;
};

static struct opening *opening; /* or NULL; under `change` */

/* Its thread is the parent's. */
static void forget_in_child(struct rueda_fork_hook *hook)
{
    (void)hook;
    opening = NULL;
}

/* Under the lock. */
static void let_go(struct opening *self)
{
    if (--self->holders > 0)
        return;
    for (size_t i = 0; i < sizeof(self->strings) / sizeof(char *); i++)
        free(self->strings[i]);
    pthread_cond_destroy(&self->changed);
    free(self);
}

/* On the opening's thread: asks a waiting caller to do the exchange, since a
 * binding may call its functions only on threads of its language. -1 if the
 * caller has left. */
static int pass_on(void *arg, void *bytes, size_t len)
{
    struct opening *self = arg;
    int answer;

    rueda_fork_lock_take(&change);
    self->answer = -1;
    self->bytes = bytes;
    self->len = len;
    pthread_cond_broadcast(&self->changed);
    while (self->bytes != NULL && self->caller != NULL)
        rueda_condition_wait(&self->changed, &change.mutex, -1);
    self->bytes = NULL;
    answer = self->answer;
    rueda_fork_lock_release(&change);
    return answer;
}

/* Under the lock, which is free meanwhile. */
static void exchange(struct opening *self, const struct rueda_init_args *caller)
{
    int answer;

    rueda_fork_lock_release(&change);
    answer = caller->exchange(caller->exchange_arg, self->bytes, self->len);
    rueda_fork_lock_take(&change);
    self->answer = answer;
    self->bytes = NULL;
    pthread_cond_broadcast(&self->changed);
}

/* The thread that opens. A context that no caller wants any more is shut down
 * before any of them could use it. */
static void *open_it(void *arg)
{
    struct opening *self = arg;
    rueda_ctx *ctx = NULL;
    bool is_unwanted;

    self->status = rueda_init(&self->args, &ctx);
    rueda_fork_lock_take(&change);
    is_unwanted = self->is_unwanted;
    if (ctx != NULL && is_unwanted)
        self->status = RUEDA_ERR_CLOSED;
    else if (ctx != NULL)
        atomic_store(&current, ctx);
    rueda_fork_hook_remove(&self->fork_hook);
    opening = NULL;
    self->is_over = true;
    pthread_cond_broadcast(&self->changed);
    let_go(self);
    rueda_fork_lock_release(&change);
    if (is_unwanted)
        rueda_shutdown(ctx);
    return NULL;
}

/* Arguments that outlive the call. */
static bool copy_args(struct opening *self, const struct rueda_init_args *args)
{
    struct rueda_init_args *copy = &self->args;
    const char **strings[] = {&copy->job, &copy->key_file, &copy->store,
                              &copy->process_sets};

    *copy = *args;
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        if (*strings[i] == NULL)
            continue;
        self->strings[i] = strdup(*strings[i]);
        if (self->strings[i] == NULL)
            return false;
        *strings[i] = self->strings[i];
    }
    copy->error = self->words;
    copy->error_bytes = sizeof(self->words);
    if (args->exchange != NULL) {
        copy->exchange = pass_on;
        copy->exchange_arg = self;
    }
    return true;
}

/* Under the lock. NULL: there is no memory, or no thread. */
static struct opening *begin(const struct rueda_init_args *args)
{
    struct opening *self = calloc(1, sizeof(*self));
    pthread_t thread;

    if (self == NULL)
        return NULL;
    rueda_condition_init(&self->changed);
    self->holders = 1;
    self->fork_hook.in_child = forget_in_child;
    if (!copy_args(self, args)) {
        let_go(self);
        return NULL;
    }
    if (rueda_thread_start(&thread, open_it, self) != RUEDA_OK) {
        let_go(self);
        return NULL;
    }
    rueda_thread_leave(thread);
    rueda_fork_hook_add(&self->fork_hook);
    return self;
}

/* Under the lock. Wait for a start, also one that another caller began, and
 * meanwhile ask goes_on() and do the exchange if the start wants one. A caller
 * that leaves does not end the start. */
static rueda_status await(struct opening *self,
                          const struct rueda_init_args *args,
                          rueda_default_goes_on_fn goes_on, void *arg)
{
    rueda_status status = RUEDA_OK;

    self->holders++;
    self->is_unwanted = false;
    if (args->exchange != NULL)
        self->caller = args;
    while (!self->is_over && status == RUEDA_OK) {
        if (args->exchange != NULL && self->caller == args &&
            self->bytes != NULL)
            exchange(self, args);
        else
            rueda_condition_wait(&self->changed, &change.mutex,
                                 rueda_clock_ns() + SLICE_NS);
        if (self->is_over || goes_on == NULL)
            continue;
        rueda_fork_lock_release(&change);
        if (!goes_on(arg))
            status = RUEDA_ERR_CANCELLED;
        rueda_fork_lock_take(&change);
    }
    if (self->caller == args) {
        self->caller = NULL;
        pthread_cond_broadcast(&self->changed);
    }
    if (self->is_over)
        status = self->status;
    if (self->is_over && args->error != NULL && args->error_bytes > 0)
        snprintf(args->error, args->error_bytes, "%s", self->words);
    let_go(self);
    return status;
}

/* The start could not even begin. */
static rueda_status refuse(const struct rueda_init_args *args)
{
    if (args->error != NULL && args->error_bytes > 0)
        snprintf(args->error, args->error_bytes,
                 "no memory or no thread to join the job with: %s; see "
                 "`ulimit -u` and -v",
                 strerror(errno));
    return RUEDA_ERR_NOMEM;
}

/* A context that was inherited by fork() is forgotten first: it belongs to the
 * parent. */
rueda_status rueda_default_open(const struct rueda_init_args *args,
                                rueda_default_goes_on_fn goes_on, void *arg)
{
    static const struct rueda_init_args defaults = RUEDA_INIT_ARGS_INIT;
    rueda_status status = RUEDA_OK;

    if (args == NULL)
        args = &defaults;
    rueda_fork_lock_take(&change);
    if (is_inherited(atomic_load(&current))) {
        atomic_store(&current, NULL);
        atomic_store(&inside, 0);
    }
    if (atomic_load(&current) == NULL) {
        if (opening == NULL)
            opening = begin(args);
        status =
            opening != NULL ? await(opening, args, goes_on, arg) : refuse(args);
    }
    if (status == RUEDA_OK && atomic_load(&current) != NULL)
        rueda_log_set_rank(rueda_rank(atomic_load(&current)));
    rueda_fork_lock_release(&change);
    return status;
}

/* ---- Closing ---------------------------------------------------------- */

/* Calls that wait in slices leave by themselves, the others when their
 * operation has ended; after PATIENCE_NS all operations are ended, so that the
 * wait is over in any case. */
static void wait_until_all_left(rueda_ctx *ctx)
{
    const int64_t patience_ns = rueda_clock_ns() + PATIENCE_NS;
    bool is_patient = true;

    while (atomic_load(&inside) > 0) {
        rueda_sleep_ns(CHECK_NS);
        if (is_patient && rueda_clock_ns() > patience_ns) {
            is_patient = false;
            rueda_fail(ctx, "it was shut down");
        }
    }
}

/* A start that is in flight ends in nothing; a context is shut down when the
 * last call has left it. */
void rueda_default_close(void)
{
    rueda_ctx *ctx;

    rueda_fork_lock_take(&change);
    if (opening != NULL)
        opening->is_unwanted = true;
    ctx = atomic_load(&current);
    if (ctx != NULL && !is_inherited(ctx)) {
        atomic_store(&current, NULL);
        wait_until_all_left(ctx);
        rueda_shutdown(ctx);
    }
    rueda_fork_lock_release(&change);
}

/* ---- Inside ----------------------------------------------------------- */

/* A call counts itself first and looks for the context then; close() takes the
 * context away first and looks at the count then. All four are sequentially
 * consistent, so either the call finds no context, or close() sees that it is
 * inside. */
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

int rueda_default_check_every(const rueda_ctx *ctx)
{
    return ctx->job->config.check_every;
}

int rueda_default_has_timeline(const rueda_ctx *ctx)
{
    return ctx->job->config.timeline[0] != '\0';
}

int rueda_default_has_dynamic_sets(const rueda_ctx *ctx)
{
    return ctx->job->config.dynamic_sets;
}

int rueda_default_repairs(const rueda_ctx *ctx)
{
    return ctx->engine.lanes.repairs;
}

bool rueda_default_tensorflow_waits(void)
{
    struct rueda_config config;
    struct rueda_text error;

    return rueda_config_load(&config, &error) == RUEDA_OK &&
           config.tensorflow_waits;
}
