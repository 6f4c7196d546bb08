/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pulse on which something comes. Whatever it is ends the pulse. What an
 * attacker on the way can write is not shown; of what the peer has sealed
 * characters are that a terminal does not take for orders. The choice is
 * whether it has.
 */
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "transport/tcp/hub.h"

/* What the peer sends if these are its last words; returns how many bytes. */
static size_t seal_words(const struct rueda_key *session, const uint8_t *words,
                         size_t len, unsigned char *out)
{
    struct rueda_seal send;
    struct rueda_seal receive;

    must(rueda_seal_pair(session, RUEDA_INITIATOR, &send, &receive) ==
         RUEDA_OK);
    must(rueda_seal_close(&send, words, len, out + RUEDA_SEAL_TAG_BYTES, out) ==
         RUEDA_OK);
    return len + RUEDA_SEAL_TAG_BYTES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const bool is_sealed = (fuzz_choice(&input) & 1) != 0 && input.size > 0 &&
                           input.size < RUEDA_TEXT_BYTES;
    unsigned char sealed[RUEDA_SEAL_TAG_BYTES + RUEDA_TEXT_BYTES];
    const int descriptors = fuzz_descriptors();
    struct rueda_key key = {.bytes = {1}, .present = true};
    const struct rueda_tcp_args args = {
        .rank = 1, .size = 2, .key = &key, .streams = 1};
    struct rueda_text error = {{0}};
    struct rueda_tcp_hub *hub;
    struct fuzz_stream stream;

    must(rueda_tcp_hub_open(&args, &hub, &error) == RUEDA_OK);
    for (int rank = 0; rank < 2; rank++)
        must(rueda_tcp_hub_locate(hub, rank, rank, NULL, 0) == RUEDA_OK);
    if (is_sealed) {
        input.size = seal_words(&key, input.data, input.size, sealed);
        input.data = sealed;
    }
    fuzz_stream_open(&stream, input.data, input.size);
    rueda_tcp_pulse_take(hub, 0, stream.ours, &key);
    must(hub->pulses[0].theirs == 1);
    rueda_tcp_pulses_check(hub, 1);
    must(hub->peers[0].pulse < 0 && hub->pulses[0].theirs == 0);
    must(is_sealed == (rueda_tcp_hub_last_words(hub) != NULL));
    for (const char *at = rueda_tcp_hub_last_words(hub);
         at != NULL && *at != '\0'; at++)
        must(*at >= ' ' && *at <= '~');
    rueda_tcp_hub_close(hub);
    close(stream.theirs);
    must(fuzz_descriptors() == descriptors);
    return 0;
}
