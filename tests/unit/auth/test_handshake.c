/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake. Two of them talk in memory; the attacker is the one who
 * carries the bytes between them. Key files have test_auth_key.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

#include "auth/handshake.h"
#include "auth/key.h"

#define HELLO      RUEDA_HANDSHAKE_HELLO_BYTES
#define PROOF      RUEDA_HANDSHAKE_PROOF_BYTES
#define ALL        RUEDA_HANDSHAKE_BYTES
#define AT_VERSION 8
#define AT_OLDEST  12
#define AT_FLAGS   16
#define AT_ABOUT   52 /* its length, then itself */

struct pair {
    struct rueda_key key;
    struct rueda_handshake initiator;
    struct rueda_handshake acceptor;
};

static void begin(struct pair *pair, bool has_key)
{
    const struct rueda_key *key = has_key ? &pair->key : NULL;

    assert_int_equal(rueda_handshake_init(&pair->initiator, RUEDA_INITIATOR,
                                          RUEDA_FOR_STORE, key, "rank 0", 6),
                     RUEDA_OK);
    assert_int_equal(rueda_handshake_init(&pair->acceptor, RUEDA_ACCEPTOR,
                                          RUEDA_FOR_STORE, key, "rank 1 of 2",
                                          11),
                     RUEDA_OK);
}

static int make_pair(void **state)
{
    static struct pair pair;

    assert_int_equal(rueda_key_create(&pair.key), RUEDA_OK);
    begin(&pair, true);
    *state = &pair;
    return 0;
}

static int drop_pair(void **state)
{
    struct pair *pair = *state;

    rueda_handshake_fini(&pair->initiator);
    rueda_handshake_fini(&pair->acceptor);
    rueda_key_wipe(&pair->key);
    return 0;
}

/* All that waits to be sent, marked as sent. Returns how many bytes. */
static size_t take(struct rueda_handshake *hs, unsigned char *buf)
{
    const void *bytes;
    size_t count = rueda_handshake_output(hs, &bytes);

    memcpy(buf, bytes, count);
    rueda_handshake_sent(hs, count);
    return count;
}

static rueda_status give(struct rueda_handshake *hs, const void *bytes,
                         size_t len)
{
    size_t used;

    return rueda_handshake_input(hs, bytes, len, &used);
}

/* Carry what waits in `from` to `to`, at most `piece` bytes at a time. */
static rueda_status carry(struct rueda_handshake *from,
                          struct rueda_handshake *to, size_t piece)
{
    rueda_status status = give(to, "", 0);
    const void *bytes;
    size_t count = rueda_handshake_output(from, &bytes);

    while (count > 0) {
        if (count > piece)
            count = piece;
        status = give(to, bytes, count);
        rueda_handshake_sent(from, count);
        count = rueda_handshake_output(from, &bytes);
    }
    return status;
}

/* Everything, to the end or to the first refusal. */
static void shake(struct pair *pair, size_t piece)
{
    for (int turn = 0; turn < 2; turn++) {
        carry(&pair->initiator, &pair->acceptor, piece);
        carry(&pair->acceptor, &pair->initiator, piece);
    }
}

static void check_about(const struct rueda_handshake *hs, const char *expected)
{
    size_t bytes = 0;
    const void *about = rueda_handshake_peer_about(hs, &bytes);

    assert_non_null(about);
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(about, expected, bytes);
}

static void check_both_done(const struct pair *pair)
{
    assert_string_equal(rueda_handshake_error(&pair->initiator), "");
    assert_string_equal(rueda_handshake_error(&pair->acceptor), "");
    assert_true(rueda_handshake_done(&pair->initiator));
    assert_true(rueda_handshake_done(&pair->acceptor));
    check_about(&pair->initiator, "rank 1 of 2");
    check_about(&pair->acceptor, "rank 0");
    assert_int_equal(rueda_handshake_version(&pair->initiator),
                     RUEDA_PROTOCOL_VERSION);
}

