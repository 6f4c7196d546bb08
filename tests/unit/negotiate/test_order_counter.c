/* SPDX-License-Identifier: Apache-2.0 */
#include "negotiate/order_counter.h"
#include "unit/unit.h"

#define MOST 1000

struct desk {
    struct rueda_order_counter counter;
    struct rueda_order order;
    struct rueda_request requests[MOST];
    int mine[MOST]; /* only their addresses are used */
};

static int desk_open(void **state)
{
    static struct desk desk;

    memset(&desk, 0, sizeof(desk));
    assert_int_equal(rueda_order_counter_init(&desk.counter, 3), RUEDA_OK);
    desk.order = rueda_order_counter(&desk.counter);
    *state = &desk;
    return 0;
}

static int desk_close(void **state)
{
    struct desk *desk = *state;

    rueda_order_counter_fini(&desk->counter);
    return 0;
}

static void submit(struct desk *desk, int i)
{
    assert_int_equal(
        rueda_order_submit(&desk->order, &desk->requests[i], &desk->mine[i]),
        RUEDA_OK);
}

/* The next decision is to run this one alone. */
static void is_next(struct desk *desk, int i)
{
    const struct rueda_decision *decision = rueda_order_next(&desk->order);

    assert_non_null(decision);
    assert_int_equal(decision->kind, RUEDA_DECIDED_RUN);
    assert_int_equal(decision->index, i + 1);
    assert_int_equal(decision->live, 3);
    assert_int_equal(decision->count, 1);
    assert_ptr_equal(decision->items[0].mine, &desk->mine[i]);
    assert_ptr_equal(decision->items[0].request, &desk->requests[i]);
}

static void decisions_come_one_by_one_as_submitted(void **state)
{
    struct desk *desk = *state;
    int done = 0;

    /* Two in, one out: the ring wraps and grows with some in it. */
    for (int i = 0; i < MOST; i++) {
        submit(desk, i);
        is_next(desk, done);
        if (i % 2 == 1) {
            rueda_order_done(&desk->order);
            done++;
        }
    }
    for (; done < MOST; done++) {
        is_next(desk, done);
        assert_int_equal(rueda_order_latest(&desk->order), MOST);
        rueda_order_done(&desk->order);
    }
    assert_null(rueda_order_next(&desk->order));
    assert_int_equal(rueda_order_latest(&desk->order), 0);
}

static void a_decision_stays_until_it_is_done(void **state)
{
    struct desk *desk = *state;

    submit(desk, 0);
    is_next(desk, 0);
    submit(desk, 1);
    is_next(desk, 0);
    rueda_order_done(&desk->order);
    is_next(desk, 1);
}

static void a_decision_stays_while_many_are_submitted(void **state)
{
    struct desk *desk = *state;
    const struct rueda_decision *decision;

    submit(desk, 0);
    decision = rueda_order_next(&desk->order);
    for (int i = 1; i < MOST; i++)
        submit(desk, i);
    assert_ptr_equal(decision->items[0].mine, &desk->mine[0]);
    assert_ptr_equal(decision->items[0].request, &desk->requests[0]);
}

static void the_latest_is_the_last_submitted(void **state)
{
    struct desk *desk = *state;

    assert_int_equal(rueda_order_latest(&desk->order), 0);
    submit(desk, 0);
    submit(desk, 1);
    assert_int_equal(rueda_order_latest(&desk->order), 2);
    rueda_order_done(&desk->order);
    assert_int_equal(rueda_order_latest(&desk->order), 2);
}

static void a_counter_has_nothing_to_say_to_others(void **state)
{
    struct desk *desk = *state;
    struct rueda_text error = {{0}};

    submit(desk, 0);
    assert_int_equal(rueda_order_turn(&desk->order, &error), RUEDA_IN_PROGRESS);
    assert_false(rueda_order_is_sending(&desk->order));
    assert_true(rueda_order_due_ns(&desk->order) == INT64_MAX);
}

static void what_has_ended_decides_nothing_more(void **state)
{
    struct desk *desk = *state;

    submit(desk, 0);
    submit(desk, 1);
    assert_false(rueda_order_is_over(&desk->order));
    rueda_order_end(&desk->order);
    assert_null(rueda_order_next(&desk->order));
    assert_true(rueda_order_is_over(&desk->order));
}

#define DESK(test) cmocka_unit_test_setup_teardown(test, desk_open, desk_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DESK(decisions_come_one_by_one_as_submitted),
        DESK(a_decision_stays_until_it_is_done),
        DESK(a_decision_stays_while_many_are_submitted),
        DESK(the_latest_is_the_last_submitted),
        DESK(a_counter_has_nothing_to_say_to_others),
        DESK(what_has_ended_decides_nothing_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
