/* SPDX-License-Identifier: Apache-2.0 */
/* Every dtype, reduction, scale and algorithm. */
#include <stdio.h>

#include "algo/algo.h"
#include "support/coll_check.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Numbers ----------------------------------------------------------- */

static bool is_float(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT16 || dtype == RUEDA_BFLOAT16 ||
           dtype == RUEDA_FLOAT32 || dtype == RUEDA_FLOAT64;
}

static int check_numbers(struct test_rank *me, struct coll_what what)
{
    static const size_t counts[] = {5, 3001, 40001};

    return coll_check_counts(me, &what, counts,
                             what.kind == RUEDA_ALLREDUCE ? LENGTH(counts) : 2);
}

static int all_numbers(struct test_rank *me)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_REDUCE_SCATTER};

    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (int reduction = 0; reduction < RUEDA_REDUCTION_COUNT; reduction++)
            for (size_t i = 0; i < LENGTH(kinds); i++) {
                struct coll_what what = {
                    .kind = kinds[i],
                    .dtype = (rueda_dtype)dtype,
                    .reduction = (rueda_reduction)reduction,
                };

                if (reduction == RUEDA_ADASUM &&
                    (!is_float(what.dtype) || what.kind != RUEDA_ALLREDUCE))
                    continue;
                if (check_numbers(me, what) != 0)
                    return 1;
            }
    return 0;
}

/* Averages are exact on powers of two. */
static void every_dtype_can_be_reduced_in_every_way(void **state)
{
    rank_run(*state, 1, all_numbers, NULL);
    rank_run(*state, 2, all_numbers, NULL);
    rank_run(*state, 4, all_numbers, NULL);
}

static int scaled(struct test_rank *me)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_REDUCE_SCATTER};

    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < LENGTH(kinds); i++) {
            const struct coll_what what = {
                .kind = kinds[i],
                .dtype = (rueda_dtype)dtype,
                .prescale = 2,
                .postscale = 0.25,
            };

            if (check_numbers(me, what) != 0)
                return 1;
        }
    return 0;
}

static void scales_are_applied_before_and_after(void **state)
{
    rank_run(*state, 3, scaled, NULL);
    rank_run(*state, 4, scaled, NULL);
}

/* ---- Algorithms -------------------------------------------------------- */

static int each_kind(struct test_rank *me)
{
    static const size_t counts[] = {0, 1, 100, 5001, 70001};
    const rueda_kind *kind = me->arg;
    const struct coll_what what = {
        .kind = *kind, .dtype = RUEDA_FLOAT32, .root = me->size - 1};

    return coll_check_counts(me, &what, counts, LENGTH(counts));
}

static void every_algorithm_is_right_when_it_is_asked_for(void **state)
{
    const struct rank_setup *setup = *state;

    for (int kind = 0; kind < RUEDA_BARRIER; kind++)
        for (int i = 0; rueda_algos[i] != NULL; i++) {
            rueda_kind one = (rueda_kind)kind;
            char text[64];

            if ((rueda_algos[i]->kinds >> kind & 1u) == 0 ||
                rueda_algos[i]->does_adasum)
                continue;
            snprintf(text, sizeof(text), "%s:%s", rueda_kind_str(one),
                     rueda_algos[i]->name);
            setenv("RUEDA_ALGO", text, 1);
            rank_run(setup, 3, each_kind, &one);
            rank_run(setup, 4, each_kind, &one);
            unsetenv("RUEDA_ALGO");
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(every_dtype_can_be_reduced_in_every_way),
        RANK_EVERYWHERE(scales_are_applied_before_and_after),
        RANK_EVERYWHERE(every_algorithm_is_right_when_it_is_asked_for),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
