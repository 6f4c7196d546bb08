/* SPDX-License-Identifier: Apache-2.0 */
/* Places and news of an elastic job. What is accepted is written as the same
 * bytes again, and a place is one that a rank can have. */
#include "fuzz/fuzz.h"
#include "job/place.h"

static void try_place(const uint8_t *data, size_t size)
{
    unsigned char again[RUEDA_PLACE_BYTES];
    struct rueda_term_place place;
    struct rueda_text words = {{0}};
    rueda_status status = rueda_place_read(data, size, &place, &words);

    if (status != RUEDA_OK) {
        must(status == RUEDA_ERR_INVALID || status == RUEDA_ERR_CLOSED);
        return;
    }
    must(place.term > 0 && place.rank >= 0 && place.rank < place.size);
    must(place.local_rank < place.local_size);
    must(place.cross_rank < place.cross_size);
    must(size == sizeof(again));
    rueda_place_write(&place, again);
    must(memcmp(again, data, size) == 0);
}

static void try_news(const uint8_t *data, size_t size)
{
    unsigned char again[RUEDA_NEWS_BYTES];
    struct rueda_news news;

    if (!rueda_news_read(data, size, &news))
        return;
    must(size == sizeof(again));
    rueda_news_write(&news, again);
    must(memcmp(again, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_place(data, size);
    try_news(data, size);
    return 0;
}
