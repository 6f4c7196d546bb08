/* SPDX-License-Identifier: Apache-2.0 */
#include "support/coll_check.h"

#include <stdio.h>
#include <string.h>

#include "device/host.h"

#define GUARD_BYTES 64
#define GUARD       0x5a

/* ---- Numbers ---------------------------------------------------------- */

static double number_of(const struct coll_what *what, int rank, size_t i)
{
    size_t at = i + what->salt;
    size_t r = (size_t)rank;

    if (what->reduction == RUEDA_ADASUM)
        r = 0; /* of equal vectors it is that vector */
    if (what->dtype == RUEDA_BOOL)
        return at % 3 == 0 && (at / 3 + r) % 4 != 0;
    if (what->reduction == RUEDA_PRODUCT)
        return (at + r) % 5 == 0 ? 2.0 : 1.0;
    return (double)((at * 5 + at / 7 + r * 3) % 8);
}

static double join(const struct coll_what *what, double a, double b)
{
    const bool is_bool = what->dtype == RUEDA_BOOL;

    if (what->reduction == RUEDA_ADASUM)
        return a;
    if (what->reduction == RUEDA_MIN ||
        (is_bool && what->reduction == RUEDA_PRODUCT))
        return a < b ? a : b;
    if (what->reduction == RUEDA_MAX || is_bool)
        return a > b ? a : b;
    return what->reduction == RUEDA_PRODUCT ? a * b : a + b;
}

static double scale(const struct coll_what *what, double number, double factor)
{
    return factor == 0.0 || what->dtype == RUEDA_BOOL ? number
                                                      : number * factor;
}

static double reduced(const struct coll_what *what, int size, size_t i)
{
    double result = scale(what, number_of(what, 0, i), what->prescale);

    for (int rank = 1; rank < size; rank++)
        result = join(what, result,
                      scale(what, number_of(what, rank, i), what->prescale));
    if (what->reduction == RUEDA_AVERAGE && what->dtype != RUEDA_BOOL)
        result /= size;
    return scale(what, result, what->postscale);
}

/* Whole types cut towards zero, as the header says. */
static void put(rueda_dtype dtype, char *at, double number)
{
    const size_t bytes = rueda_dtype_size(dtype);
    const int64_t whole = (int64_t)number;
    const float narrow = (float)number;

    switch (dtype) {
    case RUEDA_FLOAT16:
    case RUEDA_BFLOAT16:
        rueda_host_convert(rueda_host_kernels("c"), dtype, at, RUEDA_FLOAT32,
                           &narrow, 1);
        break;
    case RUEDA_FLOAT32:
        memcpy(at, &narrow, sizeof(narrow));
        break;
    case RUEDA_FLOAT64:
        memcpy(at, &number, sizeof(number));
        break;
    default: /* little endian */
        memcpy(at, &whole, bytes);
        break;
    }
}

/* ---- Pieces ------------------------------------------------------------ */

static bool has_pieces(rueda_kind kind)
{
    return kind == RUEDA_ALLGATHER || kind == RUEDA_ALLTOALL ||
           kind == RUEDA_REDUCE_SCATTER;
}

/* Elements that go from one rank to another; where all have the same list,
 * those that concern `to`. */
static size_t piece_of(const struct coll_what *what, int from, int to)
{
    if (!what->is_uneven)
        return what->count;
    if (what->kind == RUEDA_ALLTOALL)
        return (size_t)((from * from + to + (int)what->salt) % 3) * what->count;
    return (size_t)((to + 1 + (int)what->salt) % 3) * what->count;
}

static size_t sum_of(const size_t *counts, int n)
{
    size_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

static void count_pieces(const struct party *me, struct coll_run *run)
{
    const struct coll_what *what = &run->what;
    const bool is_alltoall = what->kind == RUEDA_ALLTOALL;

    for (int i = 0; i < me->size; i++) {
        run->send_counts[i] = piece_of(what, me->rank, i);
        run->recv_counts[i] = is_alltoall ? piece_of(what, i, me->rank)
                                          : piece_of(what, me->rank, i);
    }
    run->send_total = sum_of(run->send_counts, me->size);
    run->recv_total = sum_of(run->recv_counts, me->size);
    if (what->kind == RUEDA_ALLGATHER)
        run->send_total = run->recv_counts[me->rank];
    if (what->kind == RUEDA_REDUCE_SCATTER)
        run->recv_total = run->recv_counts[me->rank];
    if (!has_pieces(what->kind))
        run->send_total = run->recv_total = what->count;
    if (what->kind == RUEDA_BARRIER)
        run->send_total = run->recv_total = 0;
}

/* ---- Buffers ----------------------------------------------------------- */

static int take_memory(struct party *me, struct coll_run *run)
{
    size_t elem = rueda_dtype_size(run->what.dtype);
    size_t send = run->what.is_in_place ? 0 : run->send_total * elem;
    size_t recv = run->recv_total * elem + GUARD_BYTES;

    if ((run->what.shared >> me->rank & 1u) != 0) {
        if (rueda_alloc(me->ctx, send, &run->shared[0]) != RUEDA_OK ||
            rueda_alloc(me->ctx, recv, &run->shared[1]) != RUEDA_OK)
            return party_says(me, "rueda_alloc failed");
        run->send = run->shared[0];
        run->recv = run->shared[1];
        return 0;
    }
    run->block = malloc(send + recv);
    if (run->block == NULL)
        return party_says(me, "no memory");
    run->recv = run->block;
    run->send = run->recv + recv;
    return 0;
}

static void fill_in(const struct party *me, struct coll_run *run)
{
    const struct coll_what *what = &run->what;
    size_t elem = rueda_dtype_size(what->dtype);

    memset(run->recv, GUARD, run->recv_total * elem + GUARD_BYTES);
    for (size_t i = 0; i < run->send_total; i++)
        put(what->dtype, run->send + i * elem, number_of(what, me->rank, i));
}

static void fill_args(struct party *me, struct coll_run *run)
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
    if (what->is_uneven && has_pieces(what->kind)) {
        run->args.recv_counts = run->recv_counts;
        if (what->kind == RUEDA_ALLTOALL)
            run->args.send_counts = run->send_counts;
        if (what->kind == RUEDA_ALLGATHER)
            run->args.count = run->recv_counts[me->rank];
    }
}

