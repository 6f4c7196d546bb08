/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed records, by each cipher. The attacker is the one who carries them from
 * one end to the other. */
#include <sodium.h>

#include "auth/seal.h"
#include "unit/unit.h"

#define TAG   RUEDA_SEAL_TAG_BYTES
#define PLAIN 40

/* Both ends of a connection. */
struct ends {
    struct rueda_key session;
    struct rueda_seal to_acceptor; /* the initiator's */
    struct rueda_seal from_acceptor;
    struct rueda_seal to_initiator; /* the acceptor's */
    struct rueda_seal from_initiator;
};

struct record {
    unsigned char bytes[PLAIN];
    unsigned char tag[TAG];
};

/* What the tests below are about, one after the other. */
static struct rueda_ciphers ciphers;
static const struct rueda_cipher *cipher;

static rueda_status pair(const struct rueda_key *session,
                         rueda_handshake_role role, struct rueda_seal *out_send,
                         struct rueda_seal *out_receive)
{
    return rueda_seal_pair_by(&ciphers, cipher, session, role, out_send,
                              out_receive);
}

/* A receiving end of the acceptor that has opened nothing yet. */
static struct rueda_seal fresh_receiver(const struct ends *ends)
{
    struct rueda_seal unused = {.next = 0};
    struct rueda_seal receiver = {.next = 0};

    assert_int_equal(pair(&ends->session, RUEDA_ACCEPTOR, &unused, &receiver),
                     RUEDA_OK);
    rueda_seal_fini(&unused);
    return receiver;
}

static struct ends ends_made;

static int end_ends(void **state)
{
    (void)state;
    rueda_seal_fini(&ends_made.to_acceptor);
    rueda_seal_fini(&ends_made.from_acceptor);
    rueda_seal_fini(&ends_made.to_initiator);
    rueda_seal_fini(&ends_made.from_initiator);
    return 0;
}

static int make_ends(void **state)
{
    struct ends *ends = &ends_made;

    end_ends(state);
    assert_int_equal(rueda_key_create(&ends->session), RUEDA_OK);
    assert_int_equal(pair(&ends->session, RUEDA_INITIATOR, &ends->to_acceptor,
                          &ends->from_acceptor),
                     RUEDA_OK);
    assert_int_equal(pair(&ends->session, RUEDA_ACCEPTOR, &ends->to_initiator,
                          &ends->from_initiator),
                     RUEDA_OK);
    *state = ends;
    return 0;
}

/* Record `number` says its number. */
static void seal_next(struct rueda_seal *seal, unsigned char number,
                      struct record *out)
{
    unsigned char plain[PLAIN];

    memset(plain, number, sizeof(plain));
    assert_int_equal(rueda_seal_close(seal, plain, PLAIN, out->bytes, out->tag),
                     RUEDA_OK);
}

static rueda_status open_as(struct rueda_seal *seal, const struct record *from,
                            unsigned char number)
{
    unsigned char expected[PLAIN];
    unsigned char plain[PLAIN];
    rueda_status status;

    memset(expected, number, sizeof(expected));
    status = rueda_seal_open(seal, from->bytes, PLAIN, from->tag, plain);
    if (status == RUEDA_OK)
        assert_memory_equal(plain, expected, PLAIN);
    return status;
}

/* It has failed for good, even for the record that would have been right. */
static void check_failed(struct rueda_seal *seal, const struct record *right)
{
    assert_int_equal(open_as(seal, right, 0), RUEDA_ERR_CLOSED);
    assert_int_equal(rueda_seal_skip(seal), RUEDA_ERR_CLOSED);
}

static void records_open_in_order_in_both_directions(void **state)
{
    struct ends *ends = *state;
    struct record record;

    for (unsigned char i = 0; i < 5; i++) {
        seal_next(&ends->to_acceptor, i, &record);
        assert_int_equal(open_as(&ends->from_initiator, &record, i), RUEDA_OK);
        seal_next(&ends->to_initiator, i, &record);
        assert_int_equal(open_as(&ends->from_acceptor, &record, i), RUEDA_OK);
    }
}

