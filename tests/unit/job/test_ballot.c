/* SPDX-License-Identifier: Apache-2.0 */
/* Words about the next term: as bytes, and counted in an order. */
#include <string.h>

#include "job/ballot.h"
#include "unit/unit.h"

#define SIZE 4

static int set_up(void **state)
{
    static struct rueda_ballot ballot;

    *state = &ballot;
    return rueda_ballot_init(&ballot, SIZE) == RUEDA_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    rueda_ballot_fini(*state);
    return 0;
}

static void freeze(struct rueda_ballot *ballot, uint32_t term, int member,
                   uint64_t has)
{
    const struct rueda_ballot_word word = {.kind = RUEDA_BALLOT_FROZEN,
                                           .term = term,
                                           .member = member,
                                           .has = {has, 2 * has},
                                           .boundaries = has};

    rueda_ballot_count(ballot, &word);
}

static void go(struct rueda_ballot *ballot, int member, int speaker)
{
    const struct rueda_ballot_word word = {
        .kind = RUEDA_BALLOT_GONE, .member = member, .speaker = speaker};

    rueda_ballot_count(ballot, &word);
}

static void offer(struct rueda_ballot *ballot, uint32_t term, int member)
{
    const struct rueda_ballot_word word = {
        .kind = RUEDA_BALLOT_OFFERED, .term = term, .member = member};

    rueda_ballot_count(ballot, &word);
}

/* ---- As bytes ----------------------------------------------------------- */