int coll_prepare(struct party *me, const struct coll_what *what,
                 struct coll_run *run)
{
    size_t elem = rueda_dtype_size(what->dtype);

    memset(run, 0, sizeof(*run));
    run->what = *what;
    count_pieces(me, run);
    if (take_memory(me, run) != 0)
        return 1;
    if (what->is_in_place) {
        run->send = run->recv;
        if (what->kind == RUEDA_ALLGATHER)
            run->send += sum_of(run->recv_counts, me->rank) * elem;
    }
    fill_in(me, run);
    fill_args(me, run);
    return 0;
}

void coll_release(struct party *me, struct coll_run *run)
{
    free(run->block);
    if (run->shared[0] != NULL) {
        rueda_free(me->ctx, run->shared[0]);
        rueda_free(me->ctx, run->shared[1]);
    }
}

/* ---- Results ----------------------------------------------------------- */

/* Where in the result of which kind of number place i is: the sender and its
 * own place there. */
struct origin {
    int from;
    size_t place;
};

static struct origin origin_of(const struct party *me,
                               const struct coll_run *run, size_t i)
{
    struct origin origin = {0, i};

    while (origin.place >= run->recv_counts[origin.from]) {
        origin.place -= run->recv_counts[origin.from];
        origin.from++;
    }
    if (run->what.kind == RUEDA_ALLTOALL)
        for (int to = 0; to < me->rank; to++)
            origin.place += piece_of(&run->what, origin.from, to);
    return origin;
}

static double right_number(const struct party *me, const struct coll_run *run,
                           size_t i)
{
    const struct coll_what *what = &run->what;
    struct origin origin;

    switch (what->kind) {
    case RUEDA_ALLREDUCE:
        return reduced(what, me->size, i);
    case RUEDA_REDUCE_SCATTER:
        return reduced(what, me->size, sum_of(run->recv_counts, me->rank) + i);
    case RUEDA_BROADCAST:
        return number_of(what, what->root, i);
    default:
        origin = origin_of(me, run, i);
        return number_of(what, origin.from, origin.place);
    }
}

const char *coll_describe(const struct coll_what *what, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s of %zu %s, %s%s%s, root %d, shared %x",
             rueda_kind_str(what->kind), what->count,
             rueda_dtype_str(what->dtype), rueda_reduction_str(what->reduction),
             what->is_in_place ? ", in place" : "",
             what->is_uneven ? ", uneven" : "", what->root, what->shared);
    return out;
}

bool coll_is_input_whole(const struct party *me, const struct coll_run *run)
{
    size_t elem = rueda_dtype_size(run->what.dtype);
    char wanted[8];

    for (size_t i = 0; i < run->send_total; i++) {
        put(run->what.dtype, wanted, number_of(&run->what, me->rank, i));
        if (memcmp(run->send + i * elem, wanted, elem) != 0)
            return false;
    }
    return true;
}

int coll_verify(struct party *me, const struct coll_run *run)
{
    size_t elem = rueda_dtype_size(run->what.dtype);
    char words[160];
    char wanted[8];

    coll_describe(&run->what, words, sizeof(words));
    for (size_t i = 0; i < run->recv_total; i++) {
        put(run->what.dtype, wanted, right_number(me, run, i));
        if (memcmp(run->recv + i * elem, wanted, elem) != 0)
            return party_says(me, "%s on %d ranks: wrong at %zu", words,
                              me->size, i);
    }
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (run->recv[run->recv_total * elem + i] != GUARD)
            return party_says(me, "%s on %d ranks: wrote beyond the result",
                              words, me->size);
    if (!run->what.is_in_place && !coll_is_input_whole(me, run))
        return party_says(me, "%s on %d ranks: wrote its input", words,
                          me->size);
    return 0;
}

int coll_check(struct party *me, const struct coll_what *what)
{
    struct coll_run run;
    char words[160];
    int failed;

    if (coll_prepare(me, what, &run) != 0)
        return 1;
    failed = party_expect(me, rueda_run(me->ctx, &run.args), RUEDA_OK,
                          coll_describe(what, words, sizeof(words)));
    if (failed == 0)
        failed = coll_verify(me, &run);
    coll_release(me, &run);
    return failed;
}

int coll_check_ways(struct party *me, const struct coll_what *what)
{
    const bool has_in_place =
        what->kind != RUEDA_ALLTOALL && what->kind != RUEDA_REDUCE_SCATTER;

    for (int way = 0; way < 4; way++) {
        struct coll_what one = *what;

        one.is_in_place = (way & 1) != 0;
        one.is_uneven = (way & 2) != 0;
        if ((one.is_uneven && !has_pieces(one.kind)) ||
            (one.is_in_place && !has_in_place))
            continue;
        if (coll_check(me, &one) != 0)
            return 1;
    }
    return 0;
}

int coll_check_counts(struct party *me, const struct coll_what *what,
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
