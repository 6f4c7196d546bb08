/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the host's kernels share: the implementations this CPU can
 * run, and vectors to fill with numbers of any dtype.
 */
#ifndef RUEDA_TESTS_HOST_NUMBERS_H
#define RUEDA_TESTS_HOST_NUMBERS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/host.h"
#include "support/numbers.h"

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    MAX_COUNT = 4097,
    MAX_SOURCES = 20,
    GUARD = 64, /* bytes behind a result, which no function may touch */
    ROOM = MAX_COUNT * 8 + 2 * GUARD,
};

static const rueda_dtype floats[] = {RUEDA_FLOAT16, RUEDA_BFLOAT16,
                                     RUEDA_FLOAT32, RUEDA_FLOAT64};
static const char *const names[] = {"c", "avx2", "avx512", "neon"};

/* What every test works on; too large for a stack. */
static unsigned char sources[MAX_SOURCES][ROOM];
static unsigned char wanted[ROOM];
static unsigned char result[ROOM];

/* Implementations this CPU can run; those it cannot are named once. */
static const struct rueda_kernels *present[LENGTH_OF(names)];
static size_t present_count;

static inline int find_implementations(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH_OF(names); i++) {
        const struct rueda_kernels *kernels = rueda_host_kernels(names[i]);

        if (kernels != NULL)
            present[present_count++] = kernels;
        else
            print_message("%s is skipped: this CPU cannot run it\n", names[i]);
    }
    return present_count > 0 ? 0 : -1;
}

static inline uint64_t next_random(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static inline bool is_half(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT16 || dtype == RUEDA_BFLOAT16;
}

static inline bool is_float(rueda_dtype dtype)
{
    return is_half(dtype) || dtype == RUEDA_FLOAT32 || dtype == RUEDA_FLOAT64;
}

static inline bool is_unsigned(rueda_dtype dtype)
{
    return dtype == RUEDA_UINT8 || dtype == RUEDA_UINT16 || dtype == RUEDA_BOOL;
}

static inline bool is_nan_at(rueda_dtype dtype, const unsigned char *vector,
                             size_t i)
{
    return is_float(dtype) && isnan(numbers_load(dtype, vector, i));
}

/* The same bits, guard included; a NaN need only be a NaN. */
static inline void assert_same(rueda_dtype dtype, const unsigned char *got,
                               const unsigned char *expected, size_t count)
{
    const size_t size = rueda_dtype_size(dtype);

    assert_memory_equal(got + count * size, expected + count * size, GUARD);
    if (memcmp(got, expected, count * size) == 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (memcmp(got + i * size, expected + i * size, size) != 0 &&
            !(is_nan_at(dtype, got, i) && is_nan_at(dtype, expected, i)))
            fail_msg("number %zu of %zu is %.17g, not %.17g", i, count,
                     numbers_load(dtype, got, i),
                     numbers_load(dtype, expected, i));
}

static inline void fill_random(unsigned char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t bits = next_random();

        memcpy(p + i, &bits, bytes - i < 8 ? bytes - i : 8);
    }
}

/* Random bits, which are seldom special, with special numbers among them:
 * zeros, denormals, infinities, NaN of both kinds; halves get them anyway. */
static inline void fill_with_anything(rueda_dtype dtype, unsigned char *p,
                                      size_t count)
{
    static const uint32_t f32[] = {0,          0x80000000, 1,
                                   0x807fffff, 0x7f800000, 0xff800000,
                                   0x7f800001, 0x7fffffff, 0xffc00000};
    static const uint64_t f64[] = {0,
                                   0x8000000000000000,
                                   1,
                                   0x800fffffffffffff,
                                   0x7ff0000000000000,
                                   0xfff0000000000000,
                                   0x7ff0000000000001,
                                   0x7fffffffffffffff};
    const size_t size = rueda_dtype_size(dtype);

    fill_random(p, count * size);
    for (size_t i = 0; i < count; i++) {
        const uint64_t pick = next_random();

        if (pick % 4 != 0)
            continue;
        if (dtype == RUEDA_FLOAT32)
            memcpy(p + 4 * i, &f32[(pick >> 8) % LENGTH_OF(f32)], 4);
        else if (dtype == RUEDA_FLOAT64)
            memcpy(p + 8 * i, &f64[(pick >> 8) % LENGTH_OF(f64)], 8);
        else if (size == 1)
            p[i] = 0;
    }
}

/* Small whole numbers that differ from place to place and between sources. */
static inline double small_number(rueda_dtype dtype, int source, size_t i)
{
    const int number = (int)((i * 7 + (size_t)source * 5) % 9) - 4;

    if (dtype == RUEDA_BOOL)
        return number > 0;
    return is_unsigned(dtype) ? abs(number) : number;
}

#endif /* RUEDA_TESTS_HOST_NUMBERS_H */