/* The same again by libsodium alone: the format is what the header says. */
static void the_format_is_as_it_is_written_down(void **state)
{
    struct ends *ends = *state;
    const unsigned char nonce[12] = {1};
    struct record record;
    unsigned char key[32];
    unsigned char plain[PLAIN] = {0};

    seal_next(&ends->to_initiator, 7, &record);
    seal_next(&ends->to_initiator, 8, &record);
    crypto_kdf_derive_from_key(key, sizeof(key),
                               cipher->kind == RUEDA_AES_256_GCM ? 4 : 2,
                               "RuedaStr", ends->session.bytes);
    if (cipher->kind == RUEDA_CHACHA20_POLY1305)
        assert_int_equal(crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                             plain, NULL, record.bytes, PLAIN, record.tag, NULL,
                             0, nonce, key),
                         0);
    else if (crypto_aead_aes256gcm_is_available() != 0)
        assert_int_equal(crypto_aead_aes256gcm_decrypt_detached(
                             plain, NULL, record.bytes, PLAIN, record.tag, NULL,
                             0, nonce, key),
                         0);
    else
        skip();
    assert_int_equal(plain[0], 8);
}

static void a_record_may_be_opened_where_it_lies(void **state)
{
    struct ends *ends = *state;
    unsigned char frame[PLAIN + TAG] = "the tag lies behind it";

    assert_int_equal(rueda_seal_close(&ends->to_acceptor, frame, PLAIN, frame,
                                      frame + PLAIN),
                     RUEDA_OK);
    assert_int_not_equal(memcmp(frame, "the tag", 7), 0);
    assert_int_equal(rueda_seal_open(&ends->from_initiator, frame, PLAIN,
                                     frame + PLAIN, frame),
                     RUEDA_OK);
    assert_string_equal((char *)frame, "the tag lies behind it");
}

static void a_record_may_be_empty_or_of_the_greatest_length(void **state)
{
    struct ends *ends = *state;
    size_t most = RUEDA_SEAL_MOST_BYTES;
    unsigned char *bytes = calloc(1, most + 1);
    unsigned char tag[TAG];

    assert_non_null(bytes);
    rueda_seal_close(&ends->to_acceptor, bytes, 0, bytes, tag);
    assert_int_equal(
        rueda_seal_open(&ends->from_initiator, bytes, 0, tag, bytes), RUEDA_OK);
    assert_int_equal(
        rueda_seal_close(&ends->to_acceptor, bytes, most + 1, bytes, tag),
        RUEDA_ERR_INVALID);
    assert_int_equal(
        rueda_seal_close(&ends->to_acceptor, bytes, most, bytes, tag),
        RUEDA_OK);
    assert_int_equal(
        rueda_seal_open(&ends->from_initiator, bytes, most + 1, tag, bytes),
        RUEDA_ERR_INVALID);
    assert_int_equal(
        rueda_seal_open(&ends->from_initiator, bytes, most, tag, bytes),
        RUEDA_OK);
    for (size_t i = 0; i <= most; i++)
        assert_int_equal(bytes[i], 0);
    free(bytes);
}

