/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_numbers.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/host.h"
#include "support/adasum.h"

/* So many places on, all numbers are the same again. */
#define PERIOD 168

/*
 * Small whole numbers, exact in all types and in all sums; of booleans a third
 * is true everywhere and a third nowhere. What is compressed has a fraction
 * that is lost on the way, and what Adasum gets points to both sides.
 */
double program_number(const struct plan_op *op, int rank, size_t i)
{
    const struct rueda_request *request = &op->request;
    const size_t at = i + op->salt;
    const size_t most = request->dtype == RUEDA_INT8 ? 4 : 8;
    double number;

    if (request->dtype == RUEDA_BOOL)
        return at % 3 == 0 ? (at / 3 + (size_t)rank) % 4 != 0 : at % 3 == 1;
    if (request->reduction == RUEDA_PRODUCT)
        return (at + (size_t)rank) % 3 == 0 ? 2 : 1;
    number = (double)((at * 5 + at / 7 + (size_t)rank * 3) % most);
    if (request->reduction == RUEDA_ADASUM)
        return number - 3;
    return request->compression == RUEDA_COMPRESS_NONE ? number
                                                       : number + 1.0 / 64;
}

/* ---- In memory ----------------------------------------------------------- */

static bool is_half(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT16 || dtype == RUEDA_BFLOAT16;
}

static void store(rueda_dtype dtype, void *at, double number)
{
    const size_t bytes = rueda_dtype_size(dtype);
    const int64_t whole = (int64_t)number;
    const float single = (float)number;

    if (dtype == RUEDA_FLOAT64)
        memcpy(at, &number, bytes);
    else if (dtype == RUEDA_FLOAT32)
        memcpy(at, &single, bytes);
    else if (is_half(dtype))
        rueda_host_convert(rueda_host_kernels("c"), dtype, at, RUEDA_FLOAT32,
                           &single, 1);
    else /* little endian */
        memcpy(at, &whole, bytes);
}

void program_fill(const struct plan_op *op, int rank, void *to, size_t count)
{
    const rueda_dtype dtype = op->request.dtype;
    const size_t bytes = rueda_dtype_size(dtype);
    char *at = to;

    for (size_t i = 0; i < count && i < PERIOD; i++)
        store(dtype, at + i * bytes, program_number(op, rank, i));
    for (size_t i = PERIOD; i < count; i++)
        memcpy(at + i * bytes, at + (i - PERIOD) * bytes, bytes);
}

/* One that is small: no infinity. */
static double load_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const double size = exponent > 0 ? ldexp(1024 + fraction, exponent - 25)
                                     : ldexp(fraction, -24);

    return (bits & 0x8000) != 0 ? -size : size;
}

static double load_bfloat(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float single;

    memcpy(&single, &wide, sizeof(single));
    return single;
}

double program_load(rueda_dtype dtype, const void *from, size_t i)
{
    switch (dtype) {
    case RUEDA_UINT8:
    case RUEDA_BOOL:
        return ((const uint8_t *)from)[i];
    case RUEDA_INT8:
        return ((const int8_t *)from)[i];
    case RUEDA_UINT16:
        return ((const uint16_t *)from)[i];
    case RUEDA_INT16:
        return ((const int16_t *)from)[i];
    case RUEDA_INT32:
        return ((const int32_t *)from)[i];
    case RUEDA_INT64:
        return (double)((const int64_t *)from)[i];
    case RUEDA_FLOAT32:
        return ((const float *)from)[i];
    case RUEDA_FLOAT64:
        return ((const double *)from)[i];
    case RUEDA_FLOAT16:
        return load_half(((const uint16_t *)from)[i]);
    case RUEDA_BFLOAT16:
        return load_bfloat(((const uint16_t *)from)[i]);
    }
    return NAN;
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

static double join(const struct rueda_request *request, double a, double b)
{
    const bool is_bool = request->dtype == RUEDA_BOOL;

    if (request->reduction == RUEDA_MIN ||
        (is_bool && request->reduction == RUEDA_PRODUCT))
        return a < b ? a : b;
    if (request->reduction == RUEDA_MAX || is_bool)
        return a > b ? a : b;
    return request->reduction == RUEDA_PRODUCT ? a * b : a + b;
}

/* Who has joined changes nothing, but the number to divide by if that is to be
 * of those who have not. */
static double reduced(const struct plan *plan, const struct plan_op *op,
                      size_t i)
{
    const struct rueda_request *request = &op->request;
    const struct plan_set *set = &plan->sets[op->set];
    double result = 0;
    bool is_first = true;

    for (int m = 0; m < set->size; m++) {
        int rank = set->ranks[m];
        double mine;

        if (!plan_takes(op, rank))
            continue;
        mine = program_number(op, rank, i);
        if (request->dtype != RUEDA_BOOL)
            mine *= request->prescale;
        result = is_first ? mine : join(request, result, mine);
        is_first = false;
    }
    if (request->dtype == RUEDA_BOOL)
        return result;
    result *= request->postscale;
    if (request->reduction == RUEDA_AVERAGE)
        result /= (request->flags & RUEDA_LIVE_AVERAGE) != 0
                      ? plan_taker_count(op)
                      : set->size;
    return rueda_dtype_is_float(request->dtype) ? result : trunc(result);
}

static bool is_plain_reduced(const struct plan *plan, const struct plan_op *op,
                             const void *at, size_t first, size_t count)
{
    const rueda_dtype dtype = op->request.dtype;
    const double tolerance =
        rueda_dtype_is_float(dtype) ? tolerance_of(&op->request) : 0;
    double right[PERIOD];

    for (size_t i = 0; i < count && i < PERIOD; i++)
        right[i] = reduced(plan, op, first + i);
    for (size_t i = 0; i < count; i++) {
        const double error =
            fabs(program_load(dtype, at, i) - right[i % PERIOD]);

        if (!(error <= fabs(right[i % PERIOD]) * tolerance))
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

static bool is_adasum(const struct plan *plan, const struct plan_op *op,
                      const void *at, size_t count)
{
    const struct plan_set *set = &plan->sets[op->set];
    const rueda_dtype dtype = op->request.dtype;
    double *v = calloc((size_t)set->size * count + 1, sizeof(double));
    double *of_rank[PLAN_RANKS];
    double largest = 0;
    bool is_right = true;

    assert_non_null(v);
    for (int m = 0; m < set->size; m++) {
        of_rank[m] = v + (size_t)m * count;
        for (size_t i = 0; i < count && plan_takes(op, set->ranks[m]); i++)
            of_rank[m][i] =
                program_number(op, set->ranks[m], i) * op->request.prescale;
    }
    adasum_serial(of_rank, set->size, count);
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(v[i]) * op->request.postscale);
    for (size_t i = 0; i < count && is_right; i++)
        is_right =
            fabs(program_load(dtype, at, i) - v[i] * op->request.postscale) <=
            adasum_tolerance(dtype) * largest;
    free(v);
    return is_right;
}

bool program_is_reduced(const struct plan *plan, const struct plan_op *op,
                        const void *at, size_t first, size_t count)
{
    return op->request.reduction == RUEDA_ADASUM
               ? is_adasum(plan, op, at, count)
               : is_plain_reduced(plan, op, at, first, count);
}
