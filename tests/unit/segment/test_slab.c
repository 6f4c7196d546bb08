/* SPDX-License-Identifier: Apache-2.0 */
/* Several members' views of one slab, all in one thread. */
#include "os/memory.h"
#include "segment/slab.h"
#include "unit/unit.h"

#define RANKS 3
#define CELL  ((size_t)4096)

struct slabs {
    struct rueda_segment *segments[RANKS];
    struct rueda_slab of[RANKS];
};

static int slabs_open(void **state)
{
    static struct slabs slabs;
    struct rueda_text error = {{0}};
    void *at;

    *state = &slabs;
    if (rueda_segment_threads(RANKS, slabs.segments, &error) != RUEDA_OK ||
        rueda_segment_alloc(slabs.segments[0], rueda_slab_bytes(RANKS, CELL),
                            &at, &error) != RUEDA_OK)
        return -1;
    for (int i = 0; i < RANKS; i++)
        rueda_slab_init(&slabs.of[i], slabs.segments[i], at, CELL);
    return 0;
}

static int slabs_close(void **state)
{
    struct slabs *slabs = *state;

    for (int i = 0; i < RANKS; i++)
        rueda_segment_close(slabs->segments[i]);
    return 0;
}

static void cells_of_all_members_lie_apart(void **state)
{
    struct slabs *slabs = *state;
    struct rueda_slab *slab = &slabs->of[0];
    char *first = rueda_slab_at(slab, 0, 0);
    char *end = (char *)slab->lines + rueda_slab_bytes(RANKS, CELL);

    assert_true((char *)(slab->lines + RANKS) <= first);
    for (int i = 0; i < RANKS * RUEDA_CELLS; i++) {
        char *cell =
            rueda_slab_at(slab, i / RUEDA_CELLS, (uint64_t)(i % RUEDA_CELLS));

        assert_ptr_equal(cell, first + (size_t)i * CELL);
        assert_true(cell + CELL <= end);
    }
    assert_ptr_equal(rueda_slab_at(slab, 2, 1),
                     rueda_slab_at(slab, 2, 1 + 7 * RUEDA_CELLS));
}

static void trays_lie_apart_from_one_another_and_from_the_rings(void **state)
{
    struct slabs *slabs = *state;
    struct rueda_slab *slab = &slabs->of[0];
    const size_t bytes = RUEDA_BLOCK_CELLS * CELL;
    char *last_cell = rueda_slab_at(slab, RANKS - 1, RUEDA_CELLS - 1);
    char *end = (char *)slab->lines + rueda_slab_bytes(RANKS, CELL);
    char *free_from = last_cell + CELL;

    for (int i = 0; i < RANKS * RUEDA_TRAYS; i++) {
        char *tray =
            rueda_slab_tray(slab, i / RUEDA_TRAYS, (uint64_t)(i % RUEDA_TRAYS));

        assert_true(tray >= free_from);
        free_from = tray + bytes;
    }
    assert_true(free_from <= end);
    assert_ptr_equal(rueda_slab_tray(slab, 1, 2),
                     rueda_slab_tray(slab, 1, 2 + 5 * RUEDA_TRAYS));
    assert_true((char *)(slab->piles + RUEDA_TRAYS) <=
                rueda_slab_at(slab, 0, 0));
}

static void what_one_puts_into_its_ring_is_read_by_another(void **state)
{
    static const char text[] = "block 5 of 2";
    struct slabs *slabs = *state;

    memcpy(rueda_slab_at(&slabs->of[2], 2, 5), text, sizeof(text));
    assert_string_equal(rueda_slab_at(&slabs->of[1], 2, 5), text);
}