/* It has failed with this status and these words, and for good. */
static void check_failed(struct rueda_handshake *hs, rueda_status status,
                         const char *words)
{
    const void *bytes;
    size_t count = 0;

    assert_non_null(strstr(rueda_handshake_error(hs), words));
    assert_false(rueda_handshake_done(hs));
    assert_int_equal(rueda_handshake_output(hs, &bytes), 0);
    assert_int_equal(give(hs, "RUEDA", 5), status);
    assert_int_equal(rueda_handshake_closed(hs), status);
    assert_null(rueda_handshake_peer_about(hs, &count));
    assert_null(rueda_handshake_session_key(hs));
    assert_int_equal(rueda_handshake_version(hs), 0);
}

/* ---- Ends that agree ------------------------------------------------- */

static void two_ends_with_the_same_key_succeed(void **state)
{
    struct pair *pair = *state;
    const struct rueda_key *ours;
    const struct rueda_key *theirs;

    shake(pair, ALL);

    check_both_done(pair);
    ours = rueda_handshake_session_key(&pair->initiator);
    theirs = rueda_handshake_session_key(&pair->acceptor);
    assert_true(ours->present && theirs->present);
    assert_memory_equal(ours->bytes, theirs->bytes, RUEDA_KEY_BYTES);
    assert_memory_not_equal(ours->bytes, pair->key.bytes, RUEDA_KEY_BYTES);
}

static void two_ends_without_a_key_succeed_and_have_no_session_key(void **state)
{
    struct pair *pair = *state;
    struct rueda_key absent = pair->key;

    absent.present = false;
    begin(pair, false);
    rueda_handshake_init(&pair->initiator, RUEDA_INITIATOR, RUEDA_FOR_STORE,
                         &absent, "rank 0", 6);
    shake(pair, ALL);

    check_both_done(pair);
    assert_false(rueda_handshake_session_key(&pair->initiator)->present);
    assert_false(rueda_handshake_session_key(&pair->acceptor)->present);
}

static void pieces_of_any_size_give_the_same_result(void **state)
{
    struct pair *pair = *state;

    for (size_t piece = 1; piece <= ALL; piece++) {
        begin(pair, true);
        shake(pair, piece);
        check_both_done(pair);
        begin(pair, false);
        shake(pair, piece);
        check_both_done(pair);
    }
}

static void each_connection_has_a_session_key_of_its_own(void **state)
{
    struct pair *pair = *state;
    struct rueda_key first;

    shake(pair, ALL);
    first = *rueda_handshake_session_key(&pair->initiator);
    begin(pair, true);
    shake(pair, ALL);

    assert_memory_not_equal(
        first.bytes, rueda_handshake_session_key(&pair->initiator)->bytes,
        RUEDA_KEY_BYTES);
}

static void the_longest_and_the_empty_about_arrive(void **state)
{
    struct pair *pair = *state;
    char about[RUEDA_HANDSHAKE_ABOUT_MAX + 1];

    memset(about, 'x', sizeof(about));
    about[RUEDA_HANDSHAKE_ABOUT_MAX] = '\0';
    rueda_handshake_init(&pair->initiator, RUEDA_INITIATOR, RUEDA_FOR_STORE,
                         NULL, about, RUEDA_HANDSHAKE_ABOUT_MAX);
    rueda_handshake_init(&pair->acceptor, RUEDA_ACCEPTOR, RUEDA_FOR_STORE, NULL,
                         NULL, 0);
    shake(pair, ALL);

    check_about(&pair->acceptor, about);
    check_about(&pair->initiator, "");
}

static void an_about_that_is_too_long_fails_from_the_start(void **state)
{
    struct pair *pair = *state;
    char about[RUEDA_HANDSHAKE_ABOUT_MAX + 1] = {0};

    assert_int_equal(rueda_handshake_init(&pair->initiator, RUEDA_INITIATOR,
                                          RUEDA_FOR_STORE, NULL, about,
                                          sizeof(about)),
                     RUEDA_ERR_INVALID);

    check_failed(&pair->initiator, RUEDA_ERR_INVALID, "64 bytes");
}

