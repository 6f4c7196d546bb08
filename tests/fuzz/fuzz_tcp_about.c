/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two ends say about themselves in the handshake, one behind the other.
 * What is accepted is written in no other way, and both come to the same end,
 * in which an end that forbids sealing does not seal, and one that insists on
 * it does not do without, and with a cipher that both have.
 */
#include "fuzz/fuzz.h"
#include "transport/tcp/about.h"

static bool read_about(const uint8_t *data, size_t size,
                       struct rueda_tcp_about *out)
{
    unsigned char again[RUEDA_TCP_ABOUT_BYTES];

    out->rank = -7;
    if (!rueda_tcp_about_decode(data, size, out)) {
        must(out->rank == -7);
        return false;
    }
    must(size == sizeof(again));
    must(out->rank >= 0 && out->rank < out->size);
    rueda_tcp_about_encode(out, again);
    must(memcmp(again, data, size) == 0);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct rueda_text errors[2] = {{{0}}, {{0}}};
    struct rueda_tcp_about abouts[2];
    struct rueda_tcp_protection ends[2] = {{RUEDA_TCP_PLAIN, 0}};
    rueda_status status;
    const uint8_t *first;
    size_t len = fuzz_take(&input, RUEDA_TCP_ABOUT_BYTES, &first);

    if (!read_about(first, len, &abouts[0]) ||
        !read_about(input.data, input.size, &abouts[1]))
        return 0;
    status = rueda_tcp_agree(&abouts[0], &abouts[1], &ends[0], &errors[0]);
    must(rueda_tcp_agree(&abouts[1], &abouts[0], &ends[1], &errors[1]) ==
         status);
    must(ends[0].shield == ends[1].shield && ends[0].cipher == ends[1].cipher);
    must(rueda_text_is_empty(&errors[0]) == (status == RUEDA_OK));
    for (int i = 0; i < 2 && status == RUEDA_OK; i++) {
        const rueda_tcp_shield shield = ends[0].shield;

        must(abouts[i].costs[ends[0].cipher] > 0);
        must(abouts[i].wish != RUEDA_TCP_FORBID || shield == RUEDA_TCP_PLAIN);
        must(abouts[i].wish != RUEDA_TCP_INSIST || shield == RUEDA_TCP_SEALED);
        must((abouts[i].wish == RUEDA_TCP_PROVE) ==
             (shield == RUEDA_TCP_PROVEN));
    }
    return 0;
}
