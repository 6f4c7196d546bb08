/* SPDX-License-Identifier: Apache-2.0 */
/* What a context is made of; only for src/api. */
#ifndef RUEDA_API_CTX_H
#define RUEDA_API_CTX_H

#include <rueda/rueda.h>

#include "engine/engine.h"
#include "job/job.h"
#include "op/op.h"
#include "os/process.h"

struct rueda_ctx {
    struct rueda_job *job;
    struct rueda_engine engine;
    struct rueda_op_pool ops;
    pthread_mutex_t heap_lock; /* guards the pages of rueda_alloc() */
    struct rueda_fork_hook fork_hook;
    atomic_bool is_forked; /* this is a child's copy: dead */
};

#endif /* RUEDA_API_CTX_H */
