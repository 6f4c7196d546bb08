/* SPDX-License-Identifier: Apache-2.0 */
/* What changes nothing, for every reduction and dtype. */
#include <stdbool.h>
#include <stdint.h>

#include "device/host.h"

enum neutral_number {
    ZERO,
    ONE,
    LOWEST,
    HIGHEST
};

/* The bits of each, in as many bytes as the dtype has. */
static const uint64_t bits_of[RUEDA_DTYPE_COUNT][4] = {
    [RUEDA_UINT8] = {0, 1, 0, UINT8_MAX},
    [RUEDA_INT8] = {0, 1, 0x80, INT8_MAX},
    [RUEDA_UINT16] = {0, 1, 0, UINT16_MAX},
    [RUEDA_INT16] = {0, 1, 0x8000, INT16_MAX},
    [RUEDA_INT32] = {0, 1, 0x80000000, INT32_MAX},
    [RUEDA_INT64] = {0, 1, 0x8000000000000000, INT64_MAX},
    [RUEDA_FLOAT16] = {0, 0x3c00, 0xfc00, 0x7c00},
    [RUEDA_FLOAT32] = {0, 0x3f800000, 0xff800000, 0x7f800000},
    [RUEDA_FLOAT64] = {0, 0x3ff0000000000000, 0xfff0000000000000,
                       0x7ff0000000000000},
    [RUEDA_BOOL] = {0, 1, 0, 1},
    [RUEDA_BFLOAT16] = {0, 0x3f80, 0xff80, 0x7f80},
};

/* A negative scale turns numbers round, but no bool; one of 0 makes 0 of all
 * numbers, but no number of an infinite one. */
static enum neutral_number choose(const struct rueda_arith *arith)
{
    const bool is_turned = arith->prescale < 0 && arith->dtype != RUEDA_BOOL;

    switch (arith->reduction) {
    case RUEDA_PRODUCT:
        return ONE;
    case RUEDA_MIN:
    case RUEDA_MAX:
        if (arith->prescale == 0)
            return ZERO;
        return (arith->reduction == RUEDA_MAX) != is_turned ? LOWEST : HIGHEST;
    default:
        return ZERO;
    }
}

bool rueda_arith_has_zero(const struct rueda_arith *arith)
{
    return bits_of[arith->dtype][choose(arith)] == 0;
}

#define FILL(type)                                                             \
    do {                                                                       \
        typedef type any __attribute__((aligned(1), may_alias));               \
        any *out = dst;                                                        \
                                                                               \
        for (size_t i = 0; i < count; i++)                                     \
            out[i] = (type)bits;                                               \
    } while (0)

void rueda_host_neutral(const struct rueda_arith *arith, void *dst,
                        size_t count)
{
    const uint64_t bits = bits_of[arith->dtype][choose(arith)];

    switch (rueda_dtype_size(arith->dtype)) {
    case 1:
        FILL(uint8_t);
        break;
    case 2:
        FILL(uint16_t);
        break;
    case 4:
        FILL(uint32_t);
        break;
    default:
        FILL(uint64_t);
        break;
    }
}
