/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers that are the same for the same seed on every machine:
 * SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014). Not for keys.
 */
#ifndef RUEDA_TRANSPORT_SIM_DICE_H
#define RUEDA_TRANSPORT_SIM_DICE_H

#include <stdint.h>

#include "base/hash.h"

struct rueda_dice {
    uint64_t state; /* the seed, at first */
};

static inline uint64_t rueda_dice_roll(struct rueda_dice *dice)
{
    dice->state += 0x9e3779b97f4a7c15u;
    return rueda_hash_mix(dice->state);
}

/* From 0 up to n - 1; 0 if n is 0. */
static inline uint64_t rueda_dice_below(struct rueda_dice *dice, uint64_t n)
{
    return (uint64_t)((unsigned __int128)rueda_dice_roll(dice) * n >> 64);
}

#endif /* RUEDA_TRANSPORT_SIM_DICE_H */
