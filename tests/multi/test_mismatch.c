/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that do not ask for the same: each gets an error at once that names the
 * tensor, two ranks and what they said, and then all goes on.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/test_rank.h"

#define COUNT 12
#define MOST  3 /* of a group */

static const size_t shape_12[] = {12};

static float bufs[MOST][2 * COUNT];
static float results[MOST][16 * COUNT];

/* The i-th of what is in flight. */
static struct rueda_submit_args args_of(rueda_kind kind, const char *name,
                                        int i)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = kind;
    args.name = name;
    args.send = bufs[i];
    args.recv = results[i];
    args.dims = 1;
    args.shape = shape_12;
    return args;
}

/* It fails soon, with all of these words; NULL ends them. */
static int fails(struct test_rank *me, rueda_handle handle,
                 const char *const *words)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    char error[1024] = "";

    result.error = error;
    result.error_bytes = sizeof(error);
    if (rank_expect(me, rueda_wait_for(me->ctx, handle, 15000, &result),
                    RUEDA_ERR_MISMATCH, "what differs") != 0)
        return 1;
    for (; *words != NULL; words++)
        if (strstr(error, *words) == NULL)
            return rank_says(me, "no \"%s\" in \"%s\"", *words, error);
    return 0;
}

static int still_works(struct test_rank *me, const char *name)
{
    struct rueda_submit_args args = args_of(RUEDA_ALLREDUCE, name, 0);
    rueda_handle handle;

    args.reduction = RUEDA_SUM;
    for (int i = 0; i < COUNT; i++)
        bufs[0][i] = (float)(me->rank + i);
    if (rank_expect(me, rueda_submit(me->ctx, &args, &handle), RUEDA_OK,
                    "submit after that") != 0 ||
        rank_expect(me, rueda_wait(me->ctx, handle, 10000), RUEDA_OK,
                    "wait after that") != 0)
        return 1;
    for (int i = 0; i < COUNT; i++) {
        const int sum = me->size * i + me->size * (me->size - 1) / 2;

        if (results[0][i] != (float)sum)
            return rank_says(me, "%f is not %d", (double)results[0][i], sum);
    }
    return 0;
}

/* ---- Groups -------------------------------------------------------------- */

/* Names of one letter; on one rank, and on the others. */
struct groups {
    const char *odd;
    const char *others;
};

static int submit_letters(struct test_rank *me, const char *letters,
                          rueda_handle *handles)
{
    struct rueda_submit_args args[MOST];
    const int count = (int)strlen(letters);
    char names[MOST][2] = {""};

    for (int i = 0; i < count; i++) {
        names[i][0] = letters[i];
        args[i] = args_of(RUEDA_ALLREDUCE, names[i], i);
    }
    return rank_expect(me, rueda_submit_group(me->ctx, args, count, handles),
                       RUEDA_OK, "a group");
}

static int differ_in_groups(struct test_rank *me)
{
    static const char *const first[] = {
        "Mismatched groups: One rank (", "but another rank (",
        "sent it in group ", "tensor \"a\"", NULL};
    static const char *const others[] = {
        "another tensor of its group failed: Mismatched groups: One rank (",
        "tensor \"a\"", NULL};
    const struct groups *groups = me->arg;

    for (int odd = 0; odd < me->size; odd++) {
        const char *letters = me->rank == odd ? groups->odd : groups->others;
        const int count = (int)strlen(letters);
        rueda_handle handles[MOST];

        if (submit_letters(me, letters, handles) != 0)
            return 1;
        for (int i = 0; i < count; i++)
            if (fails(me, handles[i], letters[i] == 'a' ? first : others) != 0)
                return 1;
        /* So that no rank is ahead with names that others still have. */
        if (rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0 ||
            submit_letters(me, "cab", handles) != 0)
            return 1;
        for (int i = 0; i < 3; i++)
            if (rank_expect(me, rueda_wait(me->ctx, handles[i], 10000),
                            RUEDA_OK, "a group of all") != 0)
                return 1;
    }
    return still_works(me, "a");
}

