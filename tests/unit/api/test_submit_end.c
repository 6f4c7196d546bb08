/* SPDX-License-Identifier: Apache-2.0 */
/* How operations by name end, as a program sees it: results and callbacks. */
#include "support/fake_engine.h"

/* ---- Results ---------------------------------------------------------- */

static void a_result_tells_what_came_out(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLTOALL, "x");
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_ctx *ctx = *state;
    rueda_handle handle = fake_submit(ctx, &args);
    struct rueda_ticket *ticket = fake_arrived(ctx);
    size_t rows[3] = {0};

    assert_int_equal(rueda_wait_for(ctx, handle, 0, &result),
                     RUEDA_ERR_TIMEOUT);
    assert_null(result.data);
    ticket->data = fake_room;
    ticket->rows = 9;
    ticket->rows_from = malloc(3 * sizeof(size_t));
    ticket->op.has_own = true;
    for (int i = 0; i < 3; i++)
        ticket->rows_from[i] = (size_t)i + 2;
    fake_deliver(ticket, RUEDA_OK);
    result.rows_from = rows;
    result.rows_from_count = 3;
    assert_int_equal(rueda_poll(ctx, handle), RUEDA_OK);
    assert_int_equal(rueda_wait_for(ctx, handle, 0, &result), RUEDA_OK);
    assert_ptr_equal(result.data, fake_room);
    assert_int_equal(result.rows, 9);
    assert_int_equal(result.rows_from_count, 3);
    assert_int_equal(rows[2], 4);
    assert_int_equal(result.last_rank, -1);
    assert_int_equal(rueda_wait_for(ctx, handle, 0, &result),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "names no operation"));
}

static void without_room_only_the_number_of_rows_is_told(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLTOALL, "x");
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_ctx *ctx = *state;
    rueda_handle handle = fake_submit(ctx, &args);
    struct rueda_ticket *ticket = fake_arrived(ctx);
    size_t rows[2] = {77, 77};

    ticket->rows_from = calloc(3, sizeof(size_t));
    ticket->op.has_own = true;
    fake_deliver(ticket, RUEDA_OK);
    result.rows_from = rows;
    result.rows_from_count = 2;
    assert_int_equal(rueda_wait_for(ctx, handle, 0, &result), RUEDA_OK);
    assert_int_equal(result.rows_from_count, 3);
    assert_int_equal(rows[0], 77);
}

static void a_failure_tells_why(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, "x");
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_ctx *ctx = *state;
    rueda_handle handle = fake_submit(ctx, &args);
    struct rueda_ticket *ticket = fake_arrived(ctx);
    char words[8];

    ticket->error = strdup("ranks differ");
    ticket->op.has_own = true;
    ticket->data = fake_room;
    fake_deliver(ticket, RUEDA_ERR_MISMATCH);
    result.error = words;
    result.error_bytes = sizeof(words);
    assert_int_equal(rueda_wait_for(ctx, handle, 0, &result),
                     RUEDA_ERR_MISMATCH);
    assert_string_equal(words, "ranks d");
    assert_null(result.data);
    assert_string_equal(rueda_last_error(), "ranks differ");

    handle = fake_submit(ctx, &args);
    fake_deliver(fake_arrived(ctx), RUEDA_ERR_TIMEOUT);
    assert_int_equal(rueda_wait(ctx, handle, 0), RUEDA_ERR_TIMEOUT);
    assert_string_equal(rueda_last_error(),
                        rueda_status_str(RUEDA_ERR_TIMEOUT));
    result.struct_size = 8;
    assert_int_equal(rueda_wait_for(ctx, 1, 0, &result), RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "RUEDA_RESULT_INIT"));
}

/* ---- Callbacks -------------------------------------------------------- */

struct after {
    rueda_ctx *ctx;
    rueda_handle handle;
    rueda_status status;
    rueda_status end; /* of the handle */
    int times;
};

/* Submits the next and ends its handle. */
static void go_on(void *arg, rueda_status status)
{
    struct after *after = arg;
    rueda_handle next = after->handle;
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, "x");

    after->times++;
    after->status = status;
    if (after->times == 1)
        rueda_submit(after->ctx, &args, &next); /* the name is free */
    after->end = rueda_wait(after->ctx, after->handle, 0);
    after->handle = next;
}

