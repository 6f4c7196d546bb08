/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of every dtype in memory, written plainly and apart from the
 * library's own conversions, which this checks.
 */
#include <math.h>
#include <string.h>

#include "tool/pattern.h"

/* Half precision: 1 sign, 5 exponent and 10 fraction bits. The fraction is
 * rounded to even by nearbyint() in the default rounding mode. */
static uint16_t half_of(double value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const double size = fabs(value);
    double fraction;
    int exponent;

    if (isnan(value))
        return 0x7e00;
    if (size >= 65520.0)
        return sign | 0x7c00;
    if (size < 0x1p-14)
        return sign | (uint16_t)nearbyint(size * 0x1p24);
    fraction = nearbyint(frexp(size, &exponent) * 0x1p11);
    /* The carry of a fraction that rounds up to 2048 moves into the exponent,
     * as it should. */
    return sign | (uint16_t)(((exponent + 14) << 10) + ((int)fraction - 1024));
}

static double half_to_double(uint16_t bits)
{
    const double sign = bits & 0x8000 ? -1.0 : 1.0;
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;

    if (exponent == 31)
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * fraction * 0x1p-24;
    return sign * ldexp(1024 + fraction, exponent - 25);
}

/* The upper half of a float, rounded to even. */
static uint16_t bfloat_of(double value)
{
    const float single = (float)value;
    uint32_t bits;

    memcpy(&bits, &single, sizeof(bits));
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    bits += 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

static double bfloat_to_double(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float single;

    memcpy(&single, &bits, sizeof(single));
    return single;
}

/* Whole numbers by their size; the value is known to fit. */
static void encode_whole(rueda_dtype dtype, double value, void *out)
{
    const uint64_t bits = (uint64_t)(int64_t)value;
    const size_t bytes = rueda_dtype_size(dtype);
    const uint8_t byte = (uint8_t)bits;
    const uint16_t two = (uint16_t)bits;
    const uint32_t four = (uint32_t)bits;

    if (bytes == 1)
        memcpy(out, &byte, 1);
    else if (bytes == 2)
        memcpy(out, &two, 2);
    else if (bytes == 4)
        memcpy(out, &four, 4);
    else
        memcpy(out, &bits, 8);
}

/* Write a number as an element of the type. */
void rueda_number_encode(rueda_dtype dtype, double value, void *out)
{
    const float single = (float)value;
    uint16_t half;

    switch (dtype) {
    case RUEDA_FLOAT64:
        memcpy(out, &value, sizeof(value));
        break;
    case RUEDA_FLOAT32:
        memcpy(out, &single, sizeof(single));
        break;
    case RUEDA_FLOAT16:
        half = half_of(value);
        memcpy(out, &half, sizeof(half));
        break;
    case RUEDA_BFLOAT16:
        half = bfloat_of(value);
        memcpy(out, &half, sizeof(half));
        break;
    default:
        encode_whole(dtype, value, out);
        break;
    }
}

/* Read an element as a number. */
double rueda_number_decode(rueda_dtype dtype, const void *in)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } number;

    memcpy(&number, in, rueda_dtype_size(dtype));
    switch (dtype) {
    case RUEDA_INT8:
        return number.i8;
    case RUEDA_UINT16:
        return number.u16;
    case RUEDA_INT16:
        return number.i16;
    case RUEDA_INT32:
        return number.i32;
    case RUEDA_INT64:
        return (double)number.i64;
    case RUEDA_FLOAT16:
        return half_to_double(number.u16);
    case RUEDA_BFLOAT16:
        return bfloat_to_double(number.u16);
    case RUEDA_FLOAT32:
        return number.f32;
    case RUEDA_FLOAT64:
        return number.f64;
    default: /* uint8, bool */
        return number.u8;
    }
}
