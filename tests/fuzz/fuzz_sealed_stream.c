/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What launcher and agents say to one another, sealed: in the hands of an
 * attacker on the way, who changes a byte of it, and from a peer that has the
 * key and seals any length. What opens is what was sealed, from its beginning
 * on.
 */
#include "auth/sealed_stream.h"
#include "base/bytes.h"
#include "fuzz/fuzz.h"

#define LENGTH_BYTES 4

struct ends {
    struct rueda_sealed_stream sender;
    struct rueda_sealed_stream receiver;
    struct rueda_buffer wire;
    struct rueda_buffer got;
};

static void open_ends(struct ends *ends)
{
    const struct rueda_key session = {.bytes = {7}, .present = true};

    memset(ends, 0, sizeof(*ends));
    must(rueda_sealed_stream_init(&ends->sender, &session, RUEDA_INITIATOR) ==
         RUEDA_OK);
    must(rueda_sealed_stream_init(&ends->receiver, &session, RUEDA_ACCEPTOR) ==
         RUEDA_OK);
}

static void close_ends(struct ends *ends)
{
    rueda_sealed_stream_fini(&ends->sender);
    rueda_sealed_stream_fini(&ends->receiver);
    rueda_buffer_fini(&ends->wire);
    rueda_buffer_fini(&ends->got);
}

/* What is on the wire, in parts of this many bytes. False: it was refused. */
static bool carry(struct ends *ends, size_t part)
{
    struct rueda_buffer come = {.bytes = NULL};
    bool is_good = true;

    while (is_good && rueda_buffer_len(&ends->wire) > 0) {
        size_t bytes = rueda_buffer_len(&ends->wire);

        if (bytes > part)
            bytes = part;
        must(rueda_buffer_add(&come, rueda_buffer_front(&ends->wire), bytes));
        rueda_buffer_drop(&ends->wire, bytes);
        is_good = rueda_sealed_stream_open(&ends->receiver, &come, &ends->got);
    }
    rueda_buffer_fini(&come);
    return is_good;
}

static void try_way(struct fuzz_input *input, size_t part)
{
    unsigned flip = fuzz_choice(input);
    size_t at = fuzz_choice(input) * (size_t)256 + fuzz_choice(input);
    struct ends ends;
    size_t half = input->size / 2;
    bool is_good;

    open_ends(&ends);
    must(
        rueda_sealed_stream_close(&ends.sender, input->data, half, &ends.wire));
    must(rueda_sealed_stream_close(&ends.sender, input->data + half,
                                   input->size - half, &ends.wire));
    if (at < rueda_buffer_len(&ends.wire))
        rueda_buffer_front(&ends.wire)[at] ^= (unsigned char)flip;
    else
        flip = 0;
    is_good = carry(&ends, part);
    must(is_good == (flip == 0));
    must(!is_good || rueda_buffer_len(&ends.got) == input->size);
    must(rueda_buffer_len(&ends.got) <= input->size);
    if (rueda_buffer_len(&ends.got) > 0)
        must(memcmp(rueda_buffer_front(&ends.got), input->data,
                    rueda_buffer_len(&ends.got)) == 0);
    close_ends(&ends);
}

static void seal(struct ends *ends, const uint8_t *bytes, size_t len)
{
    unsigned char *place =
        rueda_buffer_reserve(&ends->wire, len + RUEDA_SEAL_TAG_BYTES);

    must(place != NULL && rueda_seal_close(&ends->sender.out, bytes, len, place,
                                           place + len) == RUEDA_OK);
    rueda_buffer_added(&ends->wire, len + RUEDA_SEAL_TAG_BYTES);
}

static void try_peer(struct fuzz_input *input, size_t part)
{
    struct ends ends;
    const uint8_t *length;
    const uint8_t *piece;
    size_t sealed = 0;

    open_ends(&ends);
    while (fuzz_take(input, LENGTH_BYTES, &length) == LENGTH_BYTES) {
        size_t len = fuzz_take(input, rueda_get_u32(length), &piece);

        seal(&ends, length, LENGTH_BYTES);
        seal(&ends, piece, len);
        sealed += len;
    }
    carry(&ends, part);
    must(rueda_buffer_len(&ends.got) <= sealed);
    close_ends(&ends);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    unsigned how = fuzz_choice(&input);

    if (how % 2 == 0)
        try_way(&input, 1 + how / 2);
    else
        try_peer(&input, 1 + how / 2);
    return 0;
}
