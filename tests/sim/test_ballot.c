/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of 16 to 256 ranks that agree on the next term by what a store has
 * heard (job/ballot.h). A seed decides which of them die, before the store has
 * heard their last words or after; which find the host of another one silent;
 * and how late the store hears and each of them reads:
 *
 *     test_sim_ballot [FIRST [COUNT]]
 *
 * All come to the same results, and those that are left go on in one term.
 */
#include <stdlib.h>
#include <string.h>

#include "job/ballot.h"
#include "sim/seed.h"
#include "transport/sim/dice.h"
#include "unit/unit.h"

#define MOST       256
#define MOST_WORDS 65536
#define MOST_SAYS  8
#define MOST_TERMS 256
#define EVENTS     20000000 /* no seed needs as many */

enum state {
    RUNS,
    FROZEN,
    OFFERED,
    DEAD,
    OUT, /* it has read that it is gone */
};

struct rank {
    enum state state;
    bool is_buried; /* the store has heard of its death */
    uint32_t term;  /* the last that was voted for, or in force */
    uint64_t has;
    struct rueda_ballot_word says[MOST_SAYS]; /* the store has not heard */
    int say_count;
    int read; /* words */
    struct rueda_ballot ballot;
};

/* What the first rank has found of a term. */
struct outcome {
    bool is_known;
    struct rueda_ballot_result result;
    unsigned char survives[MOST];
};

struct world {
    struct rueda_dice dice;
    int size;
    int faults; /* that are still to come */
    struct rank ranks[MOST];
    struct rueda_ballot_word *words; /* [MOST_WORDS] as the store heard them */
    int word_count;
    struct outcome outcomes[MOST_TERMS];
};

static int below(struct world *world, int n)
{
    return (int)rueda_dice_below(&world->dice, (uint64_t)n);
}

static bool is_there(const struct rank *rank)
{
    return rank->state != DEAD && rank->state != OUT;
}

/* ---- Words -------------------------------------------------------------- */

static void hear(struct world *world, const struct rueda_ballot_word *word)
{
    assert_in_range(world->word_count, 0, MOST_WORDS - 1);
    world->words[world->word_count++] = *word;
}

static void say(struct rank *rank, rueda_ballot_kind kind, int member, int me)
{
    assert_in_range(rank->say_count, 0, MOST_SAYS - 1);
    rank->says[rank->say_count++] =
        (struct rueda_ballot_word){.kind = kind,
                                   .term = rank->term + 1,
                                   .member = member,
                                   .speaker = me,
                                   .has = {rank->has, rank->has / 2},
                                   .boundaries = rank->has};
}

/* The store hears the first of them. */
static void deliver(struct world *world, struct rank *rank)
{
    hear(world, &rank->says[0]);
    rank->say_count--;
    memmove(rank->says, rank->says + 1,
            (size_t)rank->say_count * sizeof(rank->says[0]));
}

/* The store misses it, after what it had said before, or a part of that. */
static void bury(struct world *world, int me)
{
    const struct rueda_ballot_word word = {
        .kind = RUEDA_BALLOT_GONE, .member = me, .speaker = me};

    world->ranks[me].is_buried = true;
    world->ranks[me].say_count = 0;
    hear(world, &word);
}

/* ---- What ranks do ------------------------------------------------------- */

static void freeze(struct world *world, int me)
{
    struct rank *rank = &world->ranks[me];

    if (rank->state == RUNS)
        rank->has = (uint64_t)below(world, 1000);
    rank->state = FROZEN;
    say(rank, RUEDA_BALLOT_FROZEN, me, me);
}

/* All find the same of a term, however late. */
static void compare(struct world *world, const struct rank *rank, uint32_t term)
{
    const struct rueda_ballot_result *found =
        rueda_ballot_vote(&rank->ballot, term);
    struct outcome *outcome = &world->outcomes[term % MOST_TERMS];

    assert_non_null(found);
    if (!outcome->is_known) {
        outcome->is_known = true;
        outcome->result = *found;
        for (int i = 0; i < world->size; i++)
            outcome->survives[i] =
                rueda_ballot_survives(&rank->ballot, term, i);
    }
    assert_int_equal(found->term, outcome->result.term);
    assert_true(found->has_begun == outcome->result.has_begun);
    assert_memory_equal(found->limits, outcome->result.limits,
                        sizeof(found->limits));
    assert_true(found->last_boundary == outcome->result.last_boundary);
    for (int i = 0; i < world->size; i++)
        assert_int_equal(rueda_ballot_survives(&rank->ballot, term, i),
                         outcome->survives[i]);
}

/* The term has begun, or will not. */
static void conclude(struct world *world, int me, rueda_status status)
{
    struct rank *rank = &world->ranks[me];
    const uint32_t term = rank->term + 1;

    compare(world, rank, term);
    assert_true(rank->has >=
                world->outcomes[term % MOST_TERMS].result.limits[0]);
    rank->term = term;
    if (status == RUEDA_OK) {
        assert_true(rueda_ballot_survives(&rank->ballot, term, me));
        rank->state = RUNS;
    } else {
        freeze(world, me);
    }
}

