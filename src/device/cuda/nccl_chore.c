/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for calls of NCCL that may block, and what each of them does. */
#define RUEDA_LOG_TAG "device"

#include "device/cuda/nccl_chore.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "device/cuda/nccl_state.h"
#include "os/clock.h"
#include "os/thread.h"

#define PATIENCE_NS ((int64_t)2000000000)
#define NAP_NS      ((int64_t)200000)

/* ---- Life ------------------------------------------------------------- */

struct rueda_nccl_chore *
rueda_nccl_chore_new(const struct rueda_cuda *cuda,
                     void (*run)(struct rueda_nccl_chore *self))
{
    struct rueda_nccl_chore *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return NULL;
    self->run = run;
    atomic_init(&self->is_done, false);
    atomic_init(&self->owners, 1);
    self->driver = cuda->driver;
    self->context = cuda->context;
    self->lib = cuda->nccl->lib;
    snprintf(self->wanted, sizeof(self->wanted), "%s",
             cuda->nccl->config->nccl_library);
    return self;
}

/* By either owner; the last one frees it, with a communicator that was not
 * taken: its thread may come back after the task that began it has given up. */
void rueda_nccl_chore_drop(struct rueda_nccl_chore *self)
{
    if (self == NULL || atomic_fetch_sub(&self->owners, 1) > 1)
        return;
    if (self->comm != NULL)
        self->lib.comm_abort(self->comm);
    free(self);
}

/* With the GPU's context current, as NCCL expects it. */
static void carry_out(struct rueda_nccl_chore *self)
{
    const bool is_inside =
        self->driver.context_push(self->context) == RUEDA_CUDA_SUCCESS;
    void *ignored;

    self->run(self);
    if (is_inside)
        self->driver.context_pop(&ignored);
    atomic_store_explicit(&self->is_done, true, memory_order_release);
}

static void *thread(void *arg)
{
    carry_out(arg);
    rueda_nccl_chore_drop(arg);
    return NULL;
}

/* Without a thread it is done here and now, which blocks, but works. */
void rueda_nccl_chore_start(struct rueda_nccl_chore *self)
{
    pthread_t id;

    atomic_fetch_add(&self->owners, 1);
    if (rueda_thread_start(&id, thread, self) == RUEDA_OK) {
        rueda_thread_leave(id);
        return;
    }
    atomic_fetch_sub(&self->owners, 1);
    carry_out(self);
}

/* ---- What there is to do ---------------------------------------------- */

static void note(struct rueda_nccl_chore *self, rueda_nccl_result result,
                 const char *what)
{
    self->status = result == RUEDA_NCCL_SUCCESS ? RUEDA_OK : RUEDA_ERR_IO;
    if (result != RUEDA_NCCL_SUCCESS)
        rueda_nccl_explain(&self->lib, NULL, result, what, &self->error);
}

void rueda_nccl_chore_open(struct rueda_nccl_chore *self)
{
    self->status = rueda_nccl_lib_open(&self->lib, self->wanted, &self->error);
}

void rueda_nccl_chore_id(struct rueda_nccl_chore *self)
{
    note(self, self->lib.get_id(&self->id), "ncclGetUniqueId");
}

void rueda_nccl_chore_join(struct rueda_nccl_chore *self)
{
    note(self,
         self->lib.comm_init(&self->comm, self->size, self->id, self->rank),
         "ncclCommInitRank");
    if (self->status != RUEDA_OK)
        self->comm = NULL;
}

/* False: it has failed, or takes too long. */
/* Let NCCL end what is in flight, so that destroying does not cut it off. */
static bool flush(const struct rueda_nccl_chore *self)
{
    const int64_t end_ns = rueda_clock_ns() + PATIENCE_NS;
    rueda_nccl_result result = self->lib.comm_finalize(self->comm);

    while (result == RUEDA_NCCL_IN_PROGRESS && rueda_clock_ns() < end_ns) {
        rueda_sleep_ns(NAP_NS);
        if (self->lib.comm_error(self->comm, &result) != RUEDA_NCCL_SUCCESS)
            return false;
    }
    return result == RUEDA_NCCL_SUCCESS;
}

void rueda_nccl_chore_end(struct rueda_nccl_chore *self)
{
    const bool is_gentle = self->is_gentle && self->lib.comm_finalize != NULL;
    void *comm = self->comm;

    if (is_gentle && flush(self))
        self->lib.comm_destroy(comm);
    else
        self->lib.comm_abort(comm);
    self->comm = NULL;
}

void rueda_nccl_end_comm(const struct rueda_cuda *cuda, void *comm,
                         bool is_gentle)
{
    const int64_t end_ns = rueda_clock_ns() + PATIENCE_NS;
    struct rueda_nccl_chore *chore;

    if (comm == NULL)
        return;
    chore = rueda_nccl_chore_new(cuda, rueda_nccl_chore_end);
    if (chore == NULL)
        return;
    chore->comm = comm;
    chore->is_gentle = is_gentle;
    rueda_nccl_chore_start(chore);
    while (!rueda_nccl_chore_is_done(chore) && rueda_clock_ns() < end_ns)
        rueda_sleep_ns(NAP_NS);
    if (!rueda_nccl_chore_is_done(chore))
        log_warn("NCCL has not ended a communicator within two seconds; a "
                 "thread goes on with it");
    rueda_nccl_chore_drop(chore);
}