static void bytes_after_the_handshake_are_left_alone(void **state)
{
    struct pair *pair = *state;
    unsigned char sent[ALL + 8] = {0};
    unsigned char reply[ALL];
    size_t used = 0;
    size_t len;

    take(&pair->initiator, sent);
    len = take(&pair->acceptor, reply);
    give(&pair->initiator, reply, len);
    take(&pair->initiator, sent + HELLO);

    assert_int_equal(
        rueda_handshake_input(&pair->acceptor, sent, sizeof(sent), &used),
        RUEDA_OK);
    assert_int_equal(used, ALL);
    assert_int_equal(rueda_handshake_input(&pair->acceptor, sent, 1, &used),
                     RUEDA_OK);
    assert_int_equal(used, 0);
}

static void about_is_hidden_until_the_peer_has_proved_itself(void **state)
{
    struct pair *pair = *state;
    size_t bytes = 0;

    carry(&pair->initiator, &pair->acceptor, ALL);
    carry(&pair->acceptor, &pair->initiator, ALL);
    assert_null(rueda_handshake_peer_about(&pair->initiator, &bytes));
    assert_null(rueda_handshake_peer_about(&pair->acceptor, &bytes));
    assert_null(rueda_handshake_session_key(&pair->initiator));
    assert_int_equal(rueda_handshake_version(&pair->initiator), 0);

    carry(&pair->initiator, &pair->acceptor, ALL);
    check_about(&pair->acceptor, "rank 0");
    assert_null(rueda_handshake_peer_about(&pair->initiator, &bytes));
}

static void the_acceptor_proves_itself_only_to_who_has(void **state)
{
    struct pair *pair = *state;
    unsigned char sent[ALL];
    const void *waiting;

    take(&pair->acceptor, sent);
    carry(&pair->initiator, &pair->acceptor, ALL);
    assert_int_equal(rueda_handshake_output(&pair->acceptor, &waiting), 0);

    give(&pair->initiator, sent, HELLO);
    assert_int_equal(carry(&pair->initiator, &pair->acceptor, ALL), RUEDA_OK);
    assert_int_equal(rueda_handshake_output(&pair->acceptor, &waiting), PROOF);
    assert_false(rueda_handshake_done(&pair->acceptor));
    carry(&pair->acceptor, &pair->initiator, ALL);
    check_both_done(pair);
}

/* ---- Ends that do not agree ------------------------------------------ */

static void a_wrong_key_is_refused_by_the_acceptor(void **state)
{
    struct pair *pair = *state;
    struct rueda_key other;

    rueda_key_create(&other);
    rueda_handshake_init(&pair->initiator, RUEDA_INITIATOR, RUEDA_FOR_STORE,
                         &other, NULL, 0);
    shake(pair, ALL);

    check_failed(&pair->acceptor, RUEDA_ERR_AUTH, "key is not ours");
    assert_int_equal(rueda_handshake_closed(&pair->initiator), RUEDA_ERR_AUTH);
    check_failed(&pair->initiator, RUEDA_ERR_AUTH, "RUEDA_KEY_FILE");
}

static void an_acceptor_with_a_wrong_key_is_refused_too(void **state)
{
    struct pair *pair = *state;
    unsigned char proof[PROOF] = {0};

    carry(&pair->acceptor, &pair->initiator, ALL);

    assert_int_equal(give(&pair->initiator, proof, PROOF), RUEDA_ERR_AUTH);
    check_failed(&pair->initiator, RUEDA_ERR_AUTH, "key is not ours");
}

static void each_side_is_told_which_one_lacks_a_key(void **state)
{
    struct pair *pair = *state;
    unsigned char hello[2][HELLO];

    rueda_handshake_init(&pair->initiator, RUEDA_INITIATOR, RUEDA_FOR_STORE,
                         NULL, NULL, 0);
    take(&pair->initiator, hello[0]);
    take(&pair->acceptor, hello[1]);
    give(&pair->acceptor, hello[0], HELLO);
    give(&pair->initiator, hello[1], HELLO);

    check_failed(&pair->acceptor, RUEDA_ERR_AUTH,
                 "the peer has none; set RUEDA_KEY_FILE on the peer's side");
    check_failed(&pair->initiator, RUEDA_ERR_AUTH,
                 "this side has none; set RUEDA_KEY_FILE on this side");
}

