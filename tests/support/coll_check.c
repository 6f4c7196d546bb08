/* SPDX-License-Identifier: Apache-2.0 */
#include "support/coll_check.h"

#include <stdio.h>
#include <string.h>

#define GUARD_BYTES 64
#define GUARD       0x5a

static struct numbers numbers_of(const struct test_rank *me,
                                 const struct coll_what *what)
{
    return (struct numbers){
        .kind = what->kind,
        .dtype = what->dtype,
        .reduction = what->reduction,
        .root = what->root,
        .size = me->size,
        .prescale = what->prescale,
        .postscale = what->postscale,
        .salt = what->salt,
        .is_same = what->reduction == RUEDA_ADASUM,
        .is_uneven = what->is_uneven,
        .count = what->count,
    };
}

/* ---- Buffers ----------------------------------------------------------- */

static int take_memory(struct test_rank *me, struct coll_run *run)
{
    size_t elem = rueda_dtype_size(run->what.dtype);
    size_t send = run->what.is_in_place ? 0 : run->send_total * elem;
    size_t recv = run->recv_total * elem + GUARD_BYTES;

    if ((run->what.shared >> me->rank & 1u) != 0) {
        if (rueda_alloc(me->ctx, send, &run->shared[0]) != RUEDA_OK ||
            rueda_alloc(me->ctx, recv, &run->shared[1]) != RUEDA_OK)
            return rank_says(me, "rueda_alloc failed");
        run->send = run->shared[0];
        run->recv = run->shared[1];
        return 0;
    }
    run->block = malloc(send + recv);
    if (run->block == NULL)
        return rank_says(me, "no memory");
    run->recv = run->block;
    run->send = run->recv + recv;
    return 0;
}

static void fill_in(const struct test_rank *me, struct coll_run *run)
{
    size_t elem = rueda_dtype_size(run->what.dtype);

    memset(run->recv, GUARD, run->recv_total * elem + GUARD_BYTES);
    numbers_write(&run->numbers, me->rank, 0, run->send_total, run->send);
}

static void fill_args(struct test_rank *me, struct coll_run *run)
{
    static const struct rueda_coll_args fresh = RUEDA_COLL_ARGS_INIT;
    const struct coll_what *what = &run->what;

    run->args = fresh;
    run->args.kind = what->kind;
    run->args.dtype = what->dtype;
    run->args.reduction = what->reduction;
    run->args.root = what->root;
    run->args.flags = what->flags;
    run->args.count = what->count;
    if (what->prescale != 0.0)
        run->args.prescale = what->prescale;
    if (what->postscale != 0.0)
        run->args.postscale = what->postscale;
    if (what->kind != RUEDA_BARRIER) {
        run->args.send = run->send;
        run->args.recv = run->recv;
    }
    if (what->is_uneven && numbers_has_pieces(what->kind)) {
        run->args.recv_counts = run->recv_counts;
        if (what->kind == RUEDA_ALLTOALL)
            run->args.send_counts = run->send_counts;
        if (what->kind == RUEDA_ALLGATHER)
            run->args.count = run->recv_counts[me->rank];
    }
}

int coll_prepare(struct test_rank *me, const struct coll_what *what,
                 struct coll_run *run)
{
    size_t elem = rueda_dtype_size(what->dtype);

    memset(run, 0, sizeof(*run));
    run->what = *what;
    run->numbers = numbers_of(me, what);
    numbers_counts(&run->numbers, me->rank, run->send_counts, run->recv_counts);
    run->send_total = numbers_sent(&run->numbers, me->rank);
    run->recv_total = numbers_received(&run->numbers, me->rank);
    if (take_memory(me, run) != 0)
        return 1;
    if (what->is_in_place) {
        run->send = run->recv;
        if (what->kind == RUEDA_ALLGATHER)
            run->send += numbers_first(&run->numbers, me->rank) * elem;
    }
    fill_in(me, run);
    fill_args(me, run);
    return 0;
}

void coll_release(struct test_rank *me, struct coll_run *run)
{
    free(run->block);
    if (run->shared[0] != NULL) {
        rueda_free(me->ctx, run->shared[0]);
        rueda_free(me->ctx, run->shared[1]);
    }
}

/* ---- Results ----------------------------------------------------------- */

const char *coll_describe(const struct coll_what *what, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s of %zu %s, %s%s%s, root %d, shared %x",
             rueda_kind_str(what->kind), what->count,
             rueda_dtype_str(what->dtype), rueda_reduction_str(what->reduction),
             what->is_in_place ? ", in place" : "",
             what->is_uneven ? ", uneven" : "", what->root, what->shared);
    return out;
}

bool coll_is_input_whole(const struct test_rank *me, const struct coll_run *run)
{
    return numbers_is_input(&run->numbers, me->rank, run->send,
                            run->send_total);
}

static bool is_result_right(const struct test_rank *me,
                            const struct coll_run *run)
{
    size_t bytes = run->recv_total * rueda_dtype_size(run->what.dtype);
    void *wanted = malloc(bytes + 1);
    bool is_right;

    if (wanted == NULL)
        return false;
    numbers_expect(&run->numbers, me->rank, wanted);
    is_right = memcmp(run->recv, wanted, bytes) == 0;
    free(wanted);
    return is_right;
}

int coll_verify(struct test_rank *me, const struct coll_run *run)
{
    size_t bytes = run->recv_total * rueda_dtype_size(run->what.dtype);
    char words[160];

    coll_describe(&run->what, words, sizeof(words));
    if (!is_result_right(me, run))
        return rank_says(me, "%s on %d ranks: wrong", words, me->size);
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (run->recv[bytes + i] != GUARD)
            return rank_says(me, "%s on %d ranks: wrote beyond the result",
                             words, me->size);
    if (!run->what.is_in_place && !coll_is_input_whole(me, run))
        return rank_says(me, "%s on %d ranks: wrote its input", words,
                         me->size);
    return 0;
}

int coll_check(struct test_rank *me, const struct coll_what *what)
{
    struct coll_run run;
    char words[160];
    int failed;

    if (coll_prepare(me, what, &run) != 0)
        return 1;
    failed = rank_expect(me, rueda_run(me->ctx, &run.args), RUEDA_OK,
                         coll_describe(what, words, sizeof(words)));
    if (failed == 0)
        failed = coll_verify(me, &run);
    coll_release(me, &run);
    return failed;
}

int coll_check_ways(struct test_rank *me, const struct coll_what *what)
{
    const bool has_in_place =
        what->kind != RUEDA_ALLTOALL && what->kind != RUEDA_REDUCE_SCATTER;

    for (int way = 0; way < 4; way++) {
        struct coll_what one = *what;

        one.is_in_place = (way & 1) != 0;
        one.is_uneven = (way & 2) != 0;
        if ((one.is_uneven && !numbers_has_pieces(one.kind)) ||
            (one.is_in_place && !has_in_place))
            continue;
        if (coll_check(me, &one) != 0)
            return 1;
    }
    return 0;
}

int coll_check_counts(struct test_rank *me, const struct coll_what *what,
                      const size_t *counts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct coll_what one = *what;

        one.count = counts[i];
        one.salt += (unsigned)i;
        if (coll_check_ways(me, &one) != 0)
            return 1;
    }
    return 0;
}
