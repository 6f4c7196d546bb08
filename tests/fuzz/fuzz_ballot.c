/* SPDX-License-Identifier: Apache-2.0 */
/* Words about the next term: a length, a key and a value, one after another.
 * What is read is written as the same key and value again, and whatever is
 * counted, the ballot stays whole. */
#include "fuzz/fuzz.h"
#include "job/ballot.h"

#define SIZE 5

static void check_word(const struct rueda_ballot_word *word,
                       const uint8_t *value, size_t bytes)
{
    unsigned char value_again[RUEDA_BALLOT_VALUE_BYTES];
    char again[RUEDA_BALLOT_KEY_BYTES];
    struct rueda_ballot_word back;
    const size_t len = rueda_ballot_write_key(word, again);

    must(word->member >= 0 && word->member < SIZE);
    must(word->speaker >= 0 && word->speaker < SIZE);
    must(rueda_ballot_read(again, len, value, bytes, SIZE, &back));
    must(back.kind == word->kind && back.term == word->term);
    must(back.member == word->member && back.speaker == word->speaker);
    if (word->kind == RUEDA_BALLOT_FROZEN) {
        must(rueda_ballot_write_value(word, value_again) == bytes);
        must(memcmp(value_again, value, bytes) == 0);
    }
}

static void check_ballot(const struct rueda_ballot *ballot)
{
    const uint32_t term = ballot->now.term;
    bool survives = false;

    must(rueda_ballot_begin(ballot, term) == RUEDA_IN_PROGRESS);
    for (int i = 0; i < SIZE; i++)
        survives = survives || rueda_ballot_survives(ballot, term, i);
    must(survives == (rueda_ballot_vote(ballot, term) != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rueda_ballot ballot;

    if (rueda_ballot_init(&ballot, SIZE) != RUEDA_OK)
        return 0;
    while (size > 2) {
        const size_t len = data[0] % 48;
        const size_t bytes = data[1] % 32;
        struct rueda_ballot_word word;

        data += 2;
        size -= 2;
        if (len + bytes > size)
            break;
        if (rueda_ballot_read(data, len, data + len, bytes, SIZE, &word)) {
            check_word(&word, data + len, bytes);
            rueda_ballot_count(&ballot, &word);
            check_ballot(&ballot);
        }
        data += len + bytes;
        size -= len + bytes;
    }
    rueda_ballot_fini(&ballot);
    return 0;
}
