/* SPDX-License-Identifier: Apache-2.0 */
#include "op/op.h"
#include "os/clock.h"
#include "os/thread.h"
#include "unit/unit.h"

#define MOST (RUEDA_OP_CHUNK * RUEDA_OP_CHUNKS)

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

    assert_null(rueda_op_find(pool, 0));
    assert_null(rueda_op_find(pool, 1));
    assert_null(rueda_op_find(pool, (rueda_handle)1 << 16));
    take(pool);
    assert_null(rueda_op_find(pool, 0));
    assert_null(rueda_op_find(pool, 5));
    assert_null(rueda_op_find(pool, (rueda_handle)2 << 16));
    assert_null(rueda_op_find(pool, ((rueda_handle)1 << 16) + 1));
    assert_null(rueda_op_find(pool, ((rueda_handle)1 << 16) + 64));
    assert_null(rueda_op_find(pool, UINT64_MAX));
}

static void as_many_as_65536_operations_are_unfinished_at_once(void **state)
{
    struct rueda_op_pool *pool = *state;
    static struct rueda_op *ops[MOST];
    struct rueda_op *none = NULL;

    assert_int_equal(MOST, 65536);
    for (int i = 0; i < MOST; i++)
        ops[i] = take(pool);
    assert_int_equal(rueda_op_take(pool, &none), RUEDA_ERR_LIMIT);
    assert_null(none);
    for (int i = 0; i < MOST; i++)
        assert_ptr_equal(rueda_op_find(pool, ops[i]->handle), ops[i]);

    rueda_op_give(pool, ops[777]);
    assert_ptr_equal(take(pool), ops[777]);
    assert_int_equal(rueda_op_take(pool, &none), RUEDA_ERR_LIMIT);
}

/* ---- Queue ----------------------------------------------------------- */

static void operations_leave_in_the_order_in_which_they_came(void **state)
{
    struct rueda_op_queue queue = {.first = NULL};
    struct rueda_op ops[5] = {{.handle = 0}};

    (void)state;
    assert_null(rueda_op_peek(&queue));
    assert_false(rueda_op_queue_has_news(&queue));
    rueda_op_push(&queue, &ops[0]);
    rueda_op_push(&queue, &ops[1]);
    assert_true(rueda_op_queue_has_news(&queue));
    assert_ptr_equal(rueda_op_peek(&queue), &ops[0]);
    assert_ptr_equal(rueda_op_peek(&queue), &ops[0]);
    assert_false(rueda_op_queue_has_news(&queue));
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
        POOL(as_many_as_65536_operations_are_unfinished_at_once),
        cmocka_unit_test(operations_leave_in_the_order_in_which_they_came),
        cmocka_unit_test(
            what_four_threads_push_arrives_once_and_in_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
