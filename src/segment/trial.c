/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/trial.h"

/* The limit of the sum of votes. A score that has settled is not turned by a
 * single vote, such as an interruption in the middle of a trial causes. */
#define MOST_SCORE 2

void rueda_trial_begin(struct rueda_trial *trial, uint64_t block, size_t bytes)
{
    rueda_way way = rueda_trial_way(trial, block);

    if (trial->pair != block / RUEDA_TRIAL_EVERY) {
        trial->pair = block / RUEDA_TRIAL_EVERY;
        trial->bytes[RUEDA_WAY_STORE] = 0;
        trial->bytes[RUEDA_WAY_STREAM] = 0;
    }
    trial->spent[way] = 0;
    trial->bytes[way] = bytes;
}

void rueda_trial_spend(struct rueda_trial *trial, uint64_t block, int64_t ns)
{
    trial->spent[rueda_trial_way(trial, block)] += ns;
}

/* Nanoseconds a byte. */
static double cost(const struct rueda_trial *trial, rueda_way way)
{
    return (double)trial->spent[way] / (double)trial->bytes[way];
}

static bool is_fair(size_t a, size_t b)
{
    return a > 0 && b > 0 && a / 2 <= b && b / 2 <= a;
}

void rueda_trial_end(struct rueda_trial *trial, uint64_t block)
{
    if (rueda_trial_way(trial, block) != RUEDA_WAY_STREAM ||
        !is_fair(trial->bytes[RUEDA_WAY_STORE], trial->bytes[RUEDA_WAY_STREAM]))
        return;
    if (cost(trial, RUEDA_WAY_STREAM) < cost(trial, RUEDA_WAY_STORE))
        trial->score += trial->score < MOST_SCORE;
    else
        trial->score -= trial->score > -MOST_SCORE;
    trial->bytes[RUEDA_WAY_STORE] = 0; /* counted */
}
