/* SPDX-License-Identifier: Apache-2.0 */
/* Frames under each kind of protection. The attacker changes, repeats and
 * leaves out what is on the way. */
#include "transport/tcp/sealing.h"
#include "transport/transport.h"
#include "unit/unit.h"

#define PIECE 100
#define TAG   RUEDA_SEAL_TAG_BYTES

static const struct rueda_ciphers ciphers = {.best = {&rueda_cipher_chacha}};
static const struct rueda_key session = {.bytes = {7}, .present = true};

struct way {
    struct rueda_tcp_sealing *from;
    struct rueda_tcp_sealing *to;
};

/* A frame on the way. */
struct sent {
    unsigned char bytes[RUEDA_TCP_OPEN_HEAD_BYTES + PIECE + TAG];
    size_t head; /* with all that comes before the piece */
    size_t len;
};

static struct way way_open(rueda_tcp_shield shield)
{
    const struct rueda_tcp_protection protection = {shield,
                                                    RUEDA_CHACHA20_POLY1305};
    struct way way;

    assert_int_equal(rueda_tcp_sealing_new(&ciphers, protection, &session,
                                           RUEDA_INITIATOR, &way.from),
                     RUEDA_OK);
    assert_int_equal(rueda_tcp_sealing_new(&ciphers, protection, &session,
                                           RUEDA_ACCEPTOR, &way.to),
                     RUEDA_OK);
    return way;
}

static void way_close(struct way *way)
{
    rueda_tcp_sealing_free(way->from);
    rueda_tcp_sealing_free(way->to);
}

static struct sent frame_send(struct way *way, uint64_t sequence, char value)
{
    const struct rueda_tcp_frame frame = {.kind = RUEDA_TCP_PIECE,
                                          .bytes = PIECE,
                                          .tag = {.sequence = sequence},
                                          .total = PIECE};
    struct sent sent = {.head = rueda_tcp_sealing_head_bytes(way->from)};
    char piece[PIECE];

    memset(piece, value, sizeof(piece));
    assert_int_equal(
        rueda_tcp_sealing_close(way->from, &frame, piece, &sent.len), RUEDA_OK);
    memcpy(sent.bytes, way->from->frame, sent.len);
    if (way->from->shield != RUEDA_TCP_SEALED) {
        memcpy(sent.bytes + sent.len, piece, sizeof(piece));
        sent.len += sizeof(piece);
    }
    return sent;
}

/* Take it as a stream does; false: it is refused. */
static bool frame_take(struct way *way, const struct sent *sent, char *out)
{
    struct sent copy = *sent;
    struct rueda_tcp_frame frame;
    char *piece = (char *)copy.bytes + copy.head;

    if (rueda_tcp_sealing_open_head(way->to, copy.bytes) != RUEDA_OK)
        return false;
    assert_true(rueda_tcp_frame_decode(copy.bytes, &frame));
    assert_int_equal(frame.bytes, PIECE);
    if (rueda_tcp_sealing_has_piece(way->to, &frame)) {
        struct rueda_tcp_room room =
            rueda_tcp_sealing_room(way->to, piece, PIECE);

        assert_int_equal(room.piece_left, PIECE);
        assert_int_equal(copy.head + PIECE + room.tag_left, copy.len);
        memcpy(room.tag, piece + PIECE, room.tag_left);
        if (rueda_tcp_sealing_got(way->to, piece, PIECE,
                                  PIECE + room.tag_left) != RUEDA_OK)
            return false;
    }
    *out = piece[PIECE / 2];
    return true;
}

/* An unchanged frame arrives. */
static void check_taken(struct way *way, const struct sent *sent, char value)
{
    char got = 0;

    assert_true(frame_take(way, sent, &got));
    assert_int_equal(got, value);
}

