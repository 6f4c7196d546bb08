/* SPDX-License-Identifier: Apache-2.0 */
#include "op/numbers.h"
#include "op/op.h"
#include "op/ticket.h"
#include "os/clock.h"
#include "os/thread.h"
#include "unit/unit.h"

#define LIFE ((rueda_handle)1 << 20)

/* ---- Pool ------------------------------------------------------------ */

static int pool_open(void **state)
{
    static struct rueda_op_pool pool;

    rueda_op_pool_init(&pool);
    *state = &pool;
    return 0;
}

static int pool_close(void **state)
{
    rueda_op_pool_fini(*state);
    return 0;
}

static struct rueda_op *take(struct rueda_op_pool *pool)
{
    struct rueda_op *op = NULL;

    assert_int_equal(rueda_op_take(pool, &op), RUEDA_OK);
    return op;
}

static void an_operation_begins_in_progress_and_has_a_handle(void **state)
{
    struct rueda_op_pool *pool = *state;
    struct rueda_op *op = take(pool);

    assert_int_equal(rueda_op_status(op), RUEDA_IN_PROGRESS);
    assert_int_not_equal(op->handle, 0);
    assert_ptr_equal(rueda_op_find(pool, op->handle), op);
}

static void a_handle_ends_with_its_operation(void **state)
{
    struct rueda_op_pool *pool = *state;
    struct rueda_op *op = take(pool);
    rueda_handle handle = op->handle;

    rueda_op_give(pool, op);
    assert_null(rueda_op_find(pool, handle));
    assert_ptr_equal(take(pool), op);
    assert_null(rueda_op_find(pool, handle));
    assert_ptr_equal(rueda_op_find(pool, op->handle), op);
    assert_int_equal(rueda_op_status(op), RUEDA_IN_PROGRESS);
}

static void handles_are_never_used_again(void **state)
{
    struct rueda_op_pool *pool = *state;
    rueda_handle last = 0;

    for (int i = 0; i < 100000; i++) {
        struct rueda_op *op = take(pool);

        /* The same place each time, in a later life. */
        assert_true(op->handle > last);
        last = op->handle;
        rueda_op_give(pool, op);
    }
}

static void a_handle_that_never_was_names_nothing(void **state)
{
    struct rueda_op_pool *pool = *state;
    struct rueda_op *op;

    assert_null(rueda_op_find(pool, 0));
    assert_null(rueda_op_find(pool, 1));
    assert_null(rueda_op_find(pool, LIFE));
    op = take(pool);
    assert_int_equal(op->handle, LIFE);
    assert_null(rueda_op_find(pool, 0));
    assert_null(rueda_op_find(pool, 5));
    assert_null(rueda_op_find(pool, 2 * LIFE));
    assert_null(rueda_op_find(pool, 3 * LIFE));
    assert_null(rueda_op_find(pool, LIFE + 1));
    assert_null(rueda_op_find(pool, LIFE + 64));
    assert_null(rueda_op_find(pool, LIFE + 1000));
    assert_null(rueda_op_find(pool, UINT64_MAX));
    rueda_op_give(pool, op);
    assert_null(rueda_op_find(pool, 2 * LIFE));
    assert_null(rueda_op_find(pool, 3 * LIFE));
}

static void as_many_as_a_million_operations_are_unfinished_at_once(void **state)
{
    struct rueda_op_pool *pool = *state;
    struct rueda_op *none = NULL;
    struct rueda_op **ops;
    rueda_handle last = 0;
    int found = 0;

    skip_where_address_space_is_needed();
    assert_true(RUEDA_OP_MOST >= 1048576);
    ops = calloc(RUEDA_OP_MOST, sizeof(struct rueda_op *));
    assert_non_null(ops);
    for (int i = 0; i < RUEDA_OP_MOST; i++) {
        ops[i] = take(pool);
        assert_true(ops[i]->handle > last);
        last = ops[i]->handle;
    }
    assert_int_equal(rueda_op_take(pool, &none), RUEDA_ERR_LIMIT);
    assert_null(none);
    for (int i = 0; i < RUEDA_OP_MOST; i++)
        found += rueda_op_find(pool, ops[i]->handle) == ops[i];
    assert_int_equal(found, RUEDA_OP_MOST);

    rueda_op_give(pool, ops[777777]);
    assert_ptr_equal(take(pool), ops[777777]);
    assert_int_equal(rueda_op_take(pool, &none), RUEDA_ERR_LIMIT);
    free(ops);
}

