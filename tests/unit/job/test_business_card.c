/* SPDX-License-Identifier: Apache-2.0 */
/* Cards as bytes, and bytes that are no cards. */
#include "job/business_card.h"
#include "job/exchange.h"
#include "unit/unit.h"

static void fill(struct rueda_business_card *card)
{
    memset(card, 0, sizeof(*card));
    for (int i = 0; i < RUEDA_NONCE_BYTES; i++)
        card->nonce[i] = (unsigned char)(i * 17);
    for (int i = 0; i < RUEDA_KEY_BYTES; i++)
        card->key.bytes[i] = (unsigned char)(200 - i);
    card->key.present = true;
    snprintf(card->addresses, sizeof(card->addresses),
             "10.1.2.3:4000 [2001:db8::1]:4001");
}

static void a_card_is_what_it_was(void **state)
{
    unsigned char bytes[RUEDA_BUSINESS_CARD_PACKED];
    struct rueda_business_card card;
    struct rueda_business_card back;

    (void)state;
    assert_true(RUEDA_BUSINESS_CARD_PACKED <= RUEDA_BUSINESS_CARD_BYTES);
    fill(&card);
    rueda_business_card_pack(&card, bytes);
    assert_true(rueda_business_card_unpack(bytes, &back));
    assert_memory_equal(back.nonce, card.nonce, RUEDA_NONCE_BYTES);
    assert_true(back.key.present);
    assert_memory_equal(back.key.bytes, card.key.bytes, RUEDA_KEY_BYTES);
    assert_string_equal(back.addresses, card.addresses);
}

static void a_card_without_a_key_carries_none(void **state)
{
    static const unsigned char zeros[RUEDA_KEY_BYTES];
    unsigned char bytes[RUEDA_BUSINESS_CARD_PACKED];
    struct rueda_business_card card;
    struct rueda_business_card back;

    (void)state;
    fill(&card);
    card.key.present = false;
    rueda_business_card_pack(&card, bytes);
    assert_memory_equal(bytes + 20, zeros, sizeof(zeros));
    assert_true(rueda_business_card_unpack(bytes, &back));
    assert_false(back.key.present);
}

/* Addresses that fill all their room, or lack an end. */
static void the_end_of_addresses_is_seen_to(void **state)
{
    unsigned char bytes[RUEDA_BUSINESS_CARD_PACKED];
    struct rueda_business_card card;
    struct rueda_business_card back;

    (void)state;
    fill(&card);
    memset(card.addresses, 'a', sizeof(card.addresses));
    rueda_business_card_pack(&card, bytes);
    assert_true(rueda_business_card_unpack(bytes, &back));
    assert_int_equal(strlen(back.addresses), RUEDA_BUSINESS_CARD_ADDRESSES - 1);
    bytes[RUEDA_BUSINESS_CARD_PACKED - 1] = 'a';
    assert_false(rueda_business_card_unpack(bytes, &back));
}

static void other_bytes_are_refused(void **state)
{
    unsigned char bytes[RUEDA_BUSINESS_CARD_PACKED];
    struct rueda_business_card card;
    struct rueda_business_card back;

    (void)state;
    fill(&card);
    for (int at = 0; at < 4; at++) {
        rueda_business_card_pack(&card, bytes);
        bytes[at]++;
        assert_false(rueda_business_card_unpack(bytes, &back));
    }
    rueda_business_card_pack(&card, bytes);
    bytes[52] = 2;
    assert_false(rueda_business_card_unpack(bytes, &back));
}

static void a_wiped_card_has_no_key(void **state)
{
    static const unsigned char zeros[RUEDA_KEY_BYTES];
    struct rueda_business_card card;

    (void)state;
    fill(&card);
    rueda_business_card_wipe(&card);
    assert_false(card.key.present);
    assert_memory_equal(card.key.bytes, zeros, sizeof(zeros));
}

static void a_nonce_reads_as_digits(void **state)
{
    char text[RUEDA_NONCE_TEXT];
    struct rueda_business_card card;

    (void)state;
    fill(&card);
    rueda_nonce_text(card.nonce, text);
    assert_string_equal(text, "00112233445566778899aabbccddeeff");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_is_what_it_was),
        cmocka_unit_test(a_card_without_a_key_carries_none),
        cmocka_unit_test(the_end_of_addresses_is_seen_to),
        cmocka_unit_test(other_bytes_are_refused),
        cmocka_unit_test(a_wiped_card_has_no_key),
        cmocka_unit_test(a_nonce_reads_as_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
