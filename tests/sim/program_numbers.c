/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_numbers.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/adasum.h"

/* ---- Rows ---------------------------------------------------------------- */

static size_t rows_of(const struct script_op *op)
{
    return op->request.dims > 0 ? op->request.shape[0] : 1;
}

size_t program_split(const struct program_numbers *self, int from, int to)
{
    const struct script_op *op = self->op;
    const size_t rows = rows_of(op);
    const size_t size = (size_t)self->set->size;

    switch (op->request.kind) {
    case RUEDA_ALLGATHER:
        return op->is_uneven && op->request.dims > 0
                   ? (op->salt + (size_t)from * 7) % (rows + 1)
                   : rows;
    case RUEDA_REDUCE_SCATTER:
        return rows / size + ((size_t)to < rows % size ? 1 : 0);
    default:
        return op->is_uneven ? (op->salt + (size_t)from * 3 + (size_t)to * 5) %
                                   (rows / size + 2)
                             : rows / size;
    }
}

/* For struct numbers, in elements. */
static size_t piece(const void *arg, int from, int to)
{
    const struct program_numbers *self = arg;

    return program_split(self, from, to) * self->row;
}

static int divisor_of(const struct script_op *op)
{
    return (op->request.flags & RUEDA_LIVE_AVERAGE) != 0
               ? script_taker_count(op)
               : 0;
}

void program_numbers_init(struct program_numbers *self,
                          const struct script *script,
                          const struct script_op *op)
{
    const struct rueda_request *request = &op->request;

    self->op = op;
    self->set = &script->sets[op->set];
    self->row = rueda_request_row(request);
    self->all = (struct numbers){
        .kind = request->kind,
        .dtype = request->dtype,
        .reduction = request->reduction,
        .root = script_is_message(op) ? op->from : request->root,
        .ranks = self->set->ranks,
        .size = self->set->size,
        .absent = ~op->takers,
        .divisor = divisor_of(op),
        .prescale = request->prescale,
        .postscale = request->postscale,
        .salt = op->salt,
        .has_fraction = request->compression != RUEDA_COMPRESS_NONE,
        .count = rows_of(op) * self->row,
        .piece = piece,
        .arg = self,
    };
}

/* A row may have no elements, and is counted all the same. */
size_t program_rows_sent(const struct program_numbers *self, int member)
{
    struct program_numbers rows = *self;

    rows.row = 1;
    rows.all.count = rows_of(self->op);
    rows.all.arg = &rows;
    return numbers_sent(&rows.all, member);
}

size_t program_rows_received(const struct program_numbers *self, int member)
{
    struct program_numbers rows = *self;

    rows.row = 1;
    rows.all.count = rows_of(self->op);
    rows.all.arg = &rows;
    return numbers_received(&rows.all, member);
}

/* ---- Reduced ------------------------------------------------------------- */

/* Of numbers that are rounded once or twice, which part is lost. Between hosts
 * a half is rounded once a host. */
static double tolerance_of(const struct rueda_request *request)
{
    if (request->compression != RUEDA_COMPRESS_NONE)
        return request->compression == RUEDA_COMPRESS_FP16 ? 1.0 / 256
                                                           : 1.0 / 32;
    switch (request->dtype) {
    case RUEDA_FLOAT64:
        return 1e-14;
    case RUEDA_FLOAT32:
        return 1e-6;
    case RUEDA_FLOAT16:
        return 1.0 / 1024;
    default:
        return 1.0 / 128;
    }
}

static bool is_plain_reduced(const struct program_numbers *self, int member,
                             const void *at)
{
    const rueda_dtype dtype = self->all.dtype;
    const double tolerance =
        rueda_dtype_is_float(dtype) ? tolerance_of(&self->op->request) : 0;
    const size_t count = numbers_received(&self->all, member);
    const size_t first = self->all.kind == RUEDA_REDUCE_SCATTER
                             ? numbers_first(&self->all, member)
                             : 0;
    double right[NUMBERS_PERIOD];

    for (size_t i = 0; i < count && i < NUMBERS_PERIOD; i++)
        right[i] = numbers_reduced(&self->all, first + i);
    for (size_t i = 0; i < count; i++) {
        const double wanted = right[i % NUMBERS_PERIOD];
        const double error = fabs(numbers_load(dtype, at, i) - wanted);

        if (!(error <= fabs(wanted) * tolerance))
            return false;
    }
    return true;
}

/* ---- Adasum -------------------------------------------------------------- */

/* Relative to the largest number of the result. */
static double adasum_tolerance(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT64   ? 1e-12
           : dtype == RUEDA_FLOAT32 ? 1e-5
           : dtype == RUEDA_FLOAT16 ? 5e-3
                                    : 4e-2;
}

static bool is_adasum(const struct program_numbers *self, int member,
                      const void *at)
{
    const struct numbers *all = &self->all;
    const size_t count = numbers_received(all, member);
    double *v = calloc((size_t)all->size * count + 1, sizeof(double));
    double *of_rank[SCRIPT_RANKS];
    double largest = 0;
    bool is_right = true;

    assert_non_null(v);
    for (int m = 0; m < all->size; m++) {
        of_rank[m] = v + (size_t)m * count;
        for (size_t i = 0; i < count && script_takes(self->op, all->ranks[m]);
             i++)
            of_rank[m][i] = numbers_at(all, all->ranks[m], i) * all->prescale;
    }
    adasum_serial(of_rank, all->size, count);
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(v[i]) * all->postscale);
    for (size_t i = 0; i < count && is_right; i++)
        is_right =
            fabs(numbers_load(all->dtype, at, i) - v[i] * all->postscale) <=
            adasum_tolerance(all->dtype) * largest;
    free(v);
    return is_right;
}

bool program_is_reduced(const struct program_numbers *self, int member,
                        const void *at)
{
    return self->all.reduction == RUEDA_ADASUM
               ? is_adasum(self, member, at)
               : is_plain_reduced(self, member, at);
}