static void act(struct world *world, int me)
{
    struct rank *rank = &world->ranks[me];
    rueda_status status;

    if (rueda_ballot_is_gone(&rank->ballot, me)) {
        rank->state = OUT;
        return;
    }
    switch (rank->state) {
    case RUNS:
        if (rueda_ballot_is_called(&rank->ballot, rank->term) ||
            rueda_ballot_has_lost(&rank->ballot))
            freeze(world, me);
        break;
    case FROZEN:
        if (rueda_ballot_vote(&rank->ballot, rank->term + 1) == NULL)
            break;
        rank->state = OFFERED;
        say(rank, RUEDA_BALLOT_OFFERED, me, me);
        break;
    case OFFERED:
        status = rueda_ballot_begin(&rank->ballot, rank->term + 1);
        if (status != RUEDA_IN_PROGRESS)
            conclude(world, me, status);
        break;
    case DEAD:
    case OUT:
        break;
    }
}

static void read_some(struct world *world, struct rank *rank)
{
    int count = 1 + below(world, 20);

    while (count-- > 0 && rank->read < world->word_count)
        rueda_ballot_count(&rank->ballot, &world->words[rank->read++]);
}

/* ---- A world ---------------------------------------------------------- */

static void fault(struct world *world)
{
    const int me = below(world, world->size);
    const int other = below(world, world->size);
    struct rank *rank = &world->ranks[me];

    world->faults--;
    if (!is_there(rank))
        return;
    if (below(world, 3) > 0)
        rank->state = DEAD;
    else if (other != me && is_there(&world->ranks[other]) &&
             rank->say_count < 2)
        say(rank, RUEDA_BALLOT_GONE, other, me);
}

static void live(struct world *world, int me)
{
    struct rank *rank = &world->ranks[me];

    if (rank->say_count > 0 && below(world, 3) == 0)
        deliver(world, rank);
    else if (rank->state == DEAD && !rank->is_buried && below(world, 4) == 0)
        bury(world, me);
    if (!is_there(rank))
        return;
    read_some(world, rank);
    if (rank->say_count < MOST_SAYS - 2)
        act(world, me);
}

/* All has been said and read, and those that are left are in one term. */
static bool is_over(const struct world *world)
{
    uint32_t term = 0;

    if (world->faults > 0)
        return false;
    for (int i = 0; i < world->size; i++) {
        const struct rank *rank = &world->ranks[i];

        if (rank->say_count > 0 || (rank->state == DEAD && !rank->is_buried))
            return false;
        if (!is_there(rank))
            continue;
        if (rank->state != RUNS || rank->read < world->word_count ||
            rueda_ballot_is_gone(&rank->ballot, i) ||
            rueda_ballot_has_lost(&rank->ballot) ||
            (term != 0 && rank->term != term))
            return false;
        term = rank->term;
    }
    return true;
}

static int run_seed(uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    int left = 0;

    assert_non_null(world);
    world->words = calloc(MOST_WORDS, sizeof(*world->words));
    assert_non_null(world->words);
    world->dice.state = seed;
    world->size = 16 + below(world, seed % 8 == 0 ? MOST - 15 : 49);
    world->faults = 1 + below(world, 12);
    for (int i = 0; i < world->size; i++) {
        world->ranks[i].term = 1;
        assert_int_equal(
            rueda_ballot_init(&world->ranks[i].ballot, world->size), RUEDA_OK);
    }
    for (int event = 0; event % 256 != 0 || !is_over(world); event++) {
        assert_true(event < EVENTS);
        if (world->faults > 0 && below(world, 40 * world->size) == 0)
            fault(world);
        live(world, below(world, world->size));
    }
    for (int i = 0; i < world->size; i++) {
        left += is_there(&world->ranks[i]);
        rueda_ballot_fini(&world->ranks[i].ballot);
    }
    free(world->words);
    free(world);
    return left;
}

/* ---- The test --------------------------------------------------------- */

struct range {
    const char *program;
    uint64_t first;
    uint64_t count;
};

static void all_come_to_the_same_results(void **state)
{
    const struct range *range = *state;

    for (uint64_t i = 0; i < range->count; i++) {
        seed_begin(range->program, range->first + i);
        assert_true(run_seed(range->first + i) > 0);
        seed_end();
    }
}

int main(int argc, char **argv)
{
    struct range range = {argv[0], 1, 300};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(all_come_to_the_same_results,
                                                 NULL, seed_tear_down, &range),
    };

    if (argc > 1) {
        range.first = strtoull(argv[1], NULL, 10);
        range.count = 1;
    }
    if (argc > 2)
        range.count = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