#define TAKERS 4
#define TAKES  20000

struct taker {
    struct rueda_op_pool *pool;
    int wrong;
};

/* Each marks what it holds, in a field that no other thread may then write. */
static void *take_and_give(void *arg)
{
    struct taker *taker = arg;
    struct rueda_op *held[7] = {NULL};

    for (int i = 0; i < TAKES; i++) {
        struct rueda_op **place = &held[i % 7];
        rueda_handle handle;

        if (*place != NULL) {
            handle = (*place)->handle;
            taker->wrong += rueda_ticket_of(*place)->send != taker ||
                            rueda_op_find(taker->pool, handle) != *place;
            rueda_op_give(taker->pool, *place);
            taker->wrong += rueda_op_find(taker->pool, handle) != NULL;
        }
        taker->wrong += rueda_op_take(taker->pool, place) != RUEDA_OK;
        rueda_ticket_of(*place)->send = taker;
    }
    return NULL;
}

static void what_four_threads_take_is_each_ones_own(void **state)
{
    struct rueda_op_pool *pool = *state;
    struct taker takers[TAKERS];
    pthread_t threads[TAKERS];

    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){pool, 0};
        assert_int_equal(
            rueda_thread_start(&threads[i], take_and_give, &takers[i]),
            RUEDA_OK);
    }
    for (int i = 0; i < TAKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(takers[i].wrong, 0);
    }
    /* No more were needed than were held at once. */
    assert_int_equal(pool->index_count, 64);
}

/* The sanitizer would tell of what is not freed, or freed twice. */
static void what_a_named_operation_owns_ends_with_its_handle(void **state)
{
    struct rueda_op_pool *pool = *state;

    for (int i = 0; i < 3; i++) {
        struct rueda_ticket *ticket = rueda_ticket_of(take(pool));

        ticket->names = NULL;
        ticket->long_name = strdup("a name");
        ticket->splits = malloc(8);
        ticket->ranks = malloc(8);
        ticket->rows_from = malloc(8);
        ticket->error = strdup("words");
        ticket->op.has_own = true;
        if (i == 2)
            return; /* that one ends with the pool */
        rueda_op_give(pool, &ticket->op);
        assert_null(ticket->long_name);
        assert_null(ticket->error);
    }
}

/* ---- Delivery -------------------------------------------------------- */

struct called {
    int times;
    rueda_status status;
    int order; /* among all calls */
};

static int calls;

static void call(void *arg, rueda_status status)
{
    struct called *called = arg;

    called->times++;
    called->status = status;
    called->order = calls++;
}

static void without_a_callback_delivery_only_stores_the_status(void **state)
{
    struct rueda_op *op = take(*state);
    struct rueda_then_list due = {NULL, NULL};

    rueda_op_deliver(op, RUEDA_ERR_MISMATCH, &due);
    assert_int_equal(rueda_op_status(op), RUEDA_ERR_MISMATCH);
    assert_null(due.first);
    rueda_then_run(&due);
}