static void a_block_is_posted_when_all_others_have(void **state)
{
    struct slabs *slabs = *state;

    assert_false(rueda_slab_all_posted(&slabs->of[0], 0));
    rueda_slab_post(&slabs->of[1], 0);
    assert_true(rueda_slab_has_posted(&slabs->of[0], 1, 0));
    assert_false(rueda_slab_has_posted(&slabs->of[0], 1, 1));
    assert_false(rueda_slab_has_posted(&slabs->of[0], 2, 0));
    assert_false(rueda_slab_all_posted(&slabs->of[0], 0));
    rueda_slab_post(&slabs->of[2], 0);
    assert_true(rueda_slab_all_posted(&slabs->of[0], 0));

    /* One's own post is not waited for, others wait for it. */
    assert_false(rueda_slab_all_posted(&slabs->of[1], 0));
    rueda_slab_post(&slabs->of[0], 0);
    assert_true(rueda_slab_all_posted(&slabs->of[1], 0));
    assert_true(rueda_slab_all_posted(&slabs->of[2], 0));
}

static void posting_and_reducing_are_counted_apart(void **state)
{
    struct slabs *slabs = *state;

    for (int i = 1; i < RANKS; i++)
        rueda_slab_post(&slabs->of[i], 0);
    assert_true(rueda_slab_all_posted(&slabs->of[0], 0));
    assert_false(rueda_slab_all_reduced(&slabs->of[0], 0));
    for (int i = 1; i < RANKS; i++)
        rueda_slab_post_reduced(&slabs->of[i], 0);
    assert_true(rueda_slab_all_reduced(&slabs->of[0], 0));
    assert_false(rueda_slab_all_posted(&slabs->of[0], 1));
    assert_false(rueda_slab_all_reduced(&slabs->of[0], 1));
}

static void a_walk_goes_on_where_it_stopped(void **state)
{
    struct slabs *slabs = *state;
    struct rueda_slab *slab = &slabs->of[0];

    rueda_slab_post(&slabs->of[1], 0);
    assert_false(rueda_slab_all_posted(slab, 0));
    assert_int_equal(slab->posted.at, 2);
    rueda_slab_post(&slabs->of[2], 0);
    assert_true(rueda_slab_all_posted(slab, 0));
    assert_int_equal(slab->posted.at, 0);
    assert_int_equal(slab->posted.reached, 1);
}

static void blocks_before_the_one_reached_are_known_at_once(void **state)
{
    struct slabs *slabs = *state;

    for (int i = 1; i < RANKS; i++)
        rueda_slab_post(&slabs->of[i], 9);
    assert_true(rueda_slab_all_posted(&slabs->of[0], 9));
    for (uint64_t block = 0; block < 10; block++)
        assert_true(rueda_slab_all_posted(&slabs->of[0], block));
    assert_false(rueda_slab_all_posted(&slabs->of[0], 10));
}

/* Members run ahead of each other by as much as a ring allows. */
static void counters_agree_with_a_model(void **state)
{
    struct slabs *slabs = *state;
    uint64_t posted[RANKS] = {0};
    uint64_t asked = 0;
    uint32_t seed = 1;

    for (int turn = 0; turn < 20000; turn++) {
        int i = (int)((seed >> 16) % RANKS);

        seed = seed * 1664525u + 1013904223u;
        if (i > 0 && posted[i] < asked + RUEDA_CELLS) {
            rueda_slab_post(&slabs->of[i], posted[i]);
            posted[i]++;
        } else if (i == 0) {
            bool all = posted[1] > asked && posted[2] > asked;

            assert_int_equal(rueda_slab_all_posted(&slabs->of[0], asked), all);
            asked += all;
        }
    }
    assert_true(asked > 1000);
}

/* Exchanges take the numbers of blocks, which go on by leaps. */
/* Members 0 and 2 share the slices of a block; member 1 comes too late. */
static void empty_pile(struct slabs *slabs, uint64_t pile)
{
    static const int takers[RANKS] = {2, 0, 2};

    for (int slice = 0; slice < RANKS; slice++) {
        struct rueda_slab *slab = &slabs->of[takers[slice]];

        assert_false(rueda_slab_did_all_slices(&slabs->of[1], pile));
        assert_int_equal(rueda_slab_take_slice(slab, pile), slice);
        assert_false(rueda_slab_did_all_slices(&slabs->of[1], pile));
        rueda_slab_did_slice(slab, pile);
    }
    assert_true(rueda_slab_did_all_slices(&slabs->of[1], pile));
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(rueda_slab_take_slice(&slabs->of[i], pile), -1);
}