static void groups_of_other_members_fail_at_once(void **state)
{
    static struct groups all[] = {
        {"ac", "ab"}, {"ca", "ab"}, {"abc", "ab"}, {"a", "ab"}, {"ab", "abc"}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        rank_run(*state, 3, differ_in_groups, &all[i]);
}

/* Take turns for a while, as this is not ready meanwhile. */
static int linger(struct test_rank *me, rueda_handle handle)
{
    const int64_t until = rank_now_ms() + 30;

    while (rank_now_ms() < until)
        if (rank_expect(me, rueda_poll(me->ctx, handle), RUEDA_IN_PROGRESS,
                        "what others do not have yet") != 0)
            return 1;
    return 0;
}

static int submit_one(struct test_rank *me, const char *name, int i,
                      rueda_handle *handle)
{
    struct rueda_submit_args args = args_of(RUEDA_ALLREDUCE, name, i);

    return rank_expect(me, rueda_submit(me->ctx, &args, handle), RUEDA_OK,
                       name);
}

/* One rank has one by one, with something to do between, what others have in a
 * group. */
static int differ_in_being_one(struct test_rank *me)
{
    static const char *const words[] = {"Mismatched groups: One rank (", NULL};

    for (int odd = 0; odd < me->size; odd++) {
        rueda_handle handles[MOST];

        if (me->rank == odd) {
            if (submit_one(me, "a", 0, &handles[0]) != 0 ||
                submit_one(me, "z", 2, &handles[2]) != 0 ||
                linger(me, handles[2]) != 0 ||
                submit_one(me, "b", 1, &handles[1]) != 0)
                return 1;
        } else if (submit_letters(me, "ab", handles) != 0) {
            return 1;
        }
        if (fails(me, handles[0], words) != 0 ||
            fails(me, handles[1], words) != 0 ||
            (me->rank != odd && submit_one(me, "z", 2, &handles[2]) != 0) ||
            rank_expect(me, rueda_wait(me->ctx, handles[2], 10000), RUEDA_OK,
                        "z") != 0)
            return 1;
    }
    return still_works(me, "a");
}

static void groups_are_not_given_one_by_one(void **state)
{
    rank_run(*state, 3, differ_in_being_one, NULL);
}

/* The order in which they are given makes no other group. */
static int differ_in_order(struct test_rank *me)
{
    rueda_handle handles[MOST];

    if (submit_letters(me, me->rank == 1 ? "bca" : "abc", handles) != 0)
        return 1;
    for (int i = 0; i < 3; i++)
        if (rank_expect(me, rueda_wait(me->ctx, handles[i], 10000), RUEDA_OK,
                        "in another order") != 0)
            return 1;
    return 0;
}

static void groups_may_be_given_in_any_order(void **state)
{
    rank_run(*state, 3, differ_in_order, NULL);
}

/* One rank has one more than the others: they fail with it when they come to
 * it, and are in step then. */
static int differ_without_names(struct test_rank *me)
{
    static const char *const words[] = {"Mismatched groups", NULL};
    const int count = me->rank == 1 ? 3 : 2;
    struct rueda_submit_args args[MOST];
    rueda_handle handles[MOST];

    for (int i = 0; i < count; i++)
        args[i] = args_of(RUEDA_ALLREDUCE, NULL, i);
    if (rank_expect(me, rueda_submit_group(me->ctx, args, count, handles),
                    RUEDA_OK, "a group") != 0)
        return 1;
    for (int i = 0; i < count; i++)
        if (fails(me, handles[i], words) != 0)
            return 1;
    if (me->rank != 1 && (rank_expect(me, rueda_submit(me->ctx, args, handles),
                                      RUEDA_OK, "one more") != 0 ||
                          fails(me, handles[0], words) != 0))
        return 1;
    return still_works(me, NULL);
}

static void groups_without_names_fail_and_get_in_step(void **state)
{
    rank_run(*state, 3, differ_without_names, NULL);
}

/* ---- One by one ---------------------------------------------------------- */

static const size_t shape_4_3[] = {4, 3};
static const size_t shape_3_4[] = {3, 4};
static const size_t shape_2_3_2[] = {2, 3, 2};

/* What the last rank says otherwise; and the words of all. */
struct difference {
    rueda_kind kind;
    void (*change)(struct rueda_submit_args *args);
    const char *words;   /* before what one says */
    const char *one;     /* of the others */
    const char *another; /* of the last */
};

static void set_dtype(struct rueda_submit_args *args)
{
    args->dtype = RUEDA_FLOAT64;
}

static void set_kind(struct rueda_submit_args *args)
{
    args->kind = RUEDA_REDUCE_SCATTER;
    args->compression = RUEDA_COMPRESS_NONE; /* which it does not know */
}

static void set_shape(struct rueda_submit_args *args)
{
    args->shape = shape_3_4;
}

static void set_dims(struct rueda_submit_args *args)
{
    args->dims = 3;
    args->shape = shape_2_3_2;
}

static void set_scale(struct rueda_submit_args *args)
{
    args->prescale = 0.5;
}

static void set_reduction(struct rueda_submit_args *args)
{
    args->reduction = RUEDA_AVERAGE;
}

static void set_root(struct rueda_submit_args *args)
{
    args->root = 1;
}

static void set_compression(struct rueda_submit_args *args)
{
    args->compression = RUEDA_COMPRESS_FP16;
}

static void set_live_average(struct rueda_submit_args *args)
{
    args->flags = RUEDA_LIVE_AVERAGE;
}

/* In the order of the checks. That of devices needs one: test_cuda.c. */
static const struct difference differences[] = {
    {RUEDA_ALLREDUCE, set_dtype, "Mismatched data types:", "had type float32",
     "had type float64"},
    {RUEDA_ALLREDUCE, set_kind, "Mismatched operations:", "did an ALLREDUCE",
     "did an REDUCESCATTER"},
    {RUEDA_ALLREDUCE, set_shape, "Mismatched ALLREDUCE tensor shapes:",
     "sent a tensor of shape [4, 3]", "sent a tensor of shape [3, 4]"},
    {RUEDA_ALLREDUCE, set_scale,
     "Mismatched prescale and/or postscale factors:", "sent factors (1, 1)",
     "sent factors (0.5, 1)"},
    {RUEDA_ALLREDUCE, set_reduction, "Mismatched reduction operation:",
     "sent reduction op sum", "sent reduction op average"},
    {RUEDA_ALLREDUCE, set_compression, "Mismatched compression:",
     "asked for compression none", "asked for compression fp16"},
    {RUEDA_ALLREDUCE, set_live_average, "Mismatched averages:",
     "does not average by the ranks", "averages by the ranks"},
    {RUEDA_REDUCE_SCATTER, set_shape, "Mismatched REDUCESCATTER tensor shapes:",
     "sent a tensor of shape [4, 3]", "sent a tensor of shape [3, 4]"},
    {RUEDA_REDUCE_SCATTER, set_reduction, "Mismatched reduction operation:",
     "sent reduction op sum", "sent reduction op average"},
    {RUEDA_BROADCAST, set_root, "Mismatched BROADCAST root ranks:",
     "specified root rank 0", "specified root rank 1"},
    {RUEDA_ALLGATHER, set_dims, "Mismatched ALLGATHER tensor shapes:",
     "sent a tensor of rank 2", "sent a tensor of rank 3"},
    {RUEDA_ALLGATHER, set_shape, "Mismatched ALLGATHER tensor shapes:",
     "sent a tensor with dimension 1 equal to 3",
     "sent a tensor with dimension 1 equal to 4"},
    {RUEDA_ALLTOALL, set_dims, "Mismatched ALLTOALL tensor shapes:",
     "sent a tensor of rank 2", "sent a tensor of rank 3"},
    {RUEDA_ALLTOALL, set_shape, "Mismatched ALLTOALL tensor shapes:",
     "sent a tensor with dimension 1 equal to 3",
     "sent a tensor with dimension 1 equal to 4"},
};
#define DIFFERENCES ((int)(sizeof(differences) / sizeof(differences[0])))

static struct rueda_submit_args plain_args(rueda_kind kind)
{
    static const size_t splits[8];
    struct rueda_submit_args args = args_of(kind, "odd", 0);

    args.dims = 2;
    args.shape = shape_4_3;
    args.splits = splits;
    args.root = 0;
    args.reduction = RUEDA_SUM;
    return args;
}

/* All of them fail as this check says, and name who is who. */
static int fails_by(struct test_rank *me, const struct rueda_submit_args *args,
                    const struct difference *odd)
{
    char last[40];
    const char *words[] = {odd->words,   odd->one,         odd->another, last,
                           "One rank (", "tensor \"odd\"", NULL};
    rueda_handle handle;

    snprintf(last, sizeof(last), "rank (%d) %.8s", me->size - 1, odd->another);
    return rank_expect(me, rueda_submit(me->ctx, args, &handle), RUEDA_OK,
                       odd->words) ||
           fails(me, handle, words) || still_works(me, "odd");
}

static int differ_one_by_one(struct test_rank *me)
{
    for (int i = 0; i < DIFFERENCES; i++) {
        struct rueda_submit_args args = plain_args(differences[i].kind);

        if (me->rank == me->size - 1)
            differences[i].change(&args);
        if (fails_by(me, &args, &differences[i]) != 0)
            return 1;
    }
    return 0;
}

static void whatever_differs_is_told_to_all(void **state)
{
    rank_run(*state, 3, differ_one_by_one, NULL);
}

/* In that and in all that is checked after it. */
static int differ_in_all_that_follows(struct test_rank *me)
{
    int count = 0;

    while (differences[count].kind == RUEDA_ALLREDUCE)
        count++;
    for (int i = 0; i < count; i++) {
        struct rueda_submit_args args = plain_args(RUEDA_ALLREDUCE);

        for (int k = count - 1; k >= i && me->rank == me->size - 1; k--)
            differences[k].change(&args);
        if (fails_by(me, &args, &differences[i]) != 0)
            return 1;
    }
    return 0;
}

static void the_first_check_that_fails_is_told(void **state)
{
    rank_run(*state, 3, differ_in_all_that_follows, NULL);
}

static int differ_by_a_group(struct test_rank *me)
{
    static const char *const words[] = {"Mismatched groups: One rank (",
                                        "sent it by itself",
                                        "sent it in group ",
                                        "of 1 tensors",
                                        "tensor \"odd\"",
                                        NULL};
    struct rueda_submit_args args = plain_args(RUEDA_ALLREDUCE);
    rueda_handle handle;
    rueda_status status = me->rank == 1
                              ? rueda_submit_group(me->ctx, &args, 1, &handle)
                              : rueda_submit(me->ctx, &args, &handle);

    return rank_expect(me, status, RUEDA_OK, "submit") ||
           fails(me, handle, words) || still_works(me, "odd");
}

static void one_of_a_group_is_not_one_by_itself(void **state)
{
    rank_run(*state, 3, differ_by_a_group, NULL);
}

/* Equal to nothing, not even to itself, but the same on all ranks. */
static int scale_by_nothing(struct test_rank *me)
{
    struct rueda_submit_args args = plain_args(RUEDA_ALLREDUCE);
    rueda_handle handle;

    args.prescale = NAN;
    return rank_expect(me, rueda_submit(me->ctx, &args, &handle), RUEDA_OK,
                       "submit") ||
           rank_expect(me, rueda_wait(me->ctx, handle, 10000), RUEDA_OK,
                       "a factor that is no number") ||
           (!isnan(results[0][0]) &&
            rank_says(me, "it is %f", (double)results[0][0]));
}

static void a_factor_that_is_no_number_is_no_difference(void **state)
{
    rank_run(*state, 3, scale_by_nothing, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(groups_of_other_members_fail_at_once),
        RANK_IN_PROCESSES(groups_are_not_given_one_by_one),
        RANK_IN_PROCESSES(groups_may_be_given_in_any_order),
        RANK_IN_PROCESSES(groups_without_names_fail_and_get_in_step),
        RANK_IN_PROCESSES(whatever_differs_is_told_to_all),
        RANK_IN_PROCESSES(the_first_check_that_fails_is_told),
        RANK_IN_PROCESSES(one_of_a_group_is_not_one_by_itself),
        RANK_IN_PROCESSES(a_factor_that_is_no_number_is_no_difference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
