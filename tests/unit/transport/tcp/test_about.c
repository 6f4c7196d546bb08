/* SPDX-License-Identifier: Apache-2.0 */
/* What the ends of a connection say about themselves, and agree on. */
#include "transport/tcp/about.h"
#include "unit/unit.h"

static void what_is_said_is_heard(void **state)
{
    const struct rueda_tcp_about said[] = {
        {0, 1, 0, RUEDA_TCP_FOR_STREAM, RUEDA_TCP_FORBID, {1, 0}},
        {3,
         70000,
         UINT64_MAX - 1,
         RUEDA_TCP_FOR_PULSE,
         RUEDA_TCP_INSIST,
         {700, 200}},
        {INT32_MAX - 1,
         INT32_MAX,
         77,
         RUEDA_TCP_FOR_STREAM,
         RUEDA_TCP_WANT,
         {UINT16_MAX, UINT16_MAX}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        unsigned char bytes[RUEDA_TCP_ABOUT_BYTES];
        struct rueda_tcp_about heard;

        rueda_tcp_about_encode(&said[i], bytes);
        assert_true(rueda_tcp_about_decode(bytes, sizeof(bytes), &heard));
        assert_int_equal(heard.rank, said[i].rank);
        assert_int_equal(heard.size, said[i].size);
        assert_true(heard.job == said[i].job);
        assert_int_equal(heard.purpose, said[i].purpose);
        assert_int_equal(heard.wish, said[i].wish);
        for (int k = 0; k < RUEDA_CIPHER_KINDS; k++)
            assert_int_equal(heard.costs[k], said[i].costs[k]);
    }
}

static void what_no_rank_says_is_refused(void **state)
{
    static const struct {
        int at;
        unsigned char value;
    } wrongs[] = {{0, 4},  {3, 0x80}, {4, 2},    {4, 0},  {7, 0x80},
                  {16, 0}, {16, 3},   {16, 255}, {17, 0}, {17, 6},
                  {18, 0}, {22, 1},   {23, 1}};
    const struct rueda_tcp_about about = {
        2, 4, 9, RUEDA_TCP_FOR_STREAM, RUEDA_TCP_ALLOW, {1, 0}};
    unsigned char bytes[RUEDA_TCP_ABOUT_BYTES + 1] = {0};
    struct rueda_tcp_about heard = {.rank = 77};

    (void)state;
    rueda_tcp_about_encode(&about, bytes);
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        unsigned char wrong[RUEDA_TCP_ABOUT_BYTES];

        memcpy(wrong, bytes, sizeof(wrong));
        wrong[wrongs[i].at] = wrongs[i].value;
        assert_false(rueda_tcp_about_decode(wrong, sizeof(wrong), &heard));
    }
    for (size_t len = 0; len <= sizeof(bytes); len++)
        if (len != RUEDA_TCP_ABOUT_BYTES)
            assert_false(rueda_tcp_about_decode(bytes, len, &heard));
    assert_false(rueda_tcp_about_decode(NULL, 0, &heard));
    assert_int_equal(heard.rank, 77);
}

static void two_ranks_of_one_job_fit(void **state)
{
    const struct rueda_tcp_about ours = {.rank = 1, .size = 4, .job = 9};
    struct rueda_tcp_about theirs = {.rank = 2, .size = 4, .job = 9};

    (void)state;
    assert_true(rueda_tcp_about_fits(&ours, &theirs));
    theirs.job = 8;
    assert_false(rueda_tcp_about_fits(&ours, &theirs));
    theirs.job = 9;
    theirs.size = 5;
    assert_false(rueda_tcp_about_fits(&ours, &theirs));
    theirs.size = 4;
    theirs.rank = 1;
    assert_false(rueda_tcp_about_fits(&ours, &theirs));
}

static void a_wish_comes_from_the_setting_and_the_way(void **state)
{
    (void)state;
    for (int is_near = 0; is_near <= 1; is_near++) {
        assert_int_equal(rueda_tcp_wish_of(RUEDA_ENCRYPT_NEVER, is_near),
                         RUEDA_TCP_FORBID);
        assert_int_equal(rueda_tcp_wish_of(RUEDA_ENCRYPT_ALWAYS, is_near),
                         RUEDA_TCP_INSIST);
        assert_int_equal(rueda_tcp_wish_of(RUEDA_ENCRYPT_AUTHENTICATE, is_near),
                         RUEDA_TCP_PROVE);
    }
    assert_int_equal(rueda_tcp_wish_of(RUEDA_ENCRYPT_AUTO, true),
                     RUEDA_TCP_ALLOW);
    assert_int_equal(rueda_tcp_wish_of(RUEDA_ENCRYPT_AUTO, false),
                     RUEDA_TCP_WANT);
}

/* l plain, s sealed, r proven, x refused; by the wishes of the two, FORBID
 * first. */
static void both_ends_come_to_the_same_end(void **state)
{
    static const char expected[5][6] = {"lllxx", "llssx", "lsssx", "xsssx",
                                        "xxxxr"};

    (void)state;
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) {
            const struct rueda_tcp_about ours = {
                .rank = 3, .wish = RUEDA_TCP_FORBID + i, .costs = {700, 200}};
            const struct rueda_tcp_about theirs = {
                .rank = 14, .wish = RUEDA_TCP_FORBID + k, .costs = {700, 300}};
            struct rueda_text error = {{0}};
            struct rueda_tcp_protection protection;
            rueda_status status =
                rueda_tcp_agree(&ours, &theirs, &protection, &error);

            assert_int_equal(status, expected[i][k] == 'x' ? RUEDA_ERR_MISMATCH
                                                           : RUEDA_OK);
            if (status == RUEDA_OK) {
                const char *shield = rueda_tcp_shield_str(protection.shield);

                assert_int_equal(shield[0] == 'p' ? shield[1] : shield[0],
                                 expected[i][k]);
                assert_int_equal(protection.cipher, RUEDA_AES_256_GCM);
            }
            assert_int_equal(rueda_text_is_empty(&error), status == RUEDA_OK);
        }
    }
}

static void who_cannot_agree_is_named(void **state)
{
    const struct rueda_tcp_about always = {.rank = 3, .wish = RUEDA_TCP_INSIST};
    const struct rueda_tcp_about never = {.rank = 14, .wish = RUEDA_TCP_FORBID};
    struct rueda_text errors[2] = {{{0}}, {{0}}};
    struct rueda_tcp_protection protection;

    (void)state;
    rueda_tcp_agree(&always, &never, &protection, &errors[0]);
    rueda_tcp_agree(&never, &always, &protection, &errors[1]);
    assert_string_equal(errors[0].chars, errors[1].chars);
    assert_non_null(strstr(errors[0].chars, "rank 3 has RUEDA_ENCRYPT=always"));
    assert_non_null(strstr(errors[0].chars, "rank 14 has RUEDA_ENCRYPT=never"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_is_heard),
        cmocka_unit_test(what_no_rank_says_is_refused),
        cmocka_unit_test(two_ranks_of_one_job_fit),
        cmocka_unit_test(a_wish_comes_from_the_setting_and_the_way),
        cmocka_unit_test(both_ends_come_to_the_same_end),
        cmocka_unit_test(who_cannot_agree_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
