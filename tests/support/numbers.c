/* SPDX-License-Identifier: Apache-2.0 */
#include "support/numbers.h"

#include <math.h>
#include <string.h>

/* ---- Which numbers ---------------------------------------------------- */

/* Of booleans a third is true everywhere and a third nowhere. What Adasum gets
 * points to both sides. An int8 holds the sums of 32 ranks' numbers below 4. */
double numbers_at(const struct numbers *n, int rank, size_t i)
{
    const size_t at = i + n->salt;
    const size_t r = n->is_same ? 0 : (size_t)rank;
    const size_t most = n->dtype == RUEDA_INT8 ? 4 : 8;
    double number;

    if (n->dtype == RUEDA_BOOL)
        return at % 3 == 0 ? (at / 3 + r) % 4 != 0 : at % 3 == 1;
    if (n->reduction == RUEDA_PRODUCT)
        return (at + r) % 3 == 0 ? 2 : 1;
    number = (double)((at * 5 + at / 7 + r * 3) % most);
    if (n->reduction == RUEDA_ADASUM)
        return number - 3;
    return n->has_fraction ? number + 1.0 / 64 : number;
}

static double join(const struct numbers *n, double a, double b)
{
    const bool is_bool = n->dtype == RUEDA_BOOL;

    if (n->reduction == RUEDA_ADASUM)
        return a; /* of equal vectors it is that vector */
    if (n->reduction == RUEDA_MIN || (is_bool && n->reduction == RUEDA_PRODUCT))
        return a < b ? a : b;
    if (n->reduction == RUEDA_MAX || is_bool)
        return a > b ? a : b;
    return n->reduction == RUEDA_PRODUCT ? a * b : a + b;
}

static double scale(const struct numbers *n, double number, double factor)
{
    return factor == 0.0 || n->dtype == RUEDA_BOOL ? number : number * factor;
}

static int rank_of(const struct numbers *n, int member)
{
    return n->ranks != NULL ? n->ranks[member] : member;
}

double numbers_reduced(const struct numbers *n, size_t i)
{
    double result = 0;
    bool is_first = true;

    for (int m = 0; m < n->size; m++) {
        const int rank = rank_of(n, m);
        double mine;

        if (rank < 32 && (n->absent >> rank & 1) != 0)
            continue;
        mine = scale(n, numbers_at(n, rank, i), n->prescale);
        result = is_first ? mine : join(n, result, mine);
        is_first = false;
    }
    result = scale(n, result, n->postscale);
    if (n->reduction == RUEDA_AVERAGE && n->dtype != RUEDA_BOOL)
        result /= n->divisor != 0 ? n->divisor : n->size;
    return rueda_dtype_is_float(n->dtype) ? result : trunc(result);
}

/* ---- In memory -------------------------------------------------------- */

/* A half has a sign bit, an exponent and a mantissa. */
struct half {
    int mantissa_bits;
    int bias;
};

static bool is_half(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT16 || dtype == RUEDA_BFLOAT16;
}

static struct half half_of(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT16 ? (struct half){10, 15}
                                  : (struct half){7, 127};
}

double numbers_half(rueda_dtype dtype, uint16_t bits)
{
    const struct half half = half_of(dtype);
    const int one = 1 << half.mantissa_bits;
    const int exponent = (bits & 0x7fff) >> half.mantissa_bits;
    const int mantissa = bits & (one - 1);
    double value;

    if (exponent == 0x7fff >> half.mantissa_bits)
        value = mantissa != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - half.bias - half.mantissa_bits);
    else
        value =
            ldexp(mantissa + one, exponent - half.bias - half.mantissa_bits);
    return (bits & 0x8000) != 0 ? -value : value;
}

