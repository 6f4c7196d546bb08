/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of NCCL that may block, each in a thread of its own: the engine looks
 * whether the thread is done, and lets go of the chore if it cannot wait any
 * longer. The chore lives until both have let go of it.
 */
#ifndef RUEDA_DEVICE_CUDA_NCCL_CHORE_H
#define RUEDA_DEVICE_CUDA_NCCL_CHORE_H

#include <stdatomic.h>

#include "device/cuda/cuda_state.h"
#include "device/cuda/nccl_lib.h"

struct rueda_nccl_chore {
    void (*run)(struct rueda_nccl_chore *self);
    atomic_bool is_done;
    atomic_int owners;

    /* What it works with; copies, so that nothing else has to stay. */
    struct rueda_cuda_driver driver;
    void *context;
    struct rueda_nccl_lib lib;
    char wanted[RUEDA_PATH_BYTES]; /* the library */
    int size;
    int rank;
    bool is_gentle;

    /* What comes out of it. */
    rueda_status status;
    struct rueda_text error;
    struct rueda_nccl_id id;
    void *comm; /* NULL if the engine has taken it: else the last owner aborts
                   it */
};

/* What there is to do. */
void rueda_nccl_chore_open(struct rueda_nccl_chore *self); /* wanted to lib */
void rueda_nccl_chore_id(struct rueda_nccl_chore *self);
void rueda_nccl_chore_join(struct rueda_nccl_chore *self); /* id to comm */
void rueda_nccl_chore_end(struct rueda_nccl_chore *self);  /* comm to NULL */

/* One that is not started yet, for a GPU. NULL: no memory. */
struct rueda_nccl_chore *
rueda_nccl_chore_new(const struct rueda_cuda *cuda,
                     void (*run)(struct rueda_nccl_chore *self));

/* Blocks only where the system has no thread left. */
void rueda_nccl_chore_start(struct rueda_nccl_chore *self);

static inline bool rueda_nccl_chore_is_done(struct rueda_nccl_chore *self)
{
    return atomic_load_explicit(&self->is_done, memory_order_acquire);
}

/* NULL is allowed. */
void rueda_nccl_chore_drop(struct rueda_nccl_chore *self);

/*
 * End a communicator; gently: after what other ranks still wait for, else at
 * once, with what is in progress. Blocks for at most two seconds; a thread goes
 * on with what takes longer.
 */
void rueda_nccl_end_comm(const struct rueda_cuda *cuda, void *comm,
                         bool is_gentle);

#endif /* RUEDA_DEVICE_CUDA_NCCL_CHORE_H */
