/* SPDX-License-Identifier: Apache-2.0 */
/* Rueda as a system under test, through its public interface only. */
#include <stdio.h>
#include <stdlib.h>

#include "tool/library.h"
#include "tool/system.h"

struct rueda_rank {
    struct rueda_system super;
    rueda_ctx *ctx;
    struct rueda_coll_args args;
    bool is_pingpong;
};

static struct rueda_rank *rank_of(struct rueda_system *system)
{
    return (struct rueda_rank *)system;
}

static bool is_well(struct rueda_rank *self, rueda_status status)
{
    if (status == RUEDA_OK)
        return true;
    rueda_text_set(&self->super.words, "rank %d: %s", self->super.rank,
                   rueda_status_str(status));
    if (rueda_error(self->ctx)[0] != '\0')
        rueda_text_add(&self->super.words, ": %s", rueda_error(self->ctx));
    return false;
}

/* At least one page, so that work of no bytes has an address too. */
void *rueda_system_private(struct rueda_system *system, size_t bytes)
{
    const size_t page = 4096;
    void *memory = aligned_alloc(page, (bytes + page) / page * page);

    if (memory == NULL)
        rueda_text_set(&system->words, "rank %d: no memory for %zu bytes",
                       system->rank, bytes);
    return memory;
}

void *rueda_system_alloc(struct rueda_system *system, size_t bytes,
                         bool is_shared)
{
    (void)is_shared;
    return rueda_system_private(system, bytes);
}

void rueda_system_release(struct rueda_system *system, void *memory,
                          bool is_shared)
{
    (void)system;
    (void)is_shared;
    free(memory);
}

static void *alloc(struct rueda_system *system, size_t bytes, bool is_shared)
{
    struct rueda_rank *self = rank_of(system);
    void *memory;

    if (!is_shared)
        return rueda_system_private(system, bytes);
    if (!is_well(self, rueda_alloc(self->ctx, bytes == 0 ? 1 : bytes, &memory)))
        return NULL;
    return memory;
}

static void release(struct rueda_system *system, void *memory, bool is_shared)
{
    if (is_shared)
        rueda_free(rank_of(system)->ctx, memory);
    else
        free(memory);
}

static bool prepare(struct rueda_system *system, const struct rueda_case *work,
                    const void *send, void *recv)
{
    struct rueda_rank *self = rank_of(system);

    self->args = (struct rueda_coll_args)RUEDA_COLL_ARGS_INIT;
    self->args.kind = rueda_bench_op_kind(work->op);
    self->args.dtype = work->dtype;
    self->args.reduction = work->reduction;
    self->args.count = work->count;
    self->args.send = send != NULL ? send : recv;
    self->args.recv = recv;
    self->is_pingpong = work->op == RUEDA_BENCH_PINGPONG;
    return true;
}

static bool run(struct rueda_system *system, unsigned iteration)
{
    struct rueda_rank *self = rank_of(system);

    if (self->is_pingpong)
        self->args.root = iteration % 2 == 0 ? 0 : 1;
    return is_well(self, rueda_run(self->ctx, &self->args));
}

static bool barrier(struct rueda_system *system)
{
    struct rueda_rank *self = rank_of(system);

    return is_well(self, rueda_barrier(self->ctx));
}

static void close_rank(struct rueda_system *system)
{
    rueda_shutdown(rank_of(system)->ctx);
    free(system);
}

static const struct rueda_system_ops ops = {
    .alloc = alloc,
    .release = release,
    .prepare = prepare,
    .run = run,
    .barrier = barrier,
    .close = close_rank,
};

/* A system over a context that exists. The context is taken on success, and
 * then shut down by close(); on failure it is still the caller's. */
struct rueda_system *rueda_system_adopt(rueda_ctx *ctx,
                                        struct rueda_text *words)
{
    struct rueda_rank *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        rueda_text_set(words, "no memory");
        return NULL;
    }
    self->super.ops = &ops;
    self->super.rank = rueda_rank(ctx);
    self->super.size = rueda_size(ctx);
    snprintf(self->super.version, sizeof(self->super.version), "Rueda %s",
             rueda_version());
    snprintf(self->super.transport, sizeof(self->super.transport), "%s",
             rueda_tool_library_transport(ctx));
    self->ctx = ctx;
    return &self->super;
}

/* Start a context of our own library, as any program does. */
struct rueda_system *rueda_system_rueda(int rank, int size, const char *job,
                                        struct rueda_text *words)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    struct rueda_system *system;
    rueda_status status;
    char error[384] = "";
    rueda_ctx *ctx;

    args.rank = rank;
    args.size = size;
    args.job = job;
    args.error = error;
    args.error_bytes = sizeof(error);
    status = rueda_init(&args, &ctx);
    if (status != RUEDA_OK) {
        rueda_text_set(words, "%s%s%s", rueda_status_str(status),
                       error[0] != '\0' ? ": " : "", error);
        return NULL;
    }
    system = rueda_system_adopt(ctx, words);
    if (system == NULL)
        rueda_shutdown(ctx);
    return system;
}

rueda_ctx *rueda_system_ctx(struct rueda_system *system)
{
    return rank_of(system)->ctx;
}
