/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/envelope.h"
#include "unit/unit.h"

#define SECRET_BYTES   32
#define ENVELOPE_BYTES (SECRET_BYTES + RUEDA_ENVELOPE_EXTRA_BYTES)

static const unsigned char secret[SECRET_BYTES] =
    "a secret of thirty-two letters!";

/* A rank, and an envelope for it. */
struct sealed {
    struct rueda_envelope_opener opener;
    unsigned char envelope[ENVELOPE_BYTES];
};

static void seal(struct sealed *out)
{
    assert_int_equal(rueda_envelope_opener_make(&out->opener), RUEDA_OK);
    assert_int_equal(rueda_envelope_seal(out->opener.public_key, secret,
                                         SECRET_BYTES, out->envelope),
                     RUEDA_OK);
}

static void the_rank_that_it_is_for_opens_it(void **state)
{
    unsigned char out[SECRET_BYTES];
    struct sealed sealed;

    (void)state;
    seal(&sealed);
    assert_int_equal(
        rueda_envelope_open(&sealed.opener, sealed.envelope, SECRET_BYTES, out),
        RUEDA_OK);
    assert_memory_equal(out, secret, SECRET_BYTES);
}

static void no_other_rank_opens_it(void **state)
{
    unsigned char out[SECRET_BYTES] = "as it was";
    struct rueda_envelope_opener other;
    struct sealed sealed;

    (void)state;
    seal(&sealed);
    assert_int_equal(rueda_envelope_opener_make(&other), RUEDA_OK);
    assert_int_equal(
        rueda_envelope_open(&other, sealed.envelope, SECRET_BYTES, out),
        RUEDA_ERR_AUTH);
    assert_string_equal(out, "as it was");
}

static void every_bit_of_it_counts(void **state)
{
    unsigned char out[SECRET_BYTES];
    struct sealed sealed;

    (void)state;
    seal(&sealed);
    for (size_t bit = 0; bit < (size_t)8 * ENVELOPE_BYTES; bit++) {
        sealed.envelope[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(rueda_envelope_open(&sealed.opener, sealed.envelope,
                                             SECRET_BYTES, out),
                         RUEDA_ERR_AUTH);
        sealed.envelope[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

static void no_two_are_alike(void **state)
{
    unsigned char again[ENVELOPE_BYTES];
    struct sealed sealed;

    (void)state;
    seal(&sealed);
    assert_int_equal(rueda_envelope_seal(sealed.opener.public_key, secret,
                                         SECRET_BYTES, again),
                     RUEDA_OK);
    assert_memory_not_equal(sealed.envelope, again, ENVELOPE_BYTES);
    assert_memory_not_equal(sealed.envelope + 32, again + 32, SECRET_BYTES);
}

/* With these X25519 gives zero, whatever the secret key. */
static void public_keys_that_hide_nothing_are_refused(void **state)
{
    static const unsigned char zero[RUEDA_ENVELOPE_KEY_BYTES];
    static const unsigned char one[RUEDA_ENVELOPE_KEY_BYTES] = {1};
    unsigned char out[ENVELOPE_BYTES];

    (void)state;
    assert_int_equal(rueda_envelope_seal(zero, secret, SECRET_BYTES, out),
                     RUEDA_ERR_AUTH);
    assert_int_equal(rueda_envelope_seal(one, secret, SECRET_BYTES, out),
                     RUEDA_ERR_AUTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rank_that_it_is_for_opens_it),
        cmocka_unit_test(no_other_rank_opens_it),
        cmocka_unit_test(every_bit_of_it_counts),
        cmocka_unit_test(no_two_are_alike),
        cmocka_unit_test(public_keys_that_hide_nothing_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
