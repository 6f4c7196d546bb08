/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handshake with a peer that sends anything, in pieces of any size. A proof
 * cannot be guessed, but the seeds have one: our nonce is the same each time.
 */
#include "auth/handshake.h"
#include "fuzz/fuzz.h"

static void check_proven(struct rueda_handshake *hs)
{
    const void *waiting;
    size_t bytes = SIZE_MAX;

    rueda_handshake_sent(hs, rueda_handshake_output(hs, &waiting));
    must(rueda_handshake_done(hs));
    must(rueda_handshake_peer_about(hs, &bytes) != NULL);
    must(bytes <= RUEDA_HANDSHAKE_ABOUT_MAX);
    must(rueda_handshake_version(hs) == RUEDA_PROTOCOL_VERSION);
    must(rueda_handshake_session_key(hs) != NULL);
    must(rueda_handshake_error(hs)[0] == '\0');
}

/* It has failed with words, nothing leaves it any more, and so it stays. */
static void check_refused(struct rueda_handshake *hs, rueda_status status)
{
    const void *waiting;
    size_t count;

    must(status == RUEDA_ERR_AUTH || status == RUEDA_ERR_VERSION ||
         status == RUEDA_ERR_PEER_LOST);
    must(rueda_handshake_error(hs)[0] != '\0');
    must(rueda_handshake_output(hs, &waiting) == 0);
    must(rueda_handshake_input(hs, "RUEDA", 5, &count) == status);
    must(rueda_handshake_closed(hs) == status);
    must(!rueda_handshake_done(hs));
    must(rueda_handshake_peer_about(hs, &count) == NULL);
    must(rueda_handshake_session_key(hs) == NULL);
    must(rueda_handshake_version(hs) == 0);
}

/* The first choice is the sum of 1 for an acceptor and 2 for a key; the others
 * are the sizes of pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const unsigned choice = fuzz_choice(&input);
    struct rueda_key key = {.bytes = {1, 2, 3}, .present = (choice & 2) != 0};
    rueda_status status = RUEDA_IN_PROGRESS;
    struct rueda_handshake hs;

    fuzz_random_restart();
    must(rueda_handshake_init(&hs,
                              choice & 1 ? RUEDA_ACCEPTOR : RUEDA_INITIATOR,
                              RUEDA_FOR_STORE, &key, "rank 0", 6) == RUEDA_OK);
    while (status == RUEDA_IN_PROGRESS && input.size > 0) {
        const unsigned most = 1 + fuzz_choice(&input);
        const uint8_t *piece;
        const size_t len = fuzz_take(&input, most, &piece);
        size_t used = SIZE_MAX;

        must(!rueda_handshake_done(&hs));
        status = rueda_handshake_input(&hs, piece, len, &used);
        if (status >= 0)
            must(status == RUEDA_OK ? used <= len : used == len);
    }
    if (status == RUEDA_IN_PROGRESS)
        status = rueda_handshake_closed(&hs);
    if (status == RUEDA_OK)
        check_proven(&hs);
    else
        check_refused(&hs, status);
    rueda_handshake_fini(&hs);
    return 0;
}
