/* SPDX-License-Identifier: Apache-2.0 */
/* Several members' views of one slab, all in one thread. */
#include "os/memory.h"
#include "segment/slab.h"
#include "unit/unit.h"

#define RANKS 3
#define BLOCK ((size_t)8192)

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
        rueda_segment_alloc(slabs.segments[0], rueda_slab_bytes(RANKS, BLOCK),
                            &at, &error) != RUEDA_OK)
        return -1;
    for (int i = 0; i < RANKS; i++)
        rueda_slab_init(&slabs.of[i], slabs.segments[i], at, BLOCK);
    return 0;
}

static int slabs_close(void **state)
{
    struct slabs *slabs = *state;

    for (int i = 0; i < RANKS; i++)
        rueda_segment_close(slabs->segments[i]);
    return 0;
}

static void slots_of_members_and_blocks_lie_apart(void **state)
{
    struct slabs *slabs = *state;
    struct rueda_slab *slab = &slabs->of[0];
    char *end = (char *)slab->lines + rueda_slab_bytes(RANKS, BLOCK);

    assert_true((char *)(slab->lines + RANKS) <= rueda_slab_slot(slab, 0, 0));
    for (int i = 0; i < RANKS * RUEDA_SLOTS; i++) {
        char *slot =
            rueda_slab_slot(slab, i / RUEDA_SLOTS, (uint64_t)(i % RUEDA_SLOTS));

        assert_ptr_equal(slot, rueda_slab_slot(slab, 0, 0) + (size_t)i * BLOCK);
        assert_true(slot + BLOCK <= end);
    }
    assert_ptr_equal(rueda_slab_slot(slab, 2, 1),
                     rueda_slab_slot(slab, 2, 1 + 7 * RUEDA_SLOTS));
}

static void what_one_puts_into_its_slot_is_read_by_another(void **state)
{
    struct slabs *slabs = *state;

    strcpy(rueda_slab_slot(&slabs->of[2], 2, 5), "block 5 of 2");
    assert_string_equal(rueda_slab_slot(&slabs->of[1], 2, 5), "block 5 of 2");
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

/* Members run ahead of each other by as much as the slots allow. */
static void counters_agree_with_a_model(void **state)
{
    struct slabs *slabs = *state;
    uint64_t posted[RANKS] = {0};
    uint64_t asked = 0;
    uint32_t seed = 1;

    for (int turn = 0; turn < 20000; turn++) {
        int i = (int)((seed >> 16) % RANKS);

        seed = seed * 1664525u + 1013904223u;
        if (i > 0 && posted[i] < asked + RUEDA_SLOTS) {
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

static void tiny_lines_bring_their_bytes(void **state)
{
    struct slabs *slabs = *state;
    unsigned char bytes[RUEDA_TINY_BYTES];

    for (uint64_t block = 0; block < 3 * RUEDA_TINY_LINES; block++) {
        for (int i = 1; i < RANKS; i++) {
            assert_false(rueda_slab_all_tiny(&slabs->of[0], block));
            memset(bytes, (int)(10 * block) + i, sizeof(bytes));
            rueda_slab_post_tiny(&slabs->of[i], block, bytes, sizeof(bytes));
        }
        assert_true(rueda_slab_all_tiny(&slabs->of[0], block));
        for (int i = 1; i < RANKS; i++) {
            const struct rueda_tiny *tiny =
                &slabs->of[0].lines[i].tiny[block % RUEDA_TINY_LINES];

            memset(bytes, (int)(10 * block) + i, sizeof(bytes));
            assert_int_equal(tiny->number, block + 1);
            assert_memory_equal(tiny->bytes, bytes, sizeof(bytes));
        }
    }
}

static void a_tiny_block_counts_as_posted(void **state)
{
    struct slabs *slabs = *state;

    for (int i = 1; i < RANKS; i++)
        rueda_slab_post_tiny(&slabs->of[i], 4, NULL, 0);
    assert_true(rueda_slab_has_posted(&slabs->of[0], 1, 4));
    assert_true(rueda_slab_all_tiny(&slabs->of[0], 4));
    assert_true(rueda_slab_all_posted(&slabs->of[0], 4));
}

static void an_earlier_tiny_line_is_there_after_the_next(void **state)
{
    struct slabs *slabs = *state;

    for (int i = 1; i < RANKS; i++) {
        rueda_slab_post_tiny(&slabs->of[i], 0, "old", 4);
        rueda_slab_post_tiny(&slabs->of[i], 1, "new", 4);
    }
    assert_true(rueda_slab_all_tiny(&slabs->of[0], 0));
    assert_string_equal((const char *)slabs->of[0].lines[1].tiny[0].bytes,
                        "old");
    assert_true(rueda_slab_all_tiny(&slabs->of[0], 1));
    assert_string_equal((const char *)slabs->of[0].lines[1].tiny[1].bytes,
                        "new");
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

    for (int way = 0; way < 4; way++) {
        rueda_segment_arm(slabs->segments[0]);
        if (way == 0)
            rueda_slab_post(&slabs->of[1], 0);
        else if (way == 1)
            rueda_slab_post_reduced(&slabs->of[1], 0);
        else if (way == 2)
            rueda_slab_post_tiny(&slabs->of[1], 0, "x", 1);
        else
            rueda_slab_post_notice(&slabs->of[1], 0, &notice);
        assert_int_equal(slabs->segments[0]->members[0].sleeping, 0);
        rueda_segment_wait(slabs->segments[0], -1);
    }
}

#define SLABS(test)                                                            \
    cmocka_unit_test_setup_teardown(test, slabs_open, slabs_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SLABS(slots_of_members_and_blocks_lie_apart),
        SLABS(what_one_puts_into_its_slot_is_read_by_another),
        SLABS(a_block_is_posted_when_all_others_have),
        SLABS(posting_and_reducing_are_counted_apart),
        SLABS(a_walk_goes_on_where_it_stopped),
        SLABS(blocks_before_the_one_reached_are_known_at_once),
        SLABS(counters_agree_with_a_model),
        SLABS(tiny_lines_bring_their_bytes),
        SLABS(a_tiny_block_counts_as_posted),
        SLABS(an_earlier_tiny_line_is_there_after_the_next),
        SLABS(notices_are_there_when_every_member_has_shown_one),
        SLABS(whoever_sleeps_is_woken_by_a_post),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