static void callbacks_are_called_in_the_order_of_delivery(void **state)
{
    struct rueda_then_list due = {NULL, NULL};
    struct called called[3] = {{0}};
    struct rueda_op *ops[3];

    calls = 0;
    for (int i = 0; i < 3; i++) {
        ops[i] = take(*state);
        assert_int_equal(rueda_op_then(ops[i], call, &called[i]), RUEDA_OK);
        assert_int_equal(rueda_op_status(ops[i]), RUEDA_IN_PROGRESS);
    }
    rueda_op_deliver(ops[2], RUEDA_OK, &due);
    rueda_op_deliver(ops[0], RUEDA_ERR_CANCELLED, &due);
    rueda_op_deliver(ops[1], RUEDA_OK, &due);
    assert_int_equal(rueda_op_status(ops[0]), RUEDA_ERR_CANCELLED);
    assert_int_equal(calls, 0);

    rueda_then_run(&due);
    rueda_then_run(&due);

    assert_int_equal(calls, 3);
    assert_int_equal(called[2].order, 0);
    assert_int_equal(called[0].order, 1);
    assert_int_equal(called[1].order, 2);
    assert_int_equal(called[0].status, RUEDA_ERR_CANCELLED);
    assert_int_equal(called[1].status, RUEDA_OK);
}

static void a_callback_that_comes_late_is_called_at_once(void **state)
{
    struct rueda_op *op = take(*state);
    struct rueda_then_list due = {NULL, NULL};
    struct called called = {0};

    rueda_op_deliver(op, RUEDA_ERR_PEER_LOST, &due);
    assert_int_equal(rueda_op_then(op, call, &called), RUEDA_OK);
    assert_int_equal(called.times, 1);
    assert_int_equal(called.status, RUEDA_ERR_PEER_LOST);
    assert_int_equal(rueda_op_then(op, call, &called), RUEDA_ERR_INVALID);
    assert_int_equal(called.times, 1);
}

static void an_operation_has_one_callback_in_each_life(void **state)
{
    struct rueda_op_pool *pool = *state;
    struct rueda_then_list due = {NULL, NULL};
    struct called called = {0};
    struct rueda_op *op = take(pool);

    assert_int_equal(rueda_op_then(op, call, &called), RUEDA_OK);
    assert_int_equal(rueda_op_then(op, call, &called), RUEDA_ERR_INVALID);
    rueda_op_deliver(op, RUEDA_OK, &due);
    rueda_then_run(&due);
    rueda_op_give(pool, op);
    assert_ptr_equal(take(pool), op);
    assert_int_equal(rueda_op_then(op, call, &called), RUEDA_OK);
    assert_int_equal(called.times, 1);
}

static void a_handle_may_end_before_its_callback_is_called(void **state)
{
    struct rueda_op_pool *pool = *state;
    struct rueda_then_list due = {NULL, NULL};
    struct called called = {0};
    struct rueda_op *op = take(pool);
    rueda_handle handle = op->handle;
    struct rueda_op *other;

    rueda_op_then(op, call, &called);
    rueda_op_deliver(op, RUEDA_OK, &due);
    rueda_op_give(pool, op);
    assert_null(rueda_op_find(pool, handle));
    other = take(pool);
    assert_ptr_not_equal(other, op); /* its place is still needed */
    rueda_op_give(pool, other);

    rueda_then_run(&due);

    assert_int_equal(called.times, 1);
    assert_ptr_equal(take(pool), op);
}

#define RACES 5000

struct racer {
    struct rueda_op_pool *pool;
    struct rueda_op **ops; /* [RACES] */
    struct called *called; /* [RACES] */
};

static void *set_callbacks(void *arg)
{
    struct racer *racer = arg;

    for (int i = 0; i < RACES; i++)
        rueda_op_then(racer->ops[i], call, &racer->called[i]);
    return NULL;
}

static void a_callback_set_during_delivery_is_called_once(void **state)
{
    static struct rueda_op *ops[RACES];
    static struct called called[RACES];
    struct racer racer = {*state, ops, called};
    struct rueda_then_list due = {NULL, NULL};
    pthread_t thread;

    for (int i = 0; i < RACES; i++)
        ops[i] = take(*state);
    memset(called, 0, sizeof(called));
    assert_int_equal(rueda_thread_start(&thread, set_callbacks, &racer),
                     RUEDA_OK);
    for (int i = 0; i < RACES; i++)
        rueda_op_deliver(ops[i], RUEDA_ERR_CLOSED, &due);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rueda_then_run(&due);

    for (int i = 0; i < RACES; i++) {
        assert_int_equal(called[i].times, 1);
        assert_int_equal(called[i].status, RUEDA_ERR_CLOSED);
    }
}

