/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

/* A turn for which the caller has not read the clock spins, so a wait may spin
 * up to RUEDA_SPIN_TURNS - 1 turns longer than spin_ns. */
rueda_backoff_step rueda_backoff_next(struct rueda_backoff *backoff,
                                      int64_t now_ns)
{
    int wants_time = rueda_backoff_wants_time(backoff);
    int64_t waited;

    backoff->turns++;
    if (!wants_time)
        return RUEDA_SPIN;
    if (backoff->since_ns == 0)
        backoff->since_ns = now_ns;
    waited = now_ns - backoff->since_ns;
    if (waited < backoff->spin_ns)
        return RUEDA_SPIN;
    backoff->turns--; /* past spinning, every turn reads the clock */
    if (waited < backoff->spin_ns + backoff->yield_ns)
        return RUEDA_YIELD;
    return RUEDA_SLEEP;
}
