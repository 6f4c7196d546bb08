/* SPDX-License-Identifier: Apache-2.0 */
/* The whole exchange of a card by PMI-1 or PMI-2, with a launcher that answers
 * anything. */
#include "fuzz/fuzz.h"
#include "job/business_card.h"
#include "job/exchange.h"
#include "os/clock.h"

#define SECOND ((int64_t)1000000000)

static const char *look(void *arg, const char *name)
{
    return strcmp(name, "PMI_FD") == 0 ? arg : NULL;
}

/* The choices: 1 for PMI-2, 2 for rank 3 instead of 0, 4 for a card that begins
 * with a secret; bytes of the card. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const unsigned choice = fuzz_choice(&input);
    const unsigned bytes = 1 + fuzz_choice(&input);
    unsigned char before[RUEDA_BUSINESS_CARD_PACKED];
    unsigned char card[RUEDA_BUSINESS_CARD_PACKED];
    struct rueda_text error = {{0}};
    struct fuzz_stream stream;
    struct rueda_business_card_exchange exchange;
    rueda_status status;
    char fd[16];

    memset(before, 'c', sizeof(before));
    memcpy(card, before, sizeof(card));
    fuzz_stream_open(&stream, input.data, input.size);
    snprintf(fd, sizeof(fd), "%d", stream.ours);
    exchange = (struct rueda_business_card_exchange){
        .rank = choice & 2 ? 3 : 0,
        .size = 4,
        .secret_bytes = choice & 4 && bytes >= RUEDA_CARD_SECRET_BYTES
                            ? RUEDA_CARD_SECRET_BYTES
                            : 0,
        .environment = look,
        .arg = fd,
        .deadline_ns = rueda_clock_ns() + SECOND,
    };
    if (choice & 1)
        status = rueda_launcher_exchange_pmi2(&exchange, card, bytes, &error);
    else
        status = rueda_launcher_exchange_pmi1(&exchange, card, bytes, &error);
    must(status <= 0 && status != RUEDA_ERR_TIMEOUT && status != RUEDA_ERR_IO);
    must(rueda_text_is_empty(&error) == (status == RUEDA_OK));
    if (status != RUEDA_OK || exchange.rank == 0)
        must(memcmp(card, before, bytes) == 0);
    must(memcmp(card + bytes, before, sizeof(card) - bytes) == 0);
    fuzz_stream_close(&stream);
    return 0;
}
