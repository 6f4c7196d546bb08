/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pulse on which something comes, which anybody on the way can write.
 * Whatever it is ends the pulse, and what is shown of it are characters that a
 * terminal does not take for orders.
 */
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "transport/tcp/hub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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
    fuzz_stream_open(&stream, data, size);
    rueda_tcp_pulse_take(hub, 0, stream.ours);
    must(hub->pulses[0].theirs == 1);
    rueda_tcp_pulses_check(hub, 1);
    must(hub->peers[0].pulse < 0 && hub->pulses[0].theirs == 0);
    must((size == 0) == (rueda_tcp_hub_last_words(hub) == NULL));
    for (const char *at = rueda_tcp_hub_last_words(hub);
         at != NULL && *at != '\0'; at++)
        must(*at >= ' ' && *at <= '~');
    rueda_tcp_hub_close(hub);
    close(stream.theirs);
    must(fuzz_descriptors() == descriptors);
    return 0;
}