static void every_flipped_bit_is_refused(void **state)
{
    struct ends *ends = *state;
    struct record right;

    seal_next(&ends->to_acceptor, 0, &right);
    for (size_t bit = 0; bit < 8 * sizeof(right); bit++) {
        struct rueda_seal receiver = fresh_receiver(ends);
        struct record wrong = right;
        unsigned char plain[PLAIN];
        unsigned char zeros[PLAIN] = {0};

        ((unsigned char *)&wrong)[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(
            rueda_seal_open(&receiver, wrong.bytes, PLAIN, wrong.tag, plain),
            RUEDA_ERR_AUTH);
        assert_memory_equal(plain, zeros, PLAIN);
        check_failed(&receiver, &right);
    }
}

static void a_record_of_another_length_is_refused(void **state)
{
    struct ends *ends = *state;
    struct record right;

    seal_next(&ends->to_acceptor, 0, &right);
    for (size_t bytes = 0; bytes < PLAIN; bytes++) {
        struct rueda_seal receiver = fresh_receiver(ends);
        unsigned char plain[PLAIN];

        assert_int_equal(
            rueda_seal_open(&receiver, right.bytes, bytes, right.tag, plain),
            RUEDA_ERR_AUTH);
    }
    assert_int_equal(open_as(&ends->from_initiator, &right, 0), RUEDA_OK);
}

static void a_repeated_record_is_refused(void **state)
{
    struct ends *ends = *state;
    struct record first;
    struct record second;

    seal_next(&ends->to_acceptor, 0, &first);
    seal_next(&ends->to_acceptor, 1, &second);
    assert_int_equal(open_as(&ends->from_initiator, &first, 0), RUEDA_OK);
    assert_int_equal(open_as(&ends->from_initiator, &first, 0), RUEDA_ERR_AUTH);
    check_failed(&ends->from_initiator, &second);
}

static void a_record_out_of_order_is_refused(void **state)
{
    struct ends *ends = *state;
    struct record first;
    struct record second;

    seal_next(&ends->to_acceptor, 0, &first);
    seal_next(&ends->to_acceptor, 1, &second);
    assert_int_equal(open_as(&ends->from_initiator, &second, 1),
                     RUEDA_ERR_AUTH);
    check_failed(&ends->from_initiator, &first);
}

static void a_record_sent_back_is_refused(void **state)
{
    struct ends *ends = *state;
    struct record record;

    seal_next(&ends->to_acceptor, 0, &record);
    assert_int_equal(open_as(&ends->from_acceptor, &record, 0), RUEDA_ERR_AUTH);
}

static void a_record_of_another_connection_is_refused(void **state)
{
    struct ends *ends = *state;
    struct rueda_key session;
    struct rueda_seal send;
    struct rueda_seal receive;
    struct record record;

    rueda_key_create(&session);
    pair(&session, RUEDA_INITIATOR, &send, &receive);
    seal_next(&send, 0, &record);
    rueda_seal_fini(&send);
    rueda_seal_fini(&receive);
    assert_int_equal(open_as(&ends->from_initiator, &record, 0),
                     RUEDA_ERR_AUTH);
}

static void a_record_that_nobody_wants_is_skipped(void **state)
{
    struct ends *ends = *state;
    struct record records[2];

    seal_next(&ends->to_acceptor, 0, &records[0]);
    seal_next(&ends->to_acceptor, 1, &records[1]);
    assert_int_equal(rueda_seal_skip(&ends->from_initiator), RUEDA_OK);
    assert_int_equal(open_as(&ends->from_initiator, &records[1], 1), RUEDA_OK);
}

static void the_same_bytes_are_sealed_differently_each_time(void **state)
{
    struct ends *ends = *state;
    struct record records[2];

    seal_next(&ends->to_acceptor, 3, &records[0]);
    seal_next(&ends->to_acceptor, 3, &records[1]);
    assert_memory_not_equal(records[0].bytes, records[1].bytes, PLAIN);
    assert_memory_not_equal(records[0].tag, records[1].tag, TAG);
}

static void a_key_seals_no_more_than_it_may(void **state)
{
    struct ends *ends = *state;
    struct record last;
    unsigned char byte = 5;
    unsigned char out = 6;

    ends->to_acceptor.next = RUEDA_SEAL_RECORDS - 1;
    ends->from_initiator.next = RUEDA_SEAL_RECORDS - 1;
    seal_next(&ends->to_acceptor, 9, &last);
    assert_int_equal(open_as(&ends->from_initiator, &last, 9), RUEDA_OK);
    assert_int_equal(
        rueda_seal_close(&ends->to_acceptor, &byte, 1, &out, last.tag),
        RUEDA_ERR_LIMIT);
    assert_int_equal(
        rueda_seal_close(&ends->to_acceptor, &byte, 1, &out, last.tag),
        RUEDA_ERR_CLOSED);
    assert_int_equal(out, 6);
    assert_int_equal(rueda_seal_skip(&ends->from_initiator), RUEDA_ERR_LIMIT);
    assert_int_equal(rueda_seal_skip(&ends->from_initiator), RUEDA_ERR_CLOSED);
}

static void without_a_session_key_there_is_no_seal(void **state)
{
    struct rueda_key none = {.present = false};
    struct rueda_seal seals[2] = {{.next = 0}};
    struct record record;

    (void)state;
    assert_int_equal(pair(&none, RUEDA_INITIATOR, &seals[0], &seals[1]),
                     RUEDA_ERR_AUTH);
    assert_int_equal(pair(NULL, RUEDA_INITIATOR, &seals[0], &seals[1]),
                     RUEDA_ERR_AUTH);
    assert_int_equal(
        rueda_seal_close(&seals[0], "x", 1, record.bytes, record.tag),
        RUEDA_ERR_CLOSED);
}

static void nothing_is_left_of_a_seal_that_has_ended(void **state)
{
    struct ends *ends = *state;
    const struct rueda_seal zero = {.next = 0};

    rueda_seal_fini(&ends->to_acceptor);
    rueda_seal_fini(&ends->to_acceptor);
    assert_memory_equal(&ends->to_acceptor, &zero, sizeof(zero));
}

/* ---- Proven, and not encrypted ----------------------------------------- */

static void a_seal_that_is_left_open_shows_and_proves(void **state)
{
    struct ends *ends = *state;
    unsigned char plain[PLAIN];
    struct record records[2];

    rueda_seal_leave_open(&ends->to_acceptor);
    rueda_seal_leave_open(&ends->from_initiator);
    seal_next(&ends->to_acceptor, 1, &records[0]);
    seal_next(&ends->to_acceptor, 2, &records[1]);
    memset(plain, 1, sizeof(plain));
    assert_memory_equal(records[0].bytes, plain, PLAIN);
    assert_int_equal(open_as(&ends->from_initiator, &records[0], 1), RUEDA_OK);
    assert_int_equal(open_as(&ends->from_initiator, &records[1], 2), RUEDA_OK);
}

static void every_bit_of_an_open_record_counts(void **state)
{
    struct ends *ends = *state;
    struct record record;

    for (size_t bit = 0; bit < sizeof(record) * 8; bit++) {
        make_ends(state);
        rueda_seal_leave_open(&ends->to_acceptor);
        rueda_seal_leave_open(&ends->from_initiator);
        seal_next(&ends->to_acceptor, 1, &record);
        ((unsigned char *)&record)[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(open_as(&ends->from_initiator, &record, 1),
                         RUEDA_ERR_AUTH);
    }
}

static void an_open_record_is_good_once_and_in_its_place(void **state)
{
    struct ends *ends = *state;
    struct record records[2];

    rueda_seal_leave_open(&ends->to_acceptor);
    rueda_seal_leave_open(&ends->from_initiator);
    seal_next(&ends->to_acceptor, 1, &records[0]);
    seal_next(&ends->to_acceptor, 2, &records[1]);
    assert_int_equal(open_as(&ends->from_initiator, &records[0], 1), RUEDA_OK);
    assert_int_equal(open_as(&ends->from_initiator, &records[0], 1),
                     RUEDA_ERR_AUTH);
    /* An end that expects encryption takes no open record, either. */
    make_ends(state);
    rueda_seal_leave_open(&ends->to_acceptor);
    seal_next(&ends->to_acceptor, 1, &records[0]);
    assert_int_equal(open_as(&ends->from_initiator, &records[0], 1),
                     RUEDA_ERR_AUTH);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_ends, end_ends)

static int run_for(const struct rueda_cipher *which)
{
    const struct CMUnitTest tests[] = {
        TEST(records_open_in_order_in_both_directions),
        TEST(the_format_is_as_it_is_written_down),
        TEST(a_record_may_be_opened_where_it_lies),
        TEST(a_record_may_be_empty_or_of_the_greatest_length),
        TEST(every_flipped_bit_is_refused),
        TEST(a_record_of_another_length_is_refused),
        TEST(a_repeated_record_is_refused),
        TEST(a_record_out_of_order_is_refused),
        TEST(a_record_sent_back_is_refused),
        TEST(a_record_of_another_connection_is_refused),
        TEST(a_record_that_nobody_wants_is_skipped),
        TEST(the_same_bytes_are_sealed_differently_each_time),
        TEST(a_key_seals_no_more_than_it_may),
        TEST(without_a_session_key_there_is_no_seal),
        TEST(nothing_is_left_of_a_seal_that_has_ended),
        TEST(a_seal_that_is_left_open_shows_and_proves),
        TEST(every_bit_of_an_open_record_counts),
        TEST(an_open_record_is_good_once_and_in_its_place),
    };

    cipher = which;
    return cmocka_run_group_tests_name(which->name, tests, NULL, NULL);
}

int main(void)
{
    const struct rueda_cipher *const all[] = {
        &rueda_cipher_chacha, &rueda_cipher_aes, &rueda_cipher_libcrypto};
    const unsigned char key[RUEDA_CIPHER_KEY_BYTES] = {0};
    int failed = 0;

    rueda_ciphers_open(&ciphers, RUEDA_LOAD_HEADS);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        void *made = NULL;

        if (all[i] == &rueda_cipher_libcrypto && ciphers.libcrypto == NULL)
            continue;
        if (all[i]->key_new != NULL)
            made = all[i]->key_new(ciphers.libcrypto, key);
        if (all[i]->key_new == NULL || made != NULL)
            failed += run_for(all[i]);
        if (made != NULL)
            all[i]->key_free(made);
    }
    rueda_ciphers_close(&ciphers);
    return failed;
}