/* The nearest half, ties to even. */
static uint16_t half_bits(rueda_dtype dtype, double number)
{
    const struct half half = half_of(dtype);
    const int infinity = 0x7fff >> half.mantissa_bits << half.mantissa_bits;
    const int sign = signbit(number) ? 0x8000 : 0;
    const double size = fabs(number);
    int exponent = 0;
    int bits;

    if (size >= ldexp(1, half.bias + 1))
        return (uint16_t)(sign | infinity);
    frexp(size, &exponent);
    if (size == 0 || exponent < 2 - half.bias)
        exponent = 2 - half.bias; /* below it all have the same step */
    bits = (int)rint(ldexp(size, half.mantissa_bits + 1 - exponent));
    /* The leading bit of the mantissa adds one to the exponent. */
    bits += (exponent - 2 + half.bias) << half.mantissa_bits;
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

void numbers_store(rueda_dtype dtype, void *vector, size_t i, double number)
{
    const size_t bytes = rueda_dtype_size(dtype);
    const float narrow = (float)number;
    const uint16_t half = is_half(dtype) ? half_bits(dtype, (double)narrow) : 0;
    const int64_t whole = rueda_dtype_is_float(dtype) ? 0 : (int64_t)number;
    const void *from = &whole; /* little endian */

    if (is_half(dtype))
        from = &half;
    else if (dtype == RUEDA_FLOAT32)
        from = &narrow;
    else if (dtype == RUEDA_FLOAT64)
        from = &number;
    memcpy((char *)vector + i * bytes, from, bytes);
}

double numbers_load(rueda_dtype dtype, const void *vector, size_t i)
{
    const bool is_unsigned =
        dtype == RUEDA_UINT8 || dtype == RUEDA_UINT16 || dtype == RUEDA_BOOL;
    const size_t bytes = rueda_dtype_size(dtype);
    const unsigned char *at = (const unsigned char *)vector + i * bytes;
    union {
        int64_t whole;
        uint16_t half;
        float f32;
        double f64;
    } u = {.whole = 0};

    if (!is_unsigned && (at[bytes - 1] & 0x80) != 0)
        u.whole = -1;
    memcpy(&u, at, bytes);
    if (is_half(dtype))
        return numbers_half(dtype, u.half);
    if (dtype == RUEDA_FLOAT32)
        return (double)u.f32;
    return dtype == RUEDA_FLOAT64 ? u.f64 : (double)u.whole;
}

void numbers_write(const struct numbers *n, int rank, size_t first,
                   size_t count, void *to)
{
    const size_t period = NUMBERS_PERIOD * rueda_dtype_size(n->dtype);
    const size_t bytes = count * rueda_dtype_size(n->dtype);
    char *at = to;

    for (size_t i = 0; i < count && i < NUMBERS_PERIOD; i++)
        numbers_store(n->dtype, to, i,
                      rank == NUMBERS_REDUCED ? numbers_reduced(n, first + i)
                                              : numbers_at(n, rank, first + i));
    for (size_t done = period; done < bytes; done += period)
        memcpy(at + done, at, bytes - done < period ? bytes - done : period);
}

bool numbers_is_input(const struct numbers *n, int rank, const void *vector,
                      size_t count)
{
    const size_t period = NUMBERS_PERIOD * rueda_dtype_size(n->dtype);
    const size_t bytes = count * rueda_dtype_size(n->dtype);
    const char *at = vector;
    char right[NUMBERS_PERIOD * sizeof(double)];

    numbers_write(n, rank, 0, count < NUMBERS_PERIOD ? count : NUMBERS_PERIOD,
                  right);
    for (size_t done = 0; done < bytes; done += period)
        if (memcmp(at + done, right,
                   bytes - done < period ? bytes - done : period) != 0)
            return false;
    return true;
}

/* ---- Pieces ----------------------------------------------------------- */

bool numbers_has_pieces(rueda_kind kind)
{
    return kind == RUEDA_ALLGATHER || kind == RUEDA_ALLTOALL ||
           kind == RUEDA_REDUCE_SCATTER;
}

size_t numbers_piece(const struct numbers *n, int from, int to)
{
    const size_t of = (size_t)(n->kind == RUEDA_ALLGATHER ? from : to);

    if (n->piece != NULL)
        return n->piece(n->arg, from, to);
    if (!n->is_uneven)
        return n->count;
    if (n->kind == RUEDA_ALLTOALL)
        return ((size_t)from * (size_t)from + of + n->salt) % 3 * n->count;
    return (of + 1 + n->salt) % 3 * n->count;
}

size_t numbers_sent(const struct numbers *n, int member)
{
    size_t sum = 0;

    if (!numbers_has_pieces(n->kind))
        return n->kind == RUEDA_BARRIER ? 0 : n->count;
    if (n->kind == RUEDA_ALLGATHER)
        return numbers_piece(n, member, member);
    for (int to = 0; to < n->size; to++)
        sum += numbers_piece(n, member, to);
    return sum;
}

size_t numbers_received(const struct numbers *n, int member)
{
    size_t sum = 0;

    if (!numbers_has_pieces(n->kind))
        return n->kind == RUEDA_BARRIER ? 0 : n->count;
    if (n->kind == RUEDA_REDUCE_SCATTER)
        return numbers_piece(n, member, member);
    for (int from = 0; from < n->size; from++)
        sum += numbers_piece(n, from, member);
    return sum;
}

size_t numbers_first(const struct numbers *n, int member)
{
    size_t sum = 0;

    for (int m = 0; m < member; m++)
        sum += numbers_piece(n, m, m);
    return sum;
}

void numbers_counts(const struct numbers *n, int member, size_t *out_send,
                    size_t *out_recv)
{
    for (int i = 0; i < n->size; i++) {
        out_send[i] = numbers_piece(n, member, i);
        out_recv[i] = n->kind == RUEDA_REDUCE_SCATTER
                          ? numbers_piece(n, i, i)
                          : numbers_piece(n, i, member);
    }
}

void numbers_expect(const struct numbers *n, int member, void *out)
{
    const bool is_alltoall = n->kind == RUEDA_ALLTOALL;
    char *at = out;

    if (n->kind == RUEDA_REDUCE_SCATTER) {
        numbers_write(n, NUMBERS_REDUCED, numbers_first(n, member),
                      numbers_received(n, member), out);
        return;
    }
    if (!numbers_has_pieces(n->kind)) {
        numbers_write(n, n->kind == RUEDA_ALLREDUCE ? NUMBERS_REDUCED : n->root,
                      0, numbers_received(n, member), out);
        return;
    }
    for (int from = 0; from < n->size; from++) {
        const size_t count = numbers_piece(n, from, member);
        size_t first = 0;

        for (int to = 0; to < member && is_alltoall; to++)
            first += numbers_piece(n, from, to);
        numbers_write(n, rank_of(n, from), first, count, at);
        at += count * rueda_dtype_size(n->dtype);
    }
}
