/* SPDX-License-Identifier: Apache-2.0 */
#include "job/exchange.h"

void rueda_launcher_exchange_late(int rank, int size, struct rueda_text *error)
{
    rueda_text_set(error,
                   "rank %d waited for all %d ranks, and not all ranks came to "
                   "meet in time; did every rank call rueda_init()? look at "
                   "the output of the others for one that ended, or that is "
                   "stuck before it; for a slow start raise "
                   "RUEDA_START_TIMEOUT",
                   rank, size);
}