/* ---- Numbers of those without a name ---------------------------------- */

static uint64_t next_of(struct rueda_numbers *numbers, int set)
{
    uint64_t number = UINT64_MAX;

    assert_int_equal(rueda_numbers_next(numbers, set, &number), RUEDA_OK);
    return number;
}

static void numbers_are_counted_for_each_set(void **state)
{
    struct rueda_numbers *numbers = calloc(1, sizeof(*numbers));
    uint64_t none;

    (void)state;
    assert_int_equal(next_of(numbers, 0), 0);
    assert_int_equal(next_of(numbers, 0), 1);
    assert_int_equal(next_of(numbers, 1048575), 0);
    assert_int_equal(next_of(numbers, 7), 0);
    assert_int_equal(next_of(numbers, 0), 2);
    assert_int_equal(rueda_numbers_next(numbers, 1048576, &none),
                     RUEDA_ERR_LIMIT);
    assert_int_equal(rueda_numbers_next(numbers, -1, &none), RUEDA_ERR_LIMIT);
    rueda_numbers_fini(numbers);
    free(numbers);
}

static void who_has_joined_uses_up_no_numbers(void **state)
{
    struct rueda_numbers *numbers = calloc(1, sizeof(*numbers));
    uint64_t none = 77;

    (void)state;
    assert_int_equal(next_of(numbers, 3), 0);
    assert_int_equal(rueda_numbers_join(numbers, 3), RUEDA_OK);
    assert_int_equal(rueda_numbers_join(numbers, 3), RUEDA_ERR_INVALID);
    assert_int_equal(rueda_numbers_next(numbers, 3, &none), RUEDA_ERR_INVALID);
    assert_int_equal(none, 77);
    assert_int_equal(next_of(numbers, 4), 0);
    rueda_numbers_go_on(numbers, 3, 5);
    assert_int_equal(next_of(numbers, 3), 5);
    assert_int_equal(rueda_numbers_join(numbers, 3), RUEDA_OK);
    rueda_numbers_go_on(numbers, 3, 6);
    assert_int_equal(next_of(numbers, 3), 6);
    assert_int_equal(rueda_numbers_join(numbers, -1), RUEDA_ERR_LIMIT);
    rueda_numbers_go_on(numbers, -1, 2);
    rueda_numbers_fini(numbers);
    free(numbers);
}

/* ---- Queue ----------------------------------------------------------- */

static void operations_leave_in_the_order_in_which_they_came(void **state)
{
    struct rueda_op_queue queue = {.first = NULL};
    struct rueda_op ops[5] = {{.handle = 0}};

    (void)state;
    assert_null(rueda_op_peek(&queue));
    assert_false(rueda_op_queue_has_arrivals(&queue));
    rueda_op_push(&queue, &ops[0]);
    rueda_op_push(&queue, &ops[1]);
    assert_true(rueda_op_queue_has_arrivals(&queue));
    assert_ptr_equal(rueda_op_peek(&queue), &ops[0]);
    assert_ptr_equal(rueda_op_peek(&queue), &ops[0]);
    assert_false(rueda_op_queue_has_arrivals(&queue));
    rueda_op_push(&queue, &ops[2]);
    rueda_op_push(&queue, &ops[3]);
    rueda_op_pop(&queue);
    assert_ptr_equal(rueda_op_peek(&queue), &ops[1]);
    rueda_op_pop(&queue);
    assert_ptr_equal(rueda_op_peek(&queue), &ops[2]);
    rueda_op_pop(&queue);
    rueda_op_pop(&queue);
    assert_null(rueda_op_peek(&queue));
    rueda_op_push(&queue, &ops[4]);
    assert_ptr_equal(rueda_op_peek(&queue), &ops[4]);
    rueda_op_pop(&queue);
    assert_null(rueda_op_peek(&queue));
}

