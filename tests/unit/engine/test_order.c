/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane follows its order source, whatever that is: here one that decides
 * nothing before it was given this many operations, and then runs them one by
 * one, the last first.
 */
#include <string.h>

#include "api/ctx.h"
#include "engine/lanes.h"
#include "engine/sets.h"
#include "unit/unit.h"

#define COUNT 5

struct reverse {
    void *mine[COUNT];
    const struct rueda_request *requests[COUNT];
    int given;
    int left; /* to be decided, once all are given */
    int turns;
    bool is_ended;
    struct rueda_decision decision;
    struct rueda_decision_item item;
};

static rueda_status
reverse_submit(void *arg, const struct rueda_request *request, void *mine)
{
    struct reverse *self = arg;

    if (self->given == COUNT)
        return RUEDA_ERR_NOMEM;
    self->requests[self->given] = request;
    self->mine[self->given++] = mine;
    self->left = self->given;
    return RUEDA_OK;
}

static rueda_status reverse_turn(void *arg, struct rueda_text *error)
{
    struct reverse *self = arg;

    (void)error;
    self->turns++;
    return RUEDA_IN_PROGRESS;
}

static const struct rueda_decision *reverse_next(void *arg)
{
    struct reverse *self = arg;
    const int at = self->left - 1;

    if (self->given < COUNT || at < 0)
        return NULL;
    self->item =
        (struct rueda_decision_item){self->mine[at], self->requests[at]};
    self->decision = (struct rueda_decision){
        .kind = RUEDA_DECIDED_RUN,
        .index = (uint64_t)(COUNT - self->left),
        .live = 1,
        .count = 1,
        .items = &self->item,
    };
    return &self->decision;
}

static void reverse_done(void *arg)
{
    struct reverse *self = arg;

    assert_true(self->left > 0);
    self->left--;
}

static uint64_t reverse_latest(const void *arg)
{
    (void)arg;
    return COUNT - 1;
}

static void reverse_end(void *arg)
{
    struct reverse *self = arg;

    self->is_ended = true;
    self->left = 0;
}

static bool reverse_is_over(const void *arg)
{
    const struct reverse *self = arg;

    return self->is_ended;
}

static bool reverse_is_sending(const void *arg)
{
    (void)arg;
    return false;
}

static int64_t reverse_due_ns(const void *arg)
{
    (void)arg;
    return INT64_MAX;
}

static const struct rueda_order_ops reverse_ops = {
    .name = "reverse",
    .submit = reverse_submit,
    .turn = reverse_turn,
    .next = reverse_next,
    .done = reverse_done,
    .latest = reverse_latest,
    .end = reverse_end,
    .is_over = reverse_is_over,
    .is_sending = reverse_is_sending,
    .due_ns = reverse_due_ns,
};

/* A lane of a job of one rank, which no thread but the test's drives. */
struct fixture {
    rueda_ctx *ctx;
    struct rueda_lane *lane;
    struct reverse reverse;
    struct rueda_ticket ticket[COUNT];
    float in[COUNT];
    float out[COUNT];
};

static int fixture_open(void **state)
{
    struct fixture *fixture =
        aligned_alloc(_Alignof(struct fixture), sizeof(struct fixture));
    struct rueda_text error = {{0}};
    struct rueda_lanes *lanes;

    assert_non_null(fixture);
    memset(fixture, 0, sizeof(*fixture));
    assert_int_equal(rueda_init_threads(1, NULL, &fixture->ctx), RUEDA_OK);
    lanes = &fixture->ctx->engine.lanes;
    assert_int_equal(rueda_lane_new(lanes, lanes->formation,
                                    rueda_sets_find(lanes, RUEDA_SET_GLOBAL),
                                    false, &fixture->lane, &error),
                     RUEDA_OK);
    assert_string_equal(fixture->lane->order.ops->name, "log");
    fixture->lane->order =
        (struct rueda_order){&reverse_ops, &fixture->reverse};
    *state = fixture;
    return 0;
}

static int fixture_close(void **state)
{
    struct fixture *fixture = *state;

    rueda_lane_free(fixture->lane);
    rueda_shutdown(fixture->ctx);
    free(fixture);
    return 0;
}

static void submit(struct fixture *fixture, int i)
{
    struct rueda_ticket *ticket = &fixture->ticket[i];

    rueda_ticket_init(ticket, RUEDA_ALLREDUCE);
    snprintf(ticket->short_name, sizeof(ticket->short_name), "tensor %d", i);
    ticket->request.name = ticket->short_name;
    ticket->request.dtype = RUEDA_FLOAT32;
    ticket->request.dims = 1;
    ticket->request.shape[0] = 1;
    ticket->member_count = 1;
    ticket->send = &fixture->in[i];
    ticket->recv = &fixture->out[i];
    fixture->in[i] = (float)(i + 1);
    assert_int_equal(rueda_lane_submit(fixture->lane, ticket), RUEDA_OK);
}

static void take_turns(struct fixture *fixture)
{
    struct rueda_text error = {{0}};

    for (int i = 0; i < 10 * COUNT; i++)
        assert_true(rueda_lane_turn(fixture->lane, &error) >= 0);
}

static void a_lane_runs_in_the_order_of_its_source(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_lanes *lanes = &fixture->ctx->engine.lanes;

    for (int i = 0; i < COUNT - 1; i++)
        submit(fixture, i);
    take_turns(fixture);
    assert_null(rueda_lanes_pop_ended(lanes));
    assert_true(fixture->reverse.turns > 0);

    submit(fixture, COUNT - 1);
    take_turns(fixture);
    for (int i = COUNT - 1; i >= 0; i--) {
        assert_ptr_equal(rueda_lanes_pop_ended(lanes), &fixture->ticket[i]);
        assert_int_equal(fixture->ticket[i].op.outcome, RUEDA_OK);
        assert_true(fixture->out[i] == fixture->in[i]);
    }
    assert_null(rueda_lanes_pop_ended(lanes));
    assert_int_equal(fixture->reverse.left, 0);
    assert_int_equal(fixture->lane->ended, COUNT);
}

static void what_a_source_refuses_ends_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_lanes *lanes = &fixture->ctx->engine.lanes;

    fixture->reverse.given = COUNT;
    submit(fixture, 0);
    assert_ptr_equal(rueda_lanes_pop_ended(lanes), &fixture->ticket[0]);
    assert_int_equal(fixture->ticket[0].op.outcome, RUEDA_ERR_NOMEM);
    assert_int_equal(fixture->lane->count, 0);
}

static void a_lane_that_closes_ends_its_source(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_lanes *lanes = &fixture->ctx->engine.lanes;

    submit(fixture, 0);
    submit(fixture, 1);
    assert_false(rueda_lane_is_over(fixture->lane));
    rueda_lane_close(fixture->lane);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(rueda_lanes_pop_ended(lanes), &fixture->ticket[i]);
        assert_int_equal(fixture->ticket[i].op.outcome, RUEDA_ERR_CANCELLED);
    }
    assert_true(fixture->reverse.is_ended);
    assert_true(rueda_lane_is_over(fixture->lane));
}

#define SCENE(test)                                                            \
    cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(a_lane_runs_in_the_order_of_its_source),
        SCENE(what_a_source_refuses_ends_at_once),
        SCENE(a_lane_that_closes_ends_its_source),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
