/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes, inputs and expected results of one measured collective. */
#include "tool/case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tool/pattern.h"

/* One row for each operation. Pieces are what ranks exchange: a buffer of n
 * ranks is n pieces, of which each rank gives or gets one. */
static const struct {
    const char *name;
    rueda_kind kind;
    bool has_size;
    bool has_pieces;
    bool is_in_place;
} ops[RUEDA_BENCH_OP_COUNT + 1] = {
    [RUEDA_BENCH_ALLREDUCE] = {"allreduce", RUEDA_ALLREDUCE, true, false, true},
    [RUEDA_BENCH_ALLGATHER] = {"allgather", RUEDA_ALLGATHER, true, true, false},
    [RUEDA_BENCH_BROADCAST] = {"broadcast", RUEDA_BROADCAST, true, false, true},
    [RUEDA_BENCH_ALLTOALL] = {"alltoall", RUEDA_ALLTOALL, true, true, false},
    [RUEDA_BENCH_REDUCESCATTER] = {"reducescatter", RUEDA_REDUCE_SCATTER, true,
                                   true, false},
    [RUEDA_BENCH_BARRIER] = {"barrier", RUEDA_BARRIER, false, false, true},
    [RUEDA_BENCH_PINGPONG] = {"pingpong", RUEDA_BROADCAST, true, false, true},
    [RUEDA_BENCH_EXCHANGE] = {"exchange", RUEDA_ALLTOALL, true, false, false},
};

const char *rueda_bench_op_str(rueda_bench_op op)
{
    return ops[op].name;
}

bool rueda_bench_op_parse(const char *text, rueda_bench_op *out_op)
{
    for (int op = 0; op < RUEDA_BENCH_OP_COUNT; op++) {
        if (strcmp(text, ops[op].name) == 0) {
            *out_op = (rueda_bench_op)op;
            return true;
        }
    }
    return false;
}

rueda_kind rueda_bench_op_kind(rueda_bench_op op)
{
    return ops[op].kind;
}

bool rueda_bench_op_has_size(rueda_bench_op op)
{
    return ops[op].has_size;
}

static size_t pieces(const struct rueda_case *work)
{
    return ops[work->op].has_pieces ? (size_t)work->size : 1;
}

void rueda_case_set_bytes(struct rueda_case *work, size_t bytes)
{
    if (!ops[work->op].has_size) {
        work->count = 0;
        return;
    }
    work->count = bytes / rueda_dtype_size(work->dtype) / pieces(work);
    if (work->count == 0)
        work->count = 1;
}

static size_t piece_bytes(const struct rueda_case *work)
{
    return work->count * rueda_dtype_size(work->dtype);
}

size_t rueda_case_bytes(const struct rueda_case *work)
{
    return piece_bytes(work) * pieces(work);
}

size_t rueda_case_send_bytes(const struct rueda_case *work)
{
    if (ops[work->op].is_in_place)
        return 0;
    if (work->op == RUEDA_BENCH_ALLGATHER)
        return piece_bytes(work);
    return rueda_case_bytes(work);
}

size_t rueda_case_recv_bytes(const struct rueda_case *work)
{
    if (work->op == RUEDA_BENCH_REDUCESCATTER)
        return piece_bytes(work);
    return rueda_case_bytes(work);
}

/* The share of the buffer that each rank has to send at least, so that
 * bandwidths of different collectives and numbers of ranks can be compared with
 * that of the wire (nccl-tests, doc/PERFORMANCE.md). */
double rueda_case_bus_factor(const struct rueda_case *work)
{
    const double n = work->size;

    if (work->op == RUEDA_BENCH_ALLREDUCE)
        return 2.0 * (n - 1.0) / n;
    return ops[work->op].has_pieces ? (n - 1.0) / n : 1.0;
}

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

/* How often an operation can be repeated on its own result until numbers
 * overflow or lose digits; the check would then find mistakes where there are
 * none. */
unsigned rueda_case_max_iterations(const struct rueda_case *work)
{
    const unsigned plenty = 1000;
    double room;

    /* Dividing whole numbers again and again would add up its roundings. */
    if (work->op == RUEDA_BENCH_ALLREDUCE && work->reduction == RUEDA_AVERAGE &&
        !is_power_of_two(work->size))
        return 1;
    if (work->op != RUEDA_BENCH_ALLREDUCE || work->size < 2 ||
        work->reduction != RUEDA_SUM || work->dtype == RUEDA_BOOL)
        return plenty;
    room = rueda_pattern_range_bits(work->dtype) -
           log2((double)rueda_pattern_period(work->dtype) * work->size);
    room = floor(room / log2((double)work->size));
    if (room < 0.0)
        room = 0.0;
    return room + 1.0 > plenty ? plenty : (unsigned)room + 1;
}

/* Which values rank puts into its piece for rank `to`. Both numbers count, so a
 * piece that comes from the wrong rank, or goes to it, is wrong in nearly all
 * of its elements. */