static void what_the_engine_appends_comes_behind_what_was_pushed(void **state)
{
    struct rueda_op_queue queue = {.first = NULL};
    struct rueda_op ops[5] = {{.handle = 0}};

    (void)state;
    rueda_op_append(&queue, &ops[0]);
    rueda_op_push(&queue, &ops[1]);
    rueda_op_push(&queue, &ops[2]);
    rueda_op_append(&queue, &ops[3]);
    rueda_op_push(&queue, &ops[4]);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(rueda_op_peek(&queue), &ops[i]);
        rueda_op_pop(&queue);
    }
    assert_null(rueda_op_peek(&queue));
}

#define PUSHERS 4
#define PUSHES  5000

struct pusher {
    struct rueda_op_queue *queue;
    struct rueda_op *ops; /* [PUSHES] */
};

static void *push_all(void *arg)
{
    struct pusher *pusher = arg;

    for (int i = 0; i < PUSHES; i++)
        rueda_op_push(pusher->queue, &pusher->ops[i]);
    return NULL;
}

static void what_four_threads_push_arrives_once_and_in_their_order(void **state)
{
    static struct rueda_op ops[PUSHERS][PUSHES];
    struct rueda_op_queue queue = {.first = NULL};
    struct pusher pushers[PUSHERS];
    pthread_t threads[PUSHERS];
    int64_t deadline = rueda_clock_ns() + INT64_C(20000000000);
    rueda_handle handle = 0;
    int next[PUSHERS] = {0};
    int arrived = 0;

    (void)state;
    for (int i = 0; i < PUSHERS; i++)
        for (int j = 0; j < PUSHES; j++)
            ops[i][j].handle = handle++;
    for (int i = 0; i < PUSHERS; i++) {
        pushers[i] = (struct pusher){&queue, ops[i]};
        assert_int_equal(rueda_thread_start(&threads[i], push_all, &pushers[i]),
                         RUEDA_OK);
    }
    while (arrived < PUSHERS * PUSHES && rueda_clock_ns() < deadline) {
        struct rueda_op *op = rueda_op_peek(&queue);
        int i;

        if (op == NULL)
            continue;
        i = (int)op->handle / PUSHES;
        if ((int)op->handle % PUSHES != next[i])
            break;
        next[i]++;
        arrived++;
        rueda_op_pop(&queue);
    }
    for (int i = 0; i < PUSHERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(arrived, PUSHERS * PUSHES);
    assert_null(rueda_op_peek(&queue));
}

#define POOL(test) cmocka_unit_test_setup_teardown(test, pool_open, pool_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOL(an_operation_begins_in_progress_and_has_a_handle),
        POOL(a_handle_ends_with_its_operation),
        POOL(handles_are_never_used_again),
        POOL(a_handle_that_never_was_names_nothing),
        POOL(as_many_as_a_million_operations_are_unfinished_at_once),
        POOL(what_four_threads_take_is_each_ones_own),
        POOL(what_a_named_operation_owns_ends_with_its_handle),
        POOL(without_a_callback_delivery_only_stores_the_status),
        POOL(callbacks_are_called_in_the_order_of_delivery),
        POOL(a_callback_that_comes_late_is_called_at_once),
        POOL(an_operation_has_one_callback_in_each_life),
        POOL(a_handle_may_end_before_its_callback_is_called),
        POOL(a_callback_set_during_delivery_is_called_once),
        cmocka_unit_test(numbers_are_counted_for_each_set),
        cmocka_unit_test(who_has_joined_uses_up_no_numbers),
        cmocka_unit_test(operations_leave_in_the_order_in_which_they_came),
        cmocka_unit_test(what_the_engine_appends_comes_behind_what_was_pushed),
        cmocka_unit_test(
            what_four_threads_push_arrives_once_and_in_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