/* Every purpose against every other. */
static void a_connection_serves_the_purpose_it_was_made_for(void **state)
{
    struct pair *pair = *state;

    for (unsigned one = 1; one <= RUEDA_FOR_LAUNCHER; one *= 2)
        for (unsigned other = 1; other <= RUEDA_FOR_LAUNCHER; other *= 2) {
            rueda_handshake_init(&pair->initiator, RUEDA_INITIATOR, one,
                                 &pair->key, NULL, 0);
            rueda_handshake_init(&pair->acceptor, RUEDA_ACCEPTOR, other,
                                 &pair->key, NULL, 0);
            shake(pair, ALL);
            assert_int_equal(rueda_handshake_done(&pair->acceptor),
                             one == other);
            assert_int_equal(rueda_handshake_done(&pair->initiator),
                             one == other);
            assert_int_equal(rueda_handshake_purpose(&pair->acceptor),
                             one == other ? one : 0);
            if (one != other)
                check_failed(&pair->acceptor, RUEDA_ERR_AUTH,
                             "the peer's end of the connection is for");
        }
}

static void one_listener_may_serve_several_purposes(void **state)
{
    struct pair *pair = *state;
    static const unsigned tried[] = {RUEDA_FOR_STREAM, RUEDA_FOR_PULSE,
                                     RUEDA_FOR_STORE,
                                     RUEDA_FOR_STREAM | RUEDA_FOR_PULSE};

    for (int i = 0; i < 4; i++) {
        rueda_handshake_init(&pair->initiator, RUEDA_INITIATOR, tried[i],
                             &pair->key, NULL, 0);
        rueda_handshake_init(&pair->acceptor, RUEDA_ACCEPTOR,
                             RUEDA_FOR_STREAM | RUEDA_FOR_PULSE, &pair->key,
                             NULL, 0);
        shake(pair, ALL);
        assert_int_equal(rueda_handshake_done(&pair->acceptor), i < 2);
        assert_int_equal(rueda_handshake_purpose(&pair->acceptor),
                         i < 2 ? tried[i] : 0);
    }
}

static void a_version_we_do_not_share_is_refused_with_both_ranges(void **state)
{
    static const struct {
        unsigned char version;
        unsigned char oldest;
        const char *words;
    } peers[] = {{9, 7, "versions 7 to 9"},
                 {0, 0, "versions 0 to 0"},
                 {1, 3, "versions 3 to 1"}};
    struct pair *pair = *state;
    unsigned char hello[HELLO];

    for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
        begin(pair, true);
        take(&pair->initiator, hello);
        hello[AT_VERSION] = peers[i].version;
        hello[AT_OLDEST] = peers[i].oldest;
        give(&pair->acceptor, hello, HELLO);
        check_failed(&pair->acceptor, RUEDA_ERR_VERSION, peers[i].words);
        check_failed(&pair->acceptor, RUEDA_ERR_VERSION,
                     "this side speaks 2 to 2");
    }
}

static void a_peer_that_closes_early_is_lost(void **state)
{
    struct pair *pair = *state;

    assert_int_equal(rueda_handshake_closed(&pair->initiator),
                     RUEDA_ERR_PEER_LOST);
    check_failed(&pair->initiator, RUEDA_ERR_PEER_LOST, "0 bytes into");

    give(&pair->acceptor, "RUEDA", 5);
    assert_int_equal(rueda_handshake_closed(&pair->acceptor),
                     RUEDA_ERR_PEER_LOST);
    check_failed(&pair->acceptor, RUEDA_ERR_PEER_LOST, "5 bytes into");
}

static void a_close_after_success_changes_nothing(void **state)
{
    struct pair *pair = *state;

    shake(pair, ALL);

    assert_int_equal(rueda_handshake_closed(&pair->initiator), RUEDA_OK);
    check_both_done(pair);
}

/* ---- Attackers ------------------------------------------------------- */