/* A change of a bit is noticed, unless it is one of the bare bytes. */
static void check_bits(rueda_tcp_shield shield, uint64_t sequence, size_t bare,
                       size_t bare_bytes)
{
    struct way way = way_open(shield);
    struct sent right = frame_send(&way, sequence, 'x');

    for (size_t bit = 0; bit < 8 * right.len; bit++) {
        struct way other = way_open(shield);
        struct sent wrong = right;
        const bool is_bare = bit / 8 - bare < bare_bytes;
        char got;

        wrong.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(frame_take(&other, &wrong, &got), is_bare);
        way_close(&other);
    }
    check_taken(&way, &right, 'x');
    way_close(&way);
}

static void every_bit_of_a_sealed_frame_counts(void **state)
{
    (void)state;
    check_bits(RUEDA_TCP_SEALED, 1, 0, 0);
    check_bits(RUEDA_TCP_SEALED, RUEDA_TAG_CONTROL, 0, 0);
}

static void every_bit_of_a_proven_frame_counts(void **state)
{
    (void)state;
    check_bits(RUEDA_TCP_PROVEN, 1, 0, 0);
    check_bits(RUEDA_TCP_PROVEN, RUEDA_TAG_CONTROL, 0, 0);
}

/* All but the numbers of a tensor, and the place of a tag that it has not. */
static void
every_bit_of_a_plain_frame_counts_that_says_what_is_done(void **state)
{
    (void)state;
    check_bits(RUEDA_TCP_PLAIN, 1, RUEDA_TCP_SEALED_HEAD_BYTES, TAG + PIECE);
    check_bits(RUEDA_TCP_PLAIN, RUEDA_TAG_CONTROL, 0, 0);
    check_bits(RUEDA_TCP_PLAIN, RUEDA_TAG_PROVEN | 1, 0, 0);
}

static void a_frame_is_good_once_and_in_its_place(void **state)
{
    (void)state;
    for (int shield = RUEDA_TCP_PLAIN; shield <= RUEDA_TCP_SEALED; shield++) {
        for (int kind = 0; kind < 2; kind++) {
            struct way way = way_open((rueda_tcp_shield)shield);
            struct way skipped = way_open((rueda_tcp_shield)shield);
            const uint64_t tag = kind == 0 ? 1 : RUEDA_TAG_CONTROL;
            struct sent one = frame_send(&way, tag, '1');
            struct sent two = frame_send(&way, tag, '2');
            char got;

            check_taken(&way, &one, '1');
            check_taken(&way, &two, '2');
            assert_false(frame_take(&way, &two, &got));
            assert_false(frame_take(&skipped, &two, &got));
            way_close(&way);
            way_close(&skipped);
        }
    }
}

/* The ends agree on it in the handshake; one that sends otherwise is refused.
 */
static void another_protection_than_agreed_is_refused(void **state)
{
    (void)state;
    for (int sent = RUEDA_TCP_PLAIN; sent <= RUEDA_TCP_SEALED; sent++) {
        for (int taken = RUEDA_TCP_PLAIN; taken <= RUEDA_TCP_SEALED; taken++) {
            struct way from = way_open((rueda_tcp_shield)sent);
            struct way to = way_open((rueda_tcp_shield)taken);
            struct sent frame = frame_send(&from, 1, 'x');
            char got;

            /* Heads of plain and proven frames are alike, pieces are not. */
            if ((sent == RUEDA_TCP_PLAIN && taken == RUEDA_TCP_PROVEN) ||
                (sent == RUEDA_TCP_SEALED) != (taken == RUEDA_TCP_SEALED))
                assert_false(frame_take(&to, &frame, &got));
            way_close(&from);
            way_close(&to);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_of_a_sealed_frame_counts),
        cmocka_unit_test(every_bit_of_a_proven_frame_counts),
        cmocka_unit_test(
            every_bit_of_a_plain_frame_counts_that_says_what_is_done),
        cmocka_unit_test(a_frame_is_good_once_and_in_its_place),
        cmocka_unit_test(another_protection_than_agreed_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
