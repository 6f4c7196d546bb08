/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks and changes of an elastic job. What is accepted is written as the same
 * bytes again, and ranks are such as a process can have. */
#include "fuzz/fuzz.h"
#include "job/rendezvous.h"

static void try_ranks(const uint8_t *data, size_t size)
{
    unsigned char again[RUEDA_RENDEZVOUS_BYTES];
    struct rueda_rendezvous_ranks ranks;
    struct rueda_text words = {{0}};
    rueda_status status = rueda_rendezvous_read(data, size, &ranks, &words);

    if (status != RUEDA_OK) {
        must(status == RUEDA_ERR_INVALID || status == RUEDA_ERR_CLOSED);
        return;
    }
    must(ranks.term > 0 && ranks.rank >= 0 && ranks.rank < ranks.size);
    must(ranks.local_rank < ranks.local_size);
    must(ranks.cross_rank < ranks.cross_size);
    must(size == sizeof(again));
    rueda_rendezvous_write(&ranks, again);
    must(memcmp(again, data, size) == 0);
}

static void try_change(const uint8_t *data, size_t size)
{
    unsigned char again[RUEDA_RENDEZVOUS_CHANGE_BYTES];
    struct rueda_rendezvous_change change;

    if (!rueda_rendezvous_change_read(data, size, &change))
        return;
    must(size == sizeof(again));
    rueda_rendezvous_change_write(&change, again);
    must(memcmp(again, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_ranks(data, size);
    try_change(data, size);
    return 0;
}