static void an_http_request_is_refused_at_once(void **state)
{
    struct pair *pair = *state;
    const char *request = "GET / HTTP/1.1\r\nHost: rank0\r\n\r\n";

    assert_int_equal(give(&pair->acceptor, request, 1), RUEDA_ERR_AUTH);
    check_failed(&pair->acceptor, RUEDA_ERR_AUTH, "address and port");

    begin(pair, true);
    assert_int_equal(give(&pair->acceptor, request, strlen(request)),
                     RUEDA_ERR_AUTH);
}

static void the_first_wrong_byte_of_the_magic_is_enough(void **state)
{
    struct pair *pair = *state;
    unsigned char hello[HELLO];

    for (size_t wrong = 0; wrong < 8; wrong++) {
        begin(pair, true);
        take(&pair->initiator, hello);
        hello[wrong] ^= 0x20;
        assert_int_equal(give(&pair->acceptor, hello, wrong),
                         RUEDA_IN_PROGRESS);
        assert_int_equal(give(&pair->acceptor, hello + wrong, 1),
                         RUEDA_ERR_AUTH);
    }
}

/* Carry one message and turn over one bit of it on the way, if bit is in it. */
static void carry_flipped(struct rueda_handshake *from,
                          struct rueda_handshake *to, size_t *bit)
{
    unsigned char bytes[ALL];
    size_t len = take(from, bytes);

    if (*bit < 8 * len)
        bytes[*bit / 8] ^= (unsigned char)(1u << *bit % 8);
    *bit = *bit < 8 * len ? SIZE_MAX : *bit - 8 * len;
    give(to, bytes, len);
}

static void check_every_flip(struct pair *pair, bool has_key)
{
    for (size_t flip = 0; flip < (size_t)8 * 2 * ALL; flip++) {
        bool is_last_proof = flip >= (size_t)8 * (ALL + HELLO);
        size_t bit = flip;

        begin(pair, has_key);
        carry_flipped(&pair->initiator, &pair->acceptor, &bit);
        carry_flipped(&pair->acceptor, &pair->initiator, &bit);
        carry_flipped(&pair->initiator, &pair->acceptor, &bit);
        carry_flipped(&pair->acceptor, &pair->initiator, &bit);

        /* The end that hears the last message refuses it; its sender, which
         * has been convinced before, cannot know. */
        assert_false(rueda_handshake_done(&pair->initiator));
        assert_int_equal(rueda_handshake_done(&pair->acceptor), is_last_proof);
        assert_true(rueda_handshake_error(&pair->initiator)[0] != '\0' ||
                    rueda_handshake_error(&pair->acceptor)[0] != '\0');
    }
}

static void every_flipped_bit_is_refused(void **state)
{
    check_every_flip(*state, true);
}

static void every_flipped_bit_is_refused_without_a_key_too(void **state)
{
    check_every_flip(*state, false);
}

static void what_an_earlier_connection_said_is_refused(void **state)
{
    struct pair *pair = *state;
    unsigned char initiator[ALL];
    unsigned char acceptor[ALL];

    take(&pair->initiator, initiator);
    take(&pair->acceptor, acceptor);
    give(&pair->acceptor, initiator, HELLO);
    give(&pair->initiator, acceptor, HELLO);
    take(&pair->initiator, initiator + HELLO);
    give(&pair->acceptor, initiator + HELLO, PROOF);
    take(&pair->acceptor, acceptor + HELLO);
    give(&pair->initiator, acceptor + HELLO, PROOF);
    check_both_done(pair);

    begin(pair, true);
    assert_int_equal(give(&pair->acceptor, initiator, ALL), RUEDA_ERR_AUTH);
    assert_int_equal(give(&pair->initiator, acceptor, ALL), RUEDA_ERR_AUTH);
    check_failed(&pair->acceptor, RUEDA_ERR_AUTH, "proof is wrong");
    check_failed(&pair->initiator, RUEDA_ERR_AUTH, "proof is wrong");
}