static void each_slice_of_a_pile_is_taken_once(void **state)
{
    struct slabs *slabs = *state;

    for (uint64_t pile = 0; pile < UINT64_C(4) * RUEDA_TRAYS; pile++)
        empty_pile(slabs, pile);
}

/* A rank that finds nothing in one pile may take from the next already. */
static void piles_are_independent(void **state)
{
    struct slabs *slabs = *state;

    empty_pile(slabs, 0);
    assert_int_equal(rueda_slab_take_slice(&slabs->of[0], 1), 0);
    assert_int_equal(rueda_slab_take_slice(&slabs->of[0], 2), 0);
    assert_int_equal(rueda_slab_take_slice(&slabs->of[1], 1), 1);
    assert_true(rueda_slab_did_all_slices(&slabs->of[2], 0));
    assert_false(rueda_slab_did_all_slices(&slabs->of[2], RUEDA_TRAYS));
}

static void a_tiny_exchange_brings_everybodys_bytes(void **state)
{
    struct slabs *slabs = *state;
    unsigned char bytes[RUEDA_TINY_BYTES];

    for (uint64_t block = 0; block < 40; block += 5) {
        for (int i = 0; i < RANKS; i++) {
            memset(bytes, (int)block + i, sizeof(bytes));
            rueda_slab_post_tiny(&slabs->of[i], block, bytes, sizeof(bytes));
            if (i < RANKS - 1)
                assert_false(rueda_slab_all_tiny(&slabs->of[i], block));
        }
        for (int i = 0; i < RANKS; i++) {
            assert_true(rueda_slab_all_tiny(&slabs->of[i], block));
            for (int k = 0; k < RANKS; k++) {
                memset(bytes, (int)block + k, sizeof(bytes));
                assert_memory_equal(rueda_slab_tiny(&slabs->of[i], k), bytes,
                                    sizeof(bytes));
            }
        }
    }
}

/* A rank that is one exchange ahead does not spoil the lines of the last one.
 */
static void the_next_tiny_exchange_leaves_the_last_one_whole(void **state)
{
    struct slabs *slabs = *state;

    for (int i = 0; i < RANKS; i++)
        rueda_slab_post_tiny(&slabs->of[i], 3, "old", 4);
    assert_true(rueda_slab_all_tiny(&slabs->of[1], 3));
    rueda_slab_post_tiny(&slabs->of[1], 4, "new", 4);

    assert_true(rueda_slab_all_tiny(&slabs->of[0], 3));
    assert_string_equal((const char *)rueda_slab_tiny(&slabs->of[0], 1), "old");
    rueda_slab_post_tiny(&slabs->of[0], 4, NULL, 0);
    assert_string_equal((const char *)rueda_slab_tiny(&slabs->of[0], 1), "new");
}

static void notices_are_there_when_every_member_has_shown_one(void **state)
{
    struct slabs *slabs = *state;

    for (uint64_t block = 5; block < 20; block += 7) {
        for (int i = 0; i < RANKS; i++) {
            struct rueda_notice notice = {.send_offset = 100 + (uint64_t)i,
                                          .recv_offset = 200 + (uint64_t)i,
                                          .blocks = block + (uint64_t)i};

            for (int k = 0; k < RANKS; k++)
                assert_false(rueda_slab_all_noticed(&slabs->of[k], block));
            rueda_slab_post_notice(&slabs->of[i], block, &notice);
        }
        for (int i = 0; i < RANKS; i++) {
            const struct rueda_notice *seen = &slabs->of[1].lines[i].notice;

            assert_true(rueda_slab_all_noticed(&slabs->of[i], block));
            assert_int_equal(seen->send_offset, 100 + i);
            assert_int_equal(seen->recv_offset, 200 + i);
            assert_int_equal(seen->blocks, block + (uint64_t)i);
        }
    }
}