static unsigned seed_of(const struct rueda_case *work, int rank, int to)
{
    /* What Adasum makes of equal vectors is known: the vector. */
    if (work->reduction == RUEDA_ADASUM)
        rank = 0;
    return (unsigned)rank * 5u + (unsigned)to * 3u;
}

static void input(const struct rueda_case *work, int rank, int to,
                  struct rueda_pattern *out)
{
    const unsigned seed = seed_of(work, rank, to);
    const unsigned period = rueda_pattern_period(work->dtype);
    double values[RUEDA_PATTERN_PERIOD];

    for (unsigned i = 0; i < period; i++)
        values[i] = rueda_pattern_input(work->dtype, work->reduction, i + seed);
    rueda_pattern_init(out, work->dtype, values, 0.0, work->count);
}

/* The result for the piece of rank `to` after this many reductions, each of
 * which takes the result of the one before. */
static void reduced(const struct rueda_case *work, int to, unsigned iterations,
                    struct rueda_pattern *out)
{
    const unsigned period = rueda_pattern_period(work->dtype);
    double values[RUEDA_PATTERN_PERIOD];
    double slack = 0.0;

    for (unsigned i = 0; i < period; i++) {
        double result = rueda_pattern_input(work->dtype, work->reduction,
                                            i + seed_of(work, 0, to));

        for (int rank = 1; rank < work->size; rank++)
            result = rueda_pattern_join(
                work->dtype, work->reduction, result,
                rueda_pattern_input(work->dtype, work->reduction,
                                    i + seed_of(work, rank, to)));
        values[i] = rueda_pattern_repeat(work->dtype, work->reduction, result,
                                         work->size, iterations);
    }
    if (!is_power_of_two(work->size) || work->reduction == RUEDA_ADASUM)
        slack = (double)iterations * work->size;
    rueda_pattern_init(out, work->dtype, values, slack, work->count);
    out->is_average = work->reduction == RUEDA_AVERAGE;
}

/* The input of one rank, in each of its pieces. */
void rueda_case_fill(const struct rueda_case *work, int rank, void *send,
                     void *recv)
{
    struct rueda_pattern pattern;
    const size_t step = piece_bytes(work);

    if (work->op == RUEDA_BENCH_ALLGATHER || work->op == RUEDA_BENCH_EXCHANGE) {
        input(work, rank, 0, &pattern);
        rueda_pattern_fill(&pattern, send, work->count);
    } else if (ops[work->op].has_pieces) {
        for (int to = 0; to < work->size; to++) {
            input(work, rank, to, &pattern);
            rueda_pattern_fill(&pattern, (char *)send + (size_t)to * step,
                               work->count);
        }
    }
    rueda_case_refill(work, rank, recv);
}

void rueda_case_refill(const struct rueda_case *work, int rank, void *recv)
{
    struct rueda_pattern pattern;

    if (work->op == RUEDA_BENCH_BARRIER)
        return;
    if (!ops[work->op].is_in_place) {
        /* What is right now must not count as right afterwards. */
        memset(recv, 0x5a, rueda_case_recv_bytes(work));
        return;
    }
    /* In a broadcast rank 0 has the values and the others have wrong ones. */
    input(work, rank, 0, &pattern);
    rueda_pattern_fill(&pattern, recv, work->count);
}

/* What must be in the piece of recv that came from rank `from`. */
static void expected(const struct rueda_case *work, int rank, int from,
                     unsigned iterations, struct rueda_pattern *out)
{
    switch (work->op) {
    case RUEDA_BENCH_ALLREDUCE:
        reduced(work, 0, iterations, out);
        break;
    case RUEDA_BENCH_REDUCESCATTER:
        reduced(work, rank, 1, out);
        break;
    case RUEDA_BENCH_ALLTOALL:
        input(work, from, rank, out);
        break;
    case RUEDA_BENCH_EXCHANGE:
        input(work, 1 - rank, 0, out);
        break;
    default:
        input(work, from, 0, out);
        break;
    }
}

/* Compare what one rank received with what arithmetic says; words name the
 * first element that is wrong. */
bool rueda_case_check(const struct rueda_case *work, int rank,
                      unsigned iterations, const void *recv, char *words,
                      size_t room)
{
    struct rueda_pattern pattern;
    struct rueda_mistake mistake;
    const size_t step = piece_bytes(work);
    const int parts =
        work->op == RUEDA_BENCH_REDUCESCATTER ? 1 : (int)pieces(work);

    if (work->op == RUEDA_BENCH_BARRIER)
        return true;
    for (int from = 0; from < parts; from++) {
        expected(work, rank, from, iterations, &pattern);
        if (rueda_pattern_check(&pattern,
                                (const char *)recv + (size_t)from * step,
                                work->count, &mistake))
            continue;
        snprintf(words, room,
                 "wrong answer: %s of %zu bytes, rank %d, index %zu: got %.9g, "
                 "wanted %.9g",
                 ops[work->op].name, rueda_case_bytes(work), rank,
                 (size_t)from * work->count + mistake.index, mistake.got,
                 mistake.wanted);
        return false;
    }
    return true;
}