static void our_own_hello_sent_back_is_refused(void **state)
{
    struct pair *pair = *state;
    unsigned char hello[HELLO];

    take(&pair->initiator, hello);
    give(&pair->initiator, hello, HELLO);
    check_failed(&pair->initiator, RUEDA_ERR_AUTH, "claim to be the initiator");

    take(&pair->acceptor, hello);
    give(&pair->acceptor, hello, HELLO);
    check_failed(&pair->acceptor, RUEDA_ERR_AUTH, "claim to be the acceptor");
}

static void our_own_proof_sent_back_is_refused(void **state)
{
    struct pair *pair = *state;
    unsigned char sent[ALL];

    take(&pair->initiator, sent);
    sent[AT_FLAGS] ^= 2;
    assert_int_equal(give(&pair->initiator, sent, HELLO), RUEDA_IN_PROGRESS);
    assert_int_equal(take(&pair->initiator, sent), PROOF);

    assert_int_equal(give(&pair->initiator, sent, PROOF), RUEDA_ERR_AUTH);
    check_failed(&pair->initiator, RUEDA_ERR_AUTH, "proof is wrong");
}

static void a_malformed_hello_is_refused_before_any_proof(void **state)
{
    /* Unknown flag, byte that must be zero, too long, padding. */
    static const size_t places[] = {AT_FLAGS, 17, AT_ABOUT + 1, HELLO - 1};
    struct pair *pair = *state;
    unsigned char hello[HELLO];

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        begin(pair, true);
        take(&pair->acceptor, hello);
        hello[places[i]] ^= 0x80;
        give(&pair->initiator, hello, HELLO);
        check_failed(&pair->initiator, RUEDA_ERR_AUTH, "malformed");
    }
}

/* Is the key anywhere in these bytes? */
static bool holds(const void *bytes, size_t len, const struct rueda_key *key)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i + RUEDA_KEY_BYTES <= len; i++)
        if (memcmp(at + i, key->bytes, RUEDA_KEY_BYTES) == 0)
            return true;
    return false;
}

static void the_key_is_forgotten_when_the_handshake_ends(void **state)
{
    struct pair *pair = *state;
    const size_t len = sizeof(pair->acceptor);

    assert_true(holds(&pair->acceptor, len, &pair->key));
    give(&pair->acceptor, "GET", 3);
    assert_false(holds(&pair->acceptor, len, &pair->key));

    begin(pair, true);
    shake(pair, ALL);
    assert_false(holds(&pair->acceptor, len, &pair->key));
    assert_false(holds(&pair->initiator, len, &pair->key));
}

static void a_handshake_that_was_wiped_is_not_done(void **state)
{
    struct pair *pair = *state;

    shake(pair, ALL);
    rueda_handshake_fini(&pair->initiator);

    assert_true(sodium_is_zero((unsigned char *)&pair->initiator,
                               sizeof(pair->initiator)));
    check_failed(&pair->initiator, RUEDA_ERR_CLOSED, "");
}

static void bytes_sent_after_a_failure_are_not_counted(void **state)
{
    struct pair *pair = *state;
    const void *bytes;
    size_t count = rueda_handshake_output(&pair->acceptor, &bytes);

    give(&pair->acceptor, "GET", 3);
    rueda_handshake_sent(&pair->acceptor, count);

    check_failed(&pair->acceptor, RUEDA_ERR_AUTH, "");
}

/* ---- The bytes on the wire ------------------------------------------- */

static void hash(const struct rueda_key *key, const char *label,
                 const unsigned char *first, const unsigned char *second,
                 unsigned char out[PROOF])
{
    unsigned char text[64 + 2 * HELLO];
    size_t len = strlen(label) + 1;

    memcpy(text, label, len);
    memcpy(text + len, first, HELLO);
    memcpy(text + len + HELLO, second, HELLO);
    crypto_generichash(out, PROOF, text, len + (size_t)2 * HELLO, key->bytes,
                       RUEDA_KEY_BYTES);
}

/* A peer written by hand from the header's description, of a later release
 * that still speaks our version. */
