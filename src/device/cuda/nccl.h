/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL as an algorithm of GPUs (algo/algo.h): the tensors of a place are moved
 * and added by NCCL, from where they are.
 *
 * It runs where all members agree that it can: each has the library, in one
 * version, and a GPU of its own, unless RUEDA_NCCL says otherwise. The members
 * find that out in the first task of a place, and make a communicator, which is
 * kept until the place is left. What NCCL cannot do is handed on to another
 * algorithm. Used by the thread that holds the engine's token.
 */
#ifndef RUEDA_DEVICE_CUDA_NCCL_H
#define RUEDA_DEVICE_CUDA_NCCL_H

#include "algo/algo.h"
#include "base/config.h"

struct rueda_cuda;
struct rueda_nccl;

extern const struct rueda_algo rueda_cuda_nccl;

/* What a GPU needs for it; no library is loaded. The settings are borrowed.
 * NULL: no memory. */
struct rueda_nccl *rueda_nccl_new(const struct rueda_config *config);

/* All places were left. The GPU's context is not current. */
void rueda_nccl_free(struct rueda_cuda *cuda);

#endif /* RUEDA_DEVICE_CUDA_NCCL_H */
