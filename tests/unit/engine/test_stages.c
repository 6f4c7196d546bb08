/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of a batch on a device whose calls are in progress for a while
 * (support/far.h): tensors of each kind are packed, run and unpacked together,
 * by ranks that are threads. What a call does is done only when it is polled
 * for, so a stage that went on too soon would deliver wrong numbers.
 */
#include "api/ctx.h"
#include "engine/lane.h"
#include "support/far.h"
#include "support/named_op.h"
#include "unit/unit.h"

enum {
    RANKS = 3,
    TENSORS = 7
};

struct what {
    rueda_kind kind;
    rueda_reduction reduction;
    size_t rows;
};

/* Before the first named operation opens the lane. Threads reach that memory,
 * which is the host's. */
static void use_far_device(struct test_rank *me)
{
    me->ctx->engine.lanes.device = &far_device;
    me->ctx->job->formation->mesh.memory |= FAR_MEMORY;
}

static int run_together(struct test_rank *me)
{
    const struct what *what = me->arg;
    struct named_op *ops = named_ops_new(TENSORS);
    int wrong = 0;

    use_far_device(me);
    for (int i = 0; i < TENSORS; i++) {
        struct named_what one = {
            .kind = what->kind,
            .dtype = RUEDA_FLOAT32,
            .reduction = what->reduction,
            .members = {0, 1, 2},
            .size = RANKS,
            .rows = what->rows + (size_t)i,
            .row = 5,
            .root = 1,
            .salt = (unsigned)i,
            .group = 1,
            .group_count = TENSORS,
        };

        snprintf(one.name, sizeof(one.name), "tensor %d", i);
        named_submit(me, &one, &ops[i]);
    }
    for (int i = 0; i < TENSORS; i++)
        wrong += named_check(me, &ops[i]) != 0;
    free(ops);
    return wrong;
}

static void assert_together(struct what what, int parts_in, int parts_out)
{
    struct far_counts counts;

    far_reset();
    rank_run(&rank_threads, RANKS, run_together, &what);
    counts = far_counts();
    assert_int_equal(counts.most_in, parts_in);
    assert_int_equal(counts.most_out, parts_out);
}

static void allreduces(void **state)
{
    (void)state;
    assert_together((struct what){RUEDA_ALLREDUCE, RUEDA_SUM, 40}, TENSORS,
                    TENSORS);
    assert_together((struct what){RUEDA_ALLREDUCE, RUEDA_MAX, 2000}, TENSORS,
                    TENSORS);
}

static void broadcasts(void **state)
{
    (void)state;
    assert_together((struct what){RUEDA_BROADCAST, RUEDA_SUM, 40}, TENSORS,
                    TENSORS);
}

static void allgathers(void **state)
{
    (void)state;
    assert_together((struct what){RUEDA_ALLGATHER, RUEDA_SUM, 40}, TENSORS,
                    RANKS * TENSORS);
}

static void reduce_scatters(void **state)
{
    (void)state;
    assert_together((struct what){RUEDA_REDUCE_SCATTER, RUEDA_SUM, 40},
                    RANKS * TENSORS, TENSORS);
}

/* Nothing to pack, and yet the task may leave work to the device. */
static void large_broadcasts_run_one_by_one(void **state)
{
    (void)state;
    assert_together((struct what){RUEDA_BROADCAST, RUEDA_SUM, 4000}, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduces),
        cmocka_unit_test(broadcasts),
        cmocka_unit_test(allgathers),
        cmocka_unit_test(reduce_scatters),
        cmocka_unit_test(large_broadcasts_run_one_by_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
