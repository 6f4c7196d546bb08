/* SPDX-License-Identifier: Apache-2.0 */
/* Votes on how to write blocks; times are given, no clock is read. */
#include "segment/trial.h"
#include "unit/unit.h"

#define BYTES ((size_t)64 << 10)

#define FAST 1000
#define SLOW 3000

/* A block far from any trial. */
#define BETWEEN (RUEDA_TRIAL_EVERY / 2)

/* The first block of the n-th pair of trials. */
static uint64_t pair_at(unsigned n)
{
    return (uint64_t)n * RUEDA_TRIAL_EVERY;
}

static void try_one(struct rueda_trial *trial, uint64_t block, size_t bytes,
                    int64_t ns)
{
    rueda_trial_begin(trial, block, bytes);
    rueda_trial_spend(trial, block, ns);
    rueda_trial_end(trial, block);
}

/* A pair of trials, won by one way. */
static void vote(struct rueda_trial *trial, unsigned n, rueda_way winner)
{
    const bool is_stream = winner == RUEDA_WAY_STREAM;

    try_one(trial, pair_at(n), BYTES, is_stream ? SLOW : FAST);
    try_one(trial, pair_at(n) + 1, BYTES, is_stream ? FAST : SLOW);
}

/* This many votes for one way, one pair after another. */
static void settle(struct rueda_trial *trial, rueda_way winner, unsigned votes)
{
    for (unsigned n = 0; n < votes; n++)
        vote(trial, n, winner);
}

static rueda_way way_between(const struct rueda_trial *trial)
{
    return rueda_trial_way(trial, BETWEEN);
}

/* How many votes for a way until the blocks between go that way. */
static unsigned votes_to_flip(struct rueda_trial *trial, rueda_way winner)
{
    unsigned votes = 0;

    while (way_between(trial) != winner && votes < 1000)
        vote(trial, votes++, winner);
    return votes;
}

static void the_first_two_of_every_so_many_blocks_are_trials(void **state)
{
    (void)state;
    for (uint64_t block = 0; block < pair_at(4); block++)
        assert_int_equal(rueda_trial_is_on(block),
                         block % RUEDA_TRIAL_EVERY < 2);
}

static void trials_are_one_of_each_way_whatever_the_score(void **state)
{
    (void)state;
    for (int score = -3; score <= 3; score++) {
        const struct rueda_trial trial = {.score = score};

        for (unsigned n = 0; n < 4; n++) {
            assert_int_equal(rueda_trial_way(&trial, pair_at(n)),
                             RUEDA_WAY_STORE);
            assert_int_equal(rueda_trial_way(&trial, pair_at(n) + 1),
                             RUEDA_WAY_STREAM);
        }
    }
}

static void before_any_trial_blocks_are_stored(void **state)
{
    const struct rueda_trial trial = {0};

    (void)state;
    for (uint64_t i = 2; i < RUEDA_TRIAL_EVERY; i++)
        assert_int_equal(rueda_trial_way(&trial, i), RUEDA_WAY_STORE);
}

static void the_faster_way_is_taken_after_its_first_win(void **state)
{
    struct rueda_trial trial = {0};

    (void)state;
    vote(&trial, 0, RUEDA_WAY_STREAM);
    for (uint64_t i = 2; i < RUEDA_TRIAL_EVERY; i++)
        assert_int_equal(rueda_trial_way(&trial, i), RUEDA_WAY_STREAM);

    trial = (struct rueda_trial){0};
    vote(&trial, 0, RUEDA_WAY_STORE);
    assert_int_equal(way_between(&trial), RUEDA_WAY_STORE);
}

static void a_settled_score_is_turned_by_votes_the_other_way(void **state)
{
    struct rueda_trial trial = {0};
    unsigned votes;

    (void)state;
    settle(&trial, RUEDA_WAY_STREAM, 10);
    votes = votes_to_flip(&trial, RUEDA_WAY_STORE);
    assert_in_range(votes, 2, 4);
    settle(&trial, RUEDA_WAY_STORE, 10);
    votes = votes_to_flip(&trial, RUEDA_WAY_STREAM);
    assert_in_range(votes, 2, 4);
}

static void one_interrupted_trial_does_not_turn_a_settled_score(void **state)
{
    const int64_t interrupted = (int64_t)1000 * SLOW;
    struct rueda_trial trial = {0};

    (void)state;
    settle(&trial, RUEDA_WAY_STREAM, 10);
    try_one(&trial, pair_at(10), BYTES, SLOW);
    try_one(&trial, pair_at(10) + 1, BYTES, interrupted);
    assert_int_equal(way_between(&trial), RUEDA_WAY_STREAM);

    settle(&trial, RUEDA_WAY_STORE, 10);
    try_one(&trial, pair_at(10), BYTES, interrupted);
    try_one(&trial, pair_at(10) + 1, BYTES, SLOW);
    assert_int_equal(way_between(&trial), RUEDA_WAY_STORE);
}

