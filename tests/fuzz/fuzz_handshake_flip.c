/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two honest ends, and bits that flip between them. An end that receives a
 * changed HELLO or proof, or proves something about it, does not succeed; with
 * no flip both do. The acceptor speaks last and has no answer, so a flip in its
 * proof is the other's to find.
 */
#include "auth/handshake.h"
#include "fuzz/fuzz.h"

#define HELLO RUEDA_HANDSHAKE_HELLO_BYTES
#define ALL   RUEDA_HANDSHAKE_BYTES

/* One direction: who sends, who receives, and the bits to flip by place. */
struct way {
    struct rueda_handshake *from;
    struct rueda_handshake *to;
    unsigned char flips[ALL];
    size_t carried;
};

/* Carry some of what waits, at most most bytes. Returns if there was any. */
static bool carry(struct way *way, size_t most)
{
    unsigned char piece[ALL];
    const void *waiting;
    size_t count = rueda_handshake_output(way->from, &waiting);
    size_t used;

    if (count > most)
        count = most;
    must(way->carried + count <= ALL);
    memcpy(piece, waiting, count);
    for (size_t i = 0; i < count; i++)
        piece[i] ^= way->flips[way->carried + i];
    rueda_handshake_sent(way->from, count);
    way->carried += count;
    rueda_handshake_input(way->to, piece, count, &used);
    return count > 0;
}

static bool has_flips(const struct way *way, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (way->flips[i] != 0)
            return true;
    return false;
}

static void check_agreed(const struct rueda_handshake *a,
                         const struct rueda_handshake *b)
{
    const struct rueda_key *ours = rueda_handshake_session_key(a);
    const struct rueda_key *theirs = rueda_handshake_session_key(b);
    size_t bytes = 0;

    must(rueda_handshake_done(a) && rueda_handshake_done(b));
    must(memcmp(rueda_handshake_peer_about(a, &bytes), "right", 5) == 0);
    must(bytes == 5);
    must(memcmp(rueda_handshake_peer_about(b, &bytes), "left", 4) == 0);
    must(bytes == 4);
    must(memcmp(ours, theirs, sizeof(*ours)) == 0);
}

/* Data is three bytes a flip: direction, place, bits. The first choice is 1 for
 * a key; the others are the sizes of pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct rueda_key key = {.bytes = {7}, .present = fuzz_choice(&input) & 1};
    struct rueda_handshake left; /* the initiator */
    struct rueda_handshake right;
    struct way ways[2] = {{.from = &left, .to = &right},
                          {.from = &right, .to = &left}};
    unsigned sizes[8];
    const uint8_t *flip;
    bool moved = true;

    for (int i = 0; i < 8; i++)
        sizes[i] = 1 + fuzz_choice(&input);
    while (fuzz_take(&input, 3, &flip) == 3)
        ways[flip[0] & 1].flips[flip[1] % ALL] ^= flip[2];
    fuzz_random_restart();
    must(rueda_handshake_init(&left, RUEDA_INITIATOR, RUEDA_FOR_STORE, &key,
                              "left", 4) == 0);
    must(rueda_handshake_init(&right, RUEDA_ACCEPTOR, RUEDA_FOR_STORE, &key,
                              "right", 5) == 0);
    for (unsigned turn = 0; moved; turn += 2) {
        moved = carry(&ways[0], sizes[turn % 8]);
        moved = carry(&ways[1], sizes[(turn + 1) % 8]) || moved;
    }
    if (has_flips(&ways[0], 0, ALL) || has_flips(&ways[1], 0, ALL))
        must(!rueda_handshake_done(&left));
    else
        check_agreed(&left, &right);
    if (has_flips(&ways[0], 0, ALL) || has_flips(&ways[1], 0, HELLO))
        must(!rueda_handshake_done(&right));
    else
        must(rueda_handshake_done(&right));
    rueda_handshake_fini(&left);
    rueda_handshake_fini(&right);
    return 0;
}
