/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers that a benchmark puts into buffers and expects in results, for
 * every type, independent of the library's arithmetic.
 */
#include "tool/pattern.h"

#include <math.h>
#include <string.h>

#include "base/least.h"

/* The numbers of a period go from 1 to its length (rueda_pattern_input()), and
 * the ranks' sum of them has to fit 8 bits. */
unsigned rueda_pattern_period(rueda_dtype dtype)
{
    return rueda_dtype_size(dtype) <= 2 ? 7 : RUEDA_PATTERN_PERIOD;
}

/* How many bits of magnitude a type has before it overflows, or before it no
 * longer counts exactly. */
double rueda_pattern_range_bits(rueda_dtype dtype)
{
    switch (dtype) {
    case RUEDA_FLOAT64:
        return 1023.0;
    case RUEDA_FLOAT32:
    case RUEDA_BFLOAT16:
        return 127.0;
    case RUEDA_FLOAT16:
        return 15.0;
    case RUEDA_INT64:
        return 52.0; /* as far as a double counts exactly */
    default:
        /* One less than the bits of the signed ones; the unsigned ones could
         * take one more. */
        return (double)rueda_dtype_size(dtype) * 8.0 - 1.0;
    }
}

static bool is_unsigned(rueda_dtype dtype)
{
    return dtype == RUEDA_UINT8 || dtype == RUEDA_UINT16;
}

static bool is_whole(rueda_dtype dtype)
{
    return dtype != RUEDA_FLOAT16 && dtype != RUEDA_BFLOAT16 &&
           dtype != RUEDA_FLOAT32 && dtype != RUEDA_FLOAT64;
}

double rueda_pattern_input(rueda_dtype dtype, rueda_reduction reduction,
                           unsigned i)
{
    const unsigned step = i % rueda_pattern_period(dtype);

    if (dtype == RUEDA_BOOL)
        return step < 3 ? 1.0 : 0.0;
    if (reduction == RUEDA_PRODUCT && is_unsigned(dtype))
        return step < 5 ? 1.0 : 0.0;
    if (reduction == RUEDA_PRODUCT)
        return step % 2 == 0 ? 1.0 : -1.0;
    return 1.0 + step;
}

/* What the reduction makes of two values. */
double rueda_pattern_join(rueda_dtype dtype, rueda_reduction reduction,
                          double a, double b)
{
    const bool is_bool = dtype == RUEDA_BOOL;

    switch (reduction) {
    case RUEDA_SUM:
    case RUEDA_AVERAGE:
        return is_bool ? fmax(a, b) : a + b;
    case RUEDA_MIN:
        return fmin(a, b);
    case RUEDA_MAX:
        return fmax(a, b);
    case RUEDA_PRODUCT:
        return a * b;
    default:
        return a; /* Adasum of equal vectors */
    }
}

/* What a value becomes when its own result is reduced again, several times. */
double rueda_pattern_repeat(rueda_dtype dtype, rueda_reduction reduction,
                            double once, int size, unsigned iterations)
{
    double value = once;

    if (dtype == RUEDA_BOOL)
        return once;
    if (reduction == RUEDA_AVERAGE)
        return once / size;
    for (unsigned i = 1; i < iterations; i++) {
        if (reduction == RUEDA_SUM)
            value *= size;
        else if (reduction == RUEDA_PRODUCT)
            value = pow(value, size);
        else
            break;
    }
    return value;
}

/* A pattern repeats after a few elements; a block of repeats is made once, so
 * that filling and checking are memcpy() and memcmp(). */
void rueda_pattern_init(struct rueda_pattern *pattern, rueda_dtype dtype,
                        const double *values, double slack, size_t count)
{
    const size_t bytes = rueda_dtype_size(dtype);
    const unsigned period = rueda_pattern_period(dtype);
    size_t repeats = (count + period - 1) / period;

    if (repeats > RUEDA_PATTERN_REPEATS)
        repeats = RUEDA_PATTERN_REPEATS;
    pattern->dtype = dtype;
    pattern->period = period;
    pattern->slack = slack;
    pattern->is_average = false;
    pattern->block_count = repeats * period;
    memcpy(pattern->values, values, period * sizeof(*values));
    for (size_t i = 0; i < pattern->block_count; i++)
        rueda_number_encode(dtype, values[i % period],
                            pattern->block + i * bytes);
}

void rueda_pattern_fill(const struct rueda_pattern *pattern, void *buf,
                        size_t count)
{
    const size_t bytes = rueda_dtype_size(pattern->dtype);

    for (size_t done = 0; done < count; done += pattern->block_count)
        memcpy((char *)buf + done * bytes, pattern->block,
               rueda_least(pattern->block_count, count - done) * bytes);
}

/* How far a result may be from the exact one. */
static double tolerance(const struct rueda_pattern *pattern, double wanted)
{
    double unit = 0.0;

    if (pattern->slack == 0.0)
        return 0.0;
    if (is_whole(pattern->dtype))
        return pattern->is_average ? 1.0 : 0.0;
    if (pattern->dtype == RUEDA_FLOAT64)
        unit = 0x1p-52;
    else if (pattern->dtype == RUEDA_FLOAT32)
        unit = 0x1p-23;
    else if (pattern->dtype == RUEDA_FLOAT16)
        unit = 0x1p-10;
    else
        unit = 0x1p-7;
    return fabs(wanted) * unit * pattern->slack;
}

/* Compare element by element, with the tolerance of the type. */
static bool check_block(const struct rueda_pattern *pattern, const char *buf,
                        size_t count, struct rueda_mistake *out_mistake)
{
    const size_t bytes = rueda_dtype_size(pattern->dtype);

    for (size_t i = 0; i < count; i++) {
        const double exact = pattern->values[i % pattern->period];
        const double got = rueda_number_decode(pattern->dtype, buf + i * bytes);
        const double wanted =
            rueda_number_decode(pattern->dtype, pattern->block + i * bytes);

        /* Said this way round, a NaN is wrong. */
        if (fabs(got - wanted) <= tolerance(pattern, exact))
            continue;
        *out_mistake = (struct rueda_mistake){i, got, wanted};
        return false;
    }
    return true;
}

/* Blocks that are equal bit by bit need no arithmetic: nearly all of them. Only
 * one that differs is compared number by number, since roundings may differ. */
bool rueda_pattern_check(const struct rueda_pattern *pattern, const void *buf,
                         size_t count, struct rueda_mistake *out_mistake)
{
    const size_t bytes = rueda_dtype_size(pattern->dtype);

    for (size_t done = 0; done < count; done += pattern->block_count) {
        const char *at = (const char *)buf + done * bytes;
        const size_t n = rueda_least(pattern->block_count, count - done);

        if (memcmp(at, pattern->block, n * bytes) == 0)
            continue;
        if (!check_block(pattern, at, n, out_mistake)) {
            out_mistake->index += done;
            return false;
        }
    }
    return true;
}