static void whoever_sleeps_is_woken_by_a_post(void **state)
{
    struct slabs *slabs = *state;
    const struct rueda_notice notice = {.blocks = 1};

    for (int way = 0; way < 5; way++) {
        rueda_segment_arm(slabs->segments[0]);
        if (way == 0)
            rueda_slab_post(&slabs->of[1], 0);
        else if (way == 1)
            rueda_slab_post_reduced(&slabs->of[1], 0);
        else if (way == 2)
            rueda_slab_post_tiny(&slabs->of[1], 0, "x", 1);
        else if (way == 3)
            rueda_slab_post_notice(&slabs->of[1], 0, &notice);
        else
            for (int slice = 0; slice < RANKS; slice++)
                rueda_slab_did_slice(&slabs->of[1], 0);
        assert_int_equal(slabs->segments[0]->members[0].sleeping, 0);
        rueda_segment_wait(slabs->segments[0], -1);
    }
}

#define SLABS(test)                                                            \
    cmocka_unit_test_setup_teardown(test, slabs_open, slabs_close)

/* Members 0 and 2 of the segment, in memory of their own. */
static void some_members_have_a_slab_of_their_own(void **state)
{
    static const int members[2] = {0, 2};
    struct slabs *slabs = *state;
    struct rueda_text error = {{0}};
    struct rueda_slab of[2];
    uint64_t offset;

    assert_int_equal(rueda_segment_reserve(slabs->segments[2],
                                           rueda_slab_bytes(2, CELL), &offset,
                                           &error),
                     RUEDA_OK);
    for (int i = 0; i < 2; i++) {
        struct rueda_segment *segment = slabs->segments[members[i]];

        rueda_slab_init_some(&of[i], segment, members, 2,
                             rueda_segment_at(segment, offset), CELL);
        assert_int_equal(of[i].rank, i);
        assert_int_equal(of[i].size, 2);
    }
    assert_true((char *)(of[0].lines + 2) <= rueda_slab_at(&of[0], 0, 0));
    assert_true(rueda_slab_at(&of[0], 1, RUEDA_CELLS - 1) + CELL <=
                (char *)of[0].lines + rueda_slab_bytes(2, CELL));
    rueda_slab_post_tiny(&of[0], 0, "a", 1);
    assert_false(rueda_slab_all_tiny(&of[0], 0));
    rueda_slab_post_tiny(&of[1], 0, "b", 1);
    assert_true(rueda_slab_all_tiny(&of[0], 0));
    assert_int_equal(rueda_slab_tiny(&of[0], 1)[0], 'b');
    assert_int_equal(rueda_slab_tiny(&of[1], 0)[0], 'a');
    assert_false(rueda_slab_all_posted(&slabs->of[0], 0));
}

static void buffers_are_back_when_all_have_let_go(void **state)
{
    struct slabs *slabs = *state;

    assert_true(rueda_slab_is_back(&slabs->of[0]));
    rueda_slab_lend(&slabs->of[0], 7);
    assert_false(rueda_slab_is_back(&slabs->of[0]));
    rueda_slab_lend(&slabs->of[1], 7);
    assert_false(rueda_slab_is_back(&slabs->of[0]));
    rueda_slab_leave(&slabs->of[2]);
    assert_true(rueda_slab_is_back(&slabs->of[0]));
    assert_true(rueda_slab_is_back(&slabs->of[1]));
    rueda_slab_lend(&slabs->of[1], 8);
    assert_false(rueda_slab_is_back(&slabs->of[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SLABS(cells_of_all_members_lie_apart),
        SLABS(trays_lie_apart_from_one_another_and_from_the_rings),
        SLABS(what_one_puts_into_its_ring_is_read_by_another),
        SLABS(a_block_is_posted_when_all_others_have),
        SLABS(posting_and_reducing_are_counted_apart),
        SLABS(a_walk_goes_on_where_it_stopped),
        SLABS(blocks_before_the_one_reached_are_known_at_once),
        SLABS(counters_agree_with_a_model),
        SLABS(each_slice_of_a_pile_is_taken_once),
        SLABS(piles_are_independent),
        SLABS(a_tiny_exchange_brings_everybodys_bytes),
        SLABS(the_next_tiny_exchange_leaves_the_last_one_whole),
        SLABS(notices_are_there_when_every_member_has_shown_one),
        SLABS(buffers_are_back_when_all_have_let_go),
        SLABS(whoever_sleeps_is_woken_by_a_post),
        SLABS(some_members_have_a_slab_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
