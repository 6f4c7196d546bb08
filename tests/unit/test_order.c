/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane follows its order source, whatever that is: here one that decides
 * nothing before it was given so many operations, and then runs them one by
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
struct scene {
    rueda_ctx *ctx;
    struct rueda_lane *lane;
    struct reverse reverse;
    struct rueda_named named[COUNT];
    float in[COUNT];
    float out[COUNT];
};

static int scene_open(void **state)
{
    struct scene *scene =
        aligned_alloc(_Alignof(struct scene), sizeof(struct scene));
    struct rueda_text error = {{0}};
    struct rueda_lanes *lanes;

    assert_non_null(scene);
    memset(scene, 0, sizeof(*scene));
    assert_int_equal(rueda_init_threads(1, NULL, &scene->ctx), RUEDA_OK);
    lanes = &scene->ctx->engine.lanes;
    assert_int_equal(rueda_lane_new(lanes,
                                    rueda_sets_find(lanes, RUEDA_SET_GLOBAL),
                                    &scene->lane, &error),
                     RUEDA_OK);
    assert_string_equal(scene->lane->order.ops->name, "log");
    scene->lane->order = (struct rueda_order){&reverse_ops, &scene->reverse};
    *state = scene;
    return 0;
}

static int scene_close(void **state)
{
    struct scene *scene = *state;

    rueda_lane_free(scene->lane);
    rueda_shutdown(scene->ctx);
    free(scene);
    return 0;
}

static void submit(struct scene *scene, int i)
{
    struct rueda_named *named = &scene->named[i];

    rueda_named_init(named, RUEDA_ALLREDUCE);
    named->op.is_named = true;
    snprintf(named->short_name, sizeof(named->short_name), "tensor %d", i);
    named->request.name = named->short_name;
    named->request.dtype = RUEDA_FLOAT32;
    named->request.dims = 1;
    named->request.shape[0] = 1;
    named->member_count = 1;
    named->send = &scene->in[i];
    named->recv = &scene->out[i];
    scene->in[i] = (float)(i + 1);
    rueda_lane_submit(scene->lane, named);
}

static void take_turns(struct scene *scene)
{
    struct rueda_text error = {{0}};

    for (int i = 0; i < 10 * COUNT; i++)
        assert_true(rueda_lane_turn(scene->lane, &error) >= 0);
}

static void a_lane_runs_in_the_order_of_its_source(void **state)
{
    struct scene *scene = *state;
    struct rueda_lanes *lanes = &scene->ctx->engine.lanes;

    for (int i = 0; i < COUNT - 1; i++)
        submit(scene, i);
    take_turns(scene);
    assert_null(rueda_lanes_pop_ended(lanes));
    assert_true(scene->reverse.turns > 0);

    submit(scene, COUNT - 1);
    take_turns(scene);
    for (int i = COUNT - 1; i >= 0; i--) {
        assert_ptr_equal(rueda_lanes_pop_ended(lanes), &scene->named[i]);
        assert_int_equal(scene->named[i].op.outcome, RUEDA_OK);
        assert_true(scene->out[i] == scene->in[i]);
    }
    assert_null(rueda_lanes_pop_ended(lanes));
    assert_int_equal(scene->reverse.left, 0);
    assert_int_equal(scene->lane->ended, COUNT);
}

static void what_a_source_refuses_ends_at_once(void **state)
{
    struct scene *scene = *state;
    struct rueda_lanes *lanes = &scene->ctx->engine.lanes;

    scene->reverse.given = COUNT;
    submit(scene, 0);
    assert_ptr_equal(rueda_lanes_pop_ended(lanes), &scene->named[0]);
    assert_int_equal(scene->named[0].op.outcome, RUEDA_ERR_NOMEM);
    assert_int_equal(scene->lane->count, 0);
}

static void a_lane_that_closes_ends_its_source(void **state)
{
    struct scene *scene = *state;
    struct rueda_lanes *lanes = &scene->ctx->engine.lanes;

    submit(scene, 0);
    submit(scene, 1);
    assert_false(rueda_lane_is_over(scene->lane));
    rueda_lane_close(scene->lane);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(rueda_lanes_pop_ended(lanes), &scene->named[i]);
        assert_int_equal(scene->named[i].op.outcome, RUEDA_ERR_CANCELLED);
    }
    assert_true(scene->reverse.is_ended);
    assert_true(rueda_lane_is_over(scene->lane));
}

#define SCENE(test)                                                            \
    cmocka_unit_test_setup_teardown(test, scene_open, scene_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(a_lane_runs_in_the_order_of_its_source),
        SCENE(what_a_source_refuses_ends_at_once),
        SCENE(a_lane_that_closes_ends_its_source),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