static void a_word_is_read_as_it_was_written(void **state)
{
    const struct rueda_ballot_word words[] = {
        {.kind = RUEDA_BALLOT_FROZEN,
         .term = 7,
         .member = 3,
         .speaker = 3,
         .has = {5, UINT64_MAX},
         .boundaries = 9},
        {.kind = RUEDA_BALLOT_GONE, .member = 0, .speaker = 3},
        {.kind = RUEDA_BALLOT_OFFERED, .term = 2, .member = 1, .speaker = 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        unsigned char value[RUEDA_BALLOT_VALUE_BYTES];
        char key[RUEDA_BALLOT_KEY_BYTES];
        struct rueda_ballot_word back;
        const size_t len = rueda_ballot_write_key(&words[i], key);

        assert_true(rueda_ballot_read(
            key, len, value, rueda_ballot_write_value(&words[i], value), SIZE,
            &back));
        assert_int_equal(back.kind, words[i].kind);
        assert_int_equal(back.term, words[i].term);
        assert_int_equal(back.member, words[i].member);
        assert_int_equal(back.speaker, words[i].speaker);
        assert_memory_equal(back.has, words[i].has, sizeof(back.has));
        assert_true(back.boundaries == words[i].boundaries);
    }
}

static void what_no_member_says_is_refused(void **state)
{
    static const char *const keys[] = {"",
                                       "frozen",
                                       "frozen/",
                                       "frozen/2/",
                                       "frozen/2/4",
                                       "frozen/2/1/",
                                       "frozen/-2/1",
                                       "frozen/2/x",
                                       "gone/4/1",
                                       "gone/1/4",
                                       "gone/1",
                                       "gone/1/ 1",
                                       "offered/1",
                                       "offered//1",
                                       "frozen/99999999999999999999/1",
                                       "stolen/1/1"};
    unsigned char value[RUEDA_BALLOT_VALUE_BYTES] = {0};
    struct rueda_ballot_word word;

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_false(rueda_ballot_read(keys[i], strlen(keys[i]), value,
                                       sizeof(value), SIZE, &word));
    assert_false(rueda_ballot_read("frozen/2/1", 10, value, sizeof(value) - 1,
                                   SIZE, &word));
    assert_false(
        rueda_ballot_read("gone/1/1\0", 9, value, sizeof(value), SIZE, &word));
    assert_true(
        rueda_ballot_read("frozen/2/1", 10, value, sizeof(value), SIZE, &word));
}

/* ---- Votes -------------------------------------------------------------- */

static void the_least_that_a_survivor_has_counts(void **state)
{
    struct rueda_ballot *ballot = *state;
    const struct rueda_ballot_result *result;

    go(ballot, 1, 1);
    freeze(ballot, 2, 0, 5);
    freeze(ballot, 2, 3, 6);
    assert_null(rueda_ballot_vote(ballot, 2));
    assert_true(rueda_ballot_is_called(ballot, 1));
    freeze(ballot, 2, 2, 4);
    result = rueda_ballot_vote(ballot, 2);
    assert_non_null(result);
    assert_true(result->limits[0] == 4 && result->limits[1] == 8);
    assert_true(result->last_boundary == 6);
    assert_true(rueda_ballot_survives(ballot, 2, 0));
    assert_false(rueda_ballot_survives(ballot, 2, 1));
    assert_int_equal(rueda_ballot_begin(ballot, 2), RUEDA_IN_PROGRESS);
    offer(ballot, 2, 0);
    offer(ballot, 2, 3);
    offer(ballot, 2, 2);
    assert_int_equal(rueda_ballot_begin(ballot, 2), RUEDA_OK);
    assert_true(rueda_ballot_survives(ballot, 2, 0));
    assert_false(rueda_ballot_is_called(ballot, 2));
}

static void a_member_that_froze_and_went_is_no_survivor(void **state)
{
    struct rueda_ballot *ballot = *state;

    freeze(ballot, 2, 1, 1);
    go(ballot, 1, 1);
    freeze(ballot, 2, 0, 5);
    freeze(ballot, 2, 2, 5);
    freeze(ballot, 2, 3, 5);
    assert_true(rueda_ballot_vote(ballot, 2)->limits[0] == 5);
    assert_false(rueda_ballot_survives(ballot, 2, 1));
}

static void a_loss_before_the_beginning_ends_the_attempt(void **state)
{
    struct rueda_ballot *ballot = *state;

    for (int i = 0; i < SIZE; i++)
        freeze(ballot, 2, i, 3);
    offer(ballot, 2, 0);
    go(ballot, 0, 0);
    assert_int_equal(rueda_ballot_begin(ballot, 2), RUEDA_ERR_PEER_LOST);
    offer(ballot, 2, 1); /* too late */
    for (int i = 1; i < SIZE; i++)
        freeze(ballot, 3, i, 3);
    assert_true(rueda_ballot_vote(ballot, 3)->limits[0] == 3);
    for (int i = 1; i < SIZE; i++)
        offer(ballot, 3, i);
    assert_int_equal(rueda_ballot_begin(ballot, 3), RUEDA_OK);
    assert_false(rueda_ballot_survives(ballot, 3, 0));
}

static void of_two_that_accuse_each_other_one_stays(void **state)
{
    struct rueda_ballot *ballot = *state;

    go(ballot, 1, 0);
    go(ballot, 0, 1);
    assert_true(rueda_ballot_is_gone(ballot, 1));
    assert_false(rueda_ballot_is_gone(ballot, 0));
    assert_true(rueda_ballot_has_lost(ballot));
    go(ballot, 0, 0); /* it has died, as the store says */
    assert_true(rueda_ballot_is_gone(ballot, 0));
}

static void a_word_that_comes_twice_counts_once(void **state)
{
    struct rueda_ballot *ballot = *state;

    freeze(ballot, 2, 0, 3);
    freeze(ballot, 2, 0, 9);
    freeze(ballot, 2, 1, 5);
    freeze(ballot, 2, 2, 5);
    freeze(ballot, 2, 3, 5);
    assert_true(rueda_ballot_vote(ballot, 2)->limits[0] == 3);
    freeze(ballot, 2, 0, 1);
    assert_true(rueda_ballot_vote(ballot, 2)->limits[0] == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_is_read_as_it_was_written),
        cmocka_unit_test(what_no_member_says_is_refused),
        cmocka_unit_test_setup_teardown(the_least_that_a_survivor_has_counts,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_member_that_froze_and_went_is_no_survivor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_loss_before_the_beginning_ends_the_attempt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_two_that_accuse_each_other_one_stays,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_word_that_comes_twice_counts_once,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