static void a_peer_written_from_the_description_is_understood(void **state)
{
    struct pair *pair = *state;
    unsigned char theirs[HELLO] = {'R', 'U', 'E', 'D', 'A', 0,
                                   0,   1,   4,   3,   2,   1,
                                   2,   0,   0,   0,   3,   RUEDA_FOR_STORE};
    unsigned char ours[ALL];
    unsigned char digest[PROOF];

    theirs[20] = 77;
    theirs[AT_ABOUT] = 2;
    theirs[AT_ABOUT + 2] = 'h';
    theirs[AT_ABOUT + 3] = 'i';
    assert_int_equal(take(&pair->acceptor, ours), HELLO);
    give(&pair->acceptor, theirs, HELLO);
    hash(&pair->key, "rueda handshake 2: initiator", theirs, ours, digest);
    assert_int_equal(give(&pair->acceptor, digest, PROOF), RUEDA_OK);

    check_about(&pair->acceptor, "hi");
    assert_int_equal(rueda_handshake_version(&pair->acceptor), 2);
    assert_int_equal(take(&pair->acceptor, ours + HELLO), PROOF);
    hash(&pair->key, "rueda handshake 2: acceptor", theirs, ours, digest);
    assert_memory_equal(ours + HELLO, digest, PROOF);
    hash(&pair->key, "rueda handshake 2: session", theirs, ours, digest);
    assert_memory_equal(rueda_handshake_session_key(&pair->acceptor)->bytes,
                        digest, PROOF);
}

static void our_hello_looks_as_described(void **state)
{
    static const unsigned char head[20] = {
        'R', 'U', 'E', 'D', 'A', 0, 0, 1, 2,
        0,   0,   0,   2,   0,   0, 0, 3, RUEDA_FOR_STORE,
        0,   0};
    struct pair *pair = *state;
    unsigned char hello[ALL];

    assert_int_equal(take(&pair->initiator, hello), HELLO);

    assert_memory_equal(hello, head, sizeof(head));
    assert_false(sodium_is_zero(hello + 20, 32));
    assert_memory_equal(hello + AT_ABOUT, "\6\0rank 0\0", 9);
    assert_true(sodium_is_zero(hello + AT_ABOUT + 8, HELLO - AT_ABOUT - 8));
}

#define PAIR(test) cmocka_unit_test_setup_teardown(test, make_pair, drop_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR(two_ends_with_the_same_key_succeed),
        PAIR(two_ends_without_a_key_succeed_and_have_no_session_key),
        PAIR(pieces_of_any_size_give_the_same_result),
        PAIR(each_connection_has_a_session_key_of_its_own),
        PAIR(the_longest_and_the_empty_about_arrive),
        PAIR(an_about_that_is_too_long_fails_from_the_start),
        PAIR(bytes_after_the_handshake_are_left_alone),
        PAIR(about_is_hidden_until_the_peer_has_proved_itself),
        PAIR(the_acceptor_proves_itself_only_to_who_has),
        PAIR(a_wrong_key_is_refused_by_the_acceptor),
        PAIR(an_acceptor_with_a_wrong_key_is_refused_too),
        PAIR(each_side_is_told_which_one_lacks_a_key),
        PAIR(a_connection_serves_the_purpose_it_was_made_for),
        PAIR(one_listener_may_serve_several_purposes),
        PAIR(a_version_we_do_not_share_is_refused_with_both_ranges),
        PAIR(a_peer_that_closes_early_is_lost),
        PAIR(a_close_after_success_changes_nothing),
        PAIR(an_http_request_is_refused_at_once),
        PAIR(the_first_wrong_byte_of_the_magic_is_enough),
        PAIR(every_flipped_bit_is_refused),
        PAIR(every_flipped_bit_is_refused_without_a_key_too),
        PAIR(what_an_earlier_connection_said_is_refused),
        PAIR(our_own_hello_sent_back_is_refused),
        PAIR(our_own_proof_sent_back_is_refused),
        PAIR(a_malformed_hello_is_refused_before_any_proof),
        PAIR(the_key_is_forgotten_when_the_handshake_ends),
        PAIR(a_handshake_that_was_wiped_is_not_done),
        PAIR(bytes_sent_after_a_failure_are_not_counted),
        PAIR(a_peer_written_from_the_description_is_understood),
        PAIR(our_hello_looks_as_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