/* However long a way has won, it takes no longer to turn. */
static void the_score_saturates(void **state)
{
    static const rueda_way ways[] = {RUEDA_WAY_STORE, RUEDA_WAY_STREAM};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rueda_trial soon = {0};
        struct rueda_trial late = {0};

        settle(&soon, ways[i], 4);
        settle(&late, ways[i], 10000);
        assert_int_equal(soon.score, late.score);
        assert_int_equal(votes_to_flip(&late, ways[1 - i]),
                         votes_to_flip(&soon, ways[1 - i]));
    }
}

static void blocks_of_very_unequal_lengths_do_not_count(void **state)
{
    struct rueda_trial trial = {0};

    (void)state;
    try_one(&trial, 0, BYTES, SLOW);
    try_one(&trial, 1, BYTES / 4, FAST);
    assert_int_equal(trial.score, 0);

    settle(&trial, RUEDA_WAY_STREAM, 10);
    for (unsigned n = 10; n < 20; n++) {
        try_one(&trial, pair_at(n), BYTES / 4, FAST);
        try_one(&trial, pair_at(n) + 1, BYTES, SLOW);
    }
    assert_int_equal(way_between(&trial), RUEDA_WAY_STREAM);
}

/* The end of an operation is often shorter, and takes less time for that. */
static void the_time_for_a_byte_counts(void **state)
{
    struct rueda_trial trial = {0};

    (void)state;
    try_one(&trial, 0, BYTES, 1000);
    try_one(&trial, 1, BYTES / 2, 600);
    assert_int_equal(trial.score, -1);
    try_one(&trial, pair_at(1), BYTES, 1000);
    try_one(&trial, pair_at(1) + 1, BYTES / 2, 400);
    assert_int_equal(trial.score, 0);
}

/* As when the second block is one of a broadcast, which is not timed. */
static void blocks_of_different_trials_are_not_compared(void **state)
{
    struct rueda_trial trial = {0};

    (void)state;
    try_one(&trial, pair_at(0), BYTES, SLOW);
    try_one(&trial, pair_at(1) + 1, BYTES, FAST);
    assert_int_equal(trial.score, 0);
}

static void a_pair_counts_once(void **state)
{
    struct rueda_trial trial = {0};
    int score;

    (void)state;
    vote(&trial, 0, RUEDA_WAY_STREAM);
    score = trial.score;
    rueda_trial_end(&trial, 1);
    assert_int_equal(trial.score, score);

    /* The next streamed one has no stored one to be compared with. */
    try_one(&trial, pair_at(1) + 1, BYTES, FAST);
    assert_int_equal(trial.score, score);
}

static void half_a_pair_does_not_count(void **state)
{
    struct rueda_trial trial = {0};

    (void)state;
    try_one(&trial, 0, BYTES, FAST);
    assert_int_equal(trial.score, 0);

    trial = (struct rueda_trial){0};
    try_one(&trial, 1, BYTES, FAST);
    assert_int_equal(trial.score, 0);
}

/* Publish, reduce and fetch of both, as the turns of an operation mix them. */
static void the_time_of_all_steps_counts_together(void **state)
{
    static const int64_t stored[] = {1, 2, 9};
    static const int64_t streamed[] = {5, 3, 3};
    struct rueda_trial trial = {0};

    (void)state;
    rueda_trial_begin(&trial, 0, BYTES);
    rueda_trial_spend(&trial, 0, stored[0]);
    rueda_trial_begin(&trial, 1, BYTES);
    rueda_trial_spend(&trial, 1, streamed[0]);
    rueda_trial_spend(&trial, 0, stored[1]);
    rueda_trial_spend(&trial, 1, streamed[1]);
    rueda_trial_spend(&trial, 0, stored[2]);
    rueda_trial_end(&trial, 0);
    assert_int_equal(trial.score, 0);
    rueda_trial_spend(&trial, 1, streamed[2]);
    rueda_trial_end(&trial, 1);
    assert_int_equal(way_between(&trial), RUEDA_WAY_STREAM);
}

/* What an earlier pair took is forgotten when the next begins. */
static void every_pair_begins_at_nothing(void **state)
{
    struct rueda_trial trial = {0};

    (void)state;
    try_one(&trial, 0, BYTES, SLOW);
    try_one(&trial, 1, BYTES, (int64_t)1000 * SLOW);
    settle(&trial, RUEDA_WAY_STREAM, 10);
    assert_int_equal(way_between(&trial), RUEDA_WAY_STREAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_two_of_every_so_many_blocks_are_trials),
        cmocka_unit_test(trials_are_one_of_each_way_whatever_the_score),
        cmocka_unit_test(before_any_trial_blocks_are_stored),
        cmocka_unit_test(the_faster_way_is_taken_after_its_first_win),
        cmocka_unit_test(a_settled_score_is_turned_by_votes_the_other_way),
        cmocka_unit_test(one_interrupted_trial_does_not_turn_a_settled_score),
        cmocka_unit_test(the_score_saturates),
        cmocka_unit_test(blocks_of_very_unequal_lengths_do_not_count),
        cmocka_unit_test(the_time_for_a_byte_counts),
        cmocka_unit_test(blocks_of_different_trials_are_not_compared),
        cmocka_unit_test(a_pair_counts_once),
        cmocka_unit_test(half_a_pair_does_not_count),
        cmocka_unit_test(the_time_of_all_steps_counts_together),
        cmocka_unit_test(every_pair_begins_at_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
