/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/unit.h"

#include "transport/sim/dice.h"
#include "transport/sim/queue.h"

static void events_come_in_the_order_of_time(void **state)
{
    struct rueda_sim_queue queue = {.count = 0};
    struct rueda_dice dice = {42};
    uint64_t last = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        const struct rueda_sim_event event = {.at_ns =
                                                  rueda_dice_below(&dice, 300)};

        assert_int_equal(rueda_sim_queue_push(&queue, event), RUEDA_OK);
    }
    /* Half of them, then some more that come later, then all. */
    for (int i = 0; i < 1500; i++) {
        const struct rueda_sim_event event = rueda_sim_queue_pop(&queue);

        assert_true(event.at_ns >= last);
        last = event.at_ns;
        if (i < 500) {
            const struct rueda_sim_event later = {
                .at_ns = last + rueda_dice_below(&dice, 100)};

            assert_int_equal(rueda_sim_queue_push(&queue, later), RUEDA_OK);
        }
    }
    assert_int_equal(queue.count, 0);
    rueda_sim_queue_fini(&queue);
}

static void events_of_one_time_come_in_the_order_of_their_making(void **state)
{
    struct rueda_sim_queue queue = {.count = 0};

    (void)state;
    for (int i = 0; i < 300; i++) {
        const struct rueda_sim_event event = {.at_ns = (uint64_t)(i % 3),
                                              .number = i / 3};

        assert_int_equal(rueda_sim_queue_push(&queue, event), RUEDA_OK);
    }
    for (int i = 0; i < 300; i++) {
        const struct rueda_sim_event event = rueda_sim_queue_pop(&queue);

        assert_int_equal(event.at_ns, i / 100);
        assert_int_equal(event.number, i % 100);
    }
    rueda_sim_queue_fini(&queue);
}

/* The first numbers of the published generator for seed 1234567. */
static void the_dice_are_splitmix64(void **state)
{
    static const uint64_t expected[] = {
        6457827717110365317u, 3203168211198807973u,  9817491932198370423u,
        4593380528125082431u, 16408922859458223821u,
    };
    struct rueda_dice dice = {1234567};

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_true(rueda_dice_roll(&dice) == expected[i]);
    for (int i = 0; i < 1000; i++)
        assert_true(rueda_dice_below(&dice, 7) < 7);
    assert_int_equal(rueda_dice_below(&dice, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_in_the_order_of_time),
        cmocka_unit_test(events_of_one_time_come_in_the_order_of_their_making),
        cmocka_unit_test(the_dice_are_splitmix64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
