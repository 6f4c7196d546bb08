/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_numbers.h"

#include <math.h>
#include <string.h>

double program_number(const struct plan_op *op, int rank, size_t i)
{
    size_t at = i + op->salt;

    if (op->request.reduction == RUEDA_PRODUCT)
        return (at + (size_t)rank) % 3 == 0 ? 2 : 1;
    return (double)((at * 5 + at / 7 + (size_t)rank * 3) % 8);
}

void program_store(rueda_dtype dtype, void *at, size_t i, double number)
{
    float single = (float)number;
    uint32_t bits;

    switch (dtype) {
    case RUEDA_UINT8:
        ((uint8_t *)at)[i] = (uint8_t)number;
        break;
    case RUEDA_INT32:
        ((int32_t *)at)[i] = (int32_t)number;
        break;
    case RUEDA_INT64:
        ((int64_t *)at)[i] = (int64_t)number;
        break;
    case RUEDA_FLOAT32:
        ((float *)at)[i] = single;
        break;
    case RUEDA_BFLOAT16: /* small whole numbers have no more bits */
        memcpy(&bits, &single, sizeof(bits));
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
        break;
    default:
        ((double *)at)[i] = number;
        break;
    }
}

double program_load(rueda_dtype dtype, const void *at, size_t i)
{
    uint32_t bits;
    float single;

    switch (dtype) {
    case RUEDA_UINT8:
        return ((const uint8_t *)at)[i];
    case RUEDA_INT32:
        return ((const int32_t *)at)[i];
    case RUEDA_INT64:
        return (double)((const int64_t *)at)[i];
    case RUEDA_FLOAT32:
        return ((const float *)at)[i];
    case RUEDA_BFLOAT16:
        bits = (uint32_t)((const uint16_t *)at)[i] << 16;
        memcpy(&single, &bits, sizeof(single));
        return single;
    default:
        return ((const double *)at)[i];
    }
}

/* Whole numbers are exact; an average is rounded once or twice. */
static bool is_near(rueda_dtype dtype, double number, double right)
{
    double part = dtype == RUEDA_FLOAT64   ? 1e-14
                  : dtype == RUEDA_FLOAT32 ? 1e-6
                                           : 1.0 / 128;

    if (!rueda_dtype_is_float(dtype))
        return number == right;
    return fabs(number - right) <= fabs(right) * part;
}

static double join(rueda_reduction reduction, double a, double b)
{
    switch (reduction) {
    case RUEDA_MIN:
        return a < b ? a : b;
    case RUEDA_MAX:
        return a > b ? a : b;
    case RUEDA_PRODUCT:
        return a * b;
    default:
        return a + b;
    }
}

/* Who has joined changes nothing. */
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
        mine = program_number(op, rank, i) * request->prescale;
        result = is_first ? mine : join(request->reduction, result, mine);
        is_first = false;
    }
    result *= request->postscale;
    if (request->reduction == RUEDA_AVERAGE)
        result /= (request->flags & RUEDA_LIVE_AVERAGE) != 0
                      ? plan_taker_count(op)
                      : set->size;
    return rueda_dtype_is_float(request->dtype) ? result : trunc(result);
}

bool program_is_reduced(const struct plan *plan, const struct plan_op *op,
                        const void *at, size_t first, size_t count)
{
    const rueda_dtype dtype = op->request.dtype;

    for (size_t i = 0; i < count; i++)
        if (!is_near(dtype, program_load(dtype, at, i),
                     reduced(plan, op, first + i)))
            return false;
    return true;
}