static void a_callback_may_end_its_handle_and_submit(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, "x");
    rueda_ctx *ctx = *state;
    struct after after = {.ctx = ctx, .handle = fake_submit(ctx, &args)};
    rueda_handle first = after.handle;

    assert_int_equal(rueda_handle_then(ctx, first, go_on, &after), RUEDA_OK);
    assert_int_equal(rueda_handle_then(ctx, first, go_on, &after),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "a callback already"));
    fake_deliver(fake_arrived(ctx), RUEDA_OK);
    assert_int_equal(after.times, 1);
    assert_int_equal(after.end, RUEDA_OK);
    assert_int_equal(rueda_poll(ctx, first), RUEDA_ERR_INVALID);

    fake_deliver(fake_arrived(ctx), RUEDA_ERR_MISMATCH);
    assert_int_equal(after.times, 1);
    assert_int_equal(rueda_handle_then(ctx, after.handle, go_on, &after),
                     RUEDA_OK);
    assert_int_equal(after.times, 2);
    assert_int_equal(after.status, RUEDA_ERR_MISMATCH);
    assert_int_equal(after.end, RUEDA_ERR_MISMATCH);
    assert_int_equal(rueda_handle_then(ctx, first, go_on, &after),
                     RUEDA_ERR_INVALID);
    assert_int_equal(rueda_handle_then(ctx, first, NULL, NULL),
                     RUEDA_ERR_INVALID);
}

/* Tries to wait, in every way there is. */
static void wait_for_others(void *arg, rueda_status status)
{
    struct after *after = arg;
    rueda_ctx *ctx = after->ctx;
    struct rueda_result result = RUEDA_RESULT_INIT;
    static const int ranks[] = {0, 1};
    int set = 77;
    const rueda_status ends[] = {
        rueda_wait(ctx, after->handle, -1),
        rueda_wait_for(ctx, after->handle, 0, &result),
        rueda_barrier(ctx),
        rueda_set_create(ctx, ranks, 2, &set),
        rueda_set_destroy(ctx, 1),
        rueda_timeline_start(ctx, "/dev/null", 0),
        rueda_timeline_stop(ctx),
    };

    (void)status;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        after->times += ends[i] == RUEDA_ERR_INVALID;
    assert_non_null(strstr(rueda_last_error(), "a callback must not wait"));
    assert_int_equal(set, 77);
}

static void a_callback_that_would_wait_is_refused(void **state)
{
    struct rueda_submit_args first = fake_args(RUEDA_ALLREDUCE, "first");
    struct rueda_submit_args other = fake_args(RUEDA_ALLREDUCE, "other");
    rueda_ctx *ctx = *state;
    rueda_handle handle = fake_submit(ctx, &first);
    struct after after = {.ctx = ctx, .handle = fake_submit(ctx, &other)};
    struct rueda_ticket *ticket = fake_arrived(ctx);

    assert_int_equal(rueda_handle_then(ctx, handle, wait_for_others, &after),
                     RUEDA_OK);
    fake_deliver(ticket, RUEDA_OK);
    assert_int_equal(after.times, 7);
    /* Only the other has arrived, and it can be waited for from here. */
    ticket = fake_arrived(ctx);
    assert_int_equal(ticket->op.handle, after.handle);
    assert_null(fake_arrived(ctx));
    fake_deliver(ticket, RUEDA_OK);
    assert_int_equal(rueda_wait(ctx, after.handle, -1), RUEDA_OK);

    /* Also if it is called at once. */
    after = (struct after){.ctx = ctx, .handle = fake_submit(ctx, &other)};
    handle = fake_submit(ctx, &first);
    ticket = fake_arrived(ctx);
    fake_deliver(fake_arrived(ctx), RUEDA_OK);
    assert_int_equal(rueda_handle_then(ctx, handle, wait_for_others, &after),
                     RUEDA_OK);
    assert_int_equal(after.times, 7);
    fake_deliver(ticket, RUEDA_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(a_result_tells_what_came_out),
        OPEN(without_room_only_the_number_of_rows_is_told),
        OPEN(a_failure_tells_why),
        OPEN(a_callback_may_end_its_handle_and_submit),
        OPEN(a_callback_that_would_wait_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
