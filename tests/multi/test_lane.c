/* SPDX-License-Identifier: Apache-2.0 */
/* Named operations in the engine: every rank hands them over in an order of its
 * own, and all come out right. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/ctx.h"
#include "support/named_op.h"
#include "support/processes.h"

#define MANY 60

static const rueda_kind kinds[] = {
    RUEDA_ALLREDUCE,      RUEDA_ALLGATHER, RUEDA_BROADCAST, RUEDA_ALLTOALL,
    RUEDA_REDUCE_SCATTER, RUEDA_ALLREDUCE, RUEDA_BARRIER,
};
static const rueda_dtype dtypes[] = {RUEDA_FLOAT32, RUEDA_INT64, RUEDA_UINT8,
                                     RUEDA_FLOAT16, RUEDA_INT32, RUEDA_FLOAT64};

/* The same list on every member of the set. */
static struct named_what nth(int i, int set, const int *members, int size)
{
    static const size_t rows[] = {5, 0, 1, 700, 33, 4001};
    static const size_t row[] = {1, 3, 8, 2, 17};
    unsigned salt = (unsigned)(i * 7 + set);
    struct named_what what = {
        .kind = kinds[i % 7],
        .dtype = dtypes[i % 6],
        .reduction = i % 3 == 0 ? RUEDA_MAX : RUEDA_SUM,
        .set = set,
        .size = size,
        .rows = rows[i % 6],
        .row = row[i % 5],
        .root = members[i % size],
        .salt = salt,
        .in_place = i % 2 == 0,
        .by_alloc = i % 5 == 1,
    };

    snprintf(what.name, sizeof(what.name), "op.%d.%d", set, i);
    memcpy(what.members, members, (size_t)size * sizeof(int));
    return what;
}

static const int all_members[RANK_MOST] = {0, 1, 2, 3, 4, 5, 6, 7};

/* Numbers below count in an order that depends on the seed. */
static void shuffle(int *order, int count, unsigned seed)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int k;
        int other;

        seed = seed * 1664525u + 1013904223u;
        k = (int)(seed >> 8) % (i + 1);
        other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
}

/* ---- In any order ----------------------------------------------------- */

static int in_any_order(struct test_rank *me)
{
    struct named_op *ops = named_ops_new(MANY);
    int failed = 0;
    int order[MANY];

    for (int round = 0; round < 3 && failed == 0; round++) {
        shuffle(order, MANY, (unsigned)(me->rank * 10 + round));
        for (int i = 0; i < MANY; i++) {
            struct named_what what =
                nth(order[i], RUEDA_ALL_RANKS, all_members, me->size);

            named_submit(me, &what, &ops[order[i]]);
        }
        shuffle(order, MANY, (unsigned)(me->rank + 77));
        for (int i = 0; i < MANY && failed == 0; i++)
            failed = named_check(me, &ops[order[i]]);
    }
    free(ops);
    return failed;
}

static void every_kind_comes_out_right_in_any_order(void **state)
{
    for (int size = 1; size <= 4; size++)
        rank_run(*state, size, in_any_order, NULL);
}

/* Slabs too small for most tensors: batches take rounds, large ones none. */
static void tensors_larger_than_the_slab_come_out_right(void **state)
{
    setenv("RUEDA_FUSION_BYTES", "2k", 1);
    rank_run(*state, 3, in_any_order, NULL);
    setenv("RUEDA_FUSION_BYTES", "0", 1);
    rank_run(*state, 2, in_any_order, NULL);
    unsetenv("RUEDA_FUSION_BYTES");
}

/* ---- From several threads --------------------------------------------- */

#define THREADS 4

struct worker {
    struct test_rank *me;
    struct named_op *ops;
    int index;
    int failed;
    pthread_t thread;
};

static void *work(void *arg)
{
    struct worker *worker = arg;
    int order[MANY];

    shuffle(order, MANY, (unsigned)(worker->me->rank * 100 + worker->index));
    for (int i = 0; i < MANY; i++) {
        struct named_what what;

        if (order[i] % THREADS != worker->index)
            continue;
        what = nth(order[i], RUEDA_ALL_RANKS, all_members, worker->me->size);
        named_submit(worker->me, &what, &worker->ops[order[i]]);
    }
    for (int i = 0; i < MANY && worker->failed == 0; i++)
        if (order[i] % THREADS == worker->index)
            worker->failed = named_check(worker->me, &worker->ops[order[i]]);
    return NULL;
}

static int from_threads(struct test_rank *me)
{
    struct named_op *ops = named_ops_new(MANY);
    struct worker workers[THREADS];
    int failed = 0;

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.me = me, .ops = ops, .index = i};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        failed = failed || workers[i].failed;
    }
    free(ops);
    return failed;
}

static void several_threads_of_a_rank_submit_and_wait(void **state)
{
    rank_run(*state, 3, from_threads, NULL);
}

/* ---- Beside ordered operations ---------------------------------------- */

static int beside_ordered(struct test_rank *me)
{
    struct named_op *ops = named_ops_new(MANY);
    int order[MANY];
    int failed = 0;

    shuffle(order, MANY, (unsigned)me->rank);
    for (int i = 0; i < MANY && failed == 0; i++) {
        struct named_what what =
            nth(order[i], RUEDA_ALL_RANKS, all_members, me->size);
        int32_t one = 1;

        named_submit(me, &what, &ops[order[i]]);
        failed = rank_expect(me,
                             rueda_allreduce(me->ctx, &one, &one, 1,
                                             RUEDA_INT32, RUEDA_SUM),
                             RUEDA_OK, "allreduce") ||
                 (one != me->size && rank_says(me, "ordered: %d", one));
    }
    for (int i = 0; i < MANY && failed == 0; i++)
        failed = named_check(me, &ops[i]);
    free(ops);
    return failed;
}

static void ordered_operations_run_beside_named_ones(void **state)
{
    rank_run(*state, 3, beside_ordered, NULL);
}

/* ---- Groups ----------------------------------------------------------- */

enum {
    GROUPED = 12,
    EACH = 4,
};

static struct named_what nth_of_group(int i, int size, int round)
{
    static const rueda_kind of[] = {RUEDA_ALLREDUCE, RUEDA_ALLGATHER,
                                    RUEDA_REDUCE_SCATTER};
    struct named_what what = nth(i, RUEDA_ALL_RANKS, all_members, size);

    what.kind = of[i / EACH];
    what.dtype = RUEDA_FLOAT32;
    what.reduction = RUEDA_SUM;
    what.group = (uint64_t)(i / EACH) + 1;
    what.group_count = EACH;
    if (round % 2 == 1) {
        what.rows = what.kind == RUEDA_ALLGATHER ? 9001 / (size_t)size : 9001;
        what.row = 1;
    }
    return what;
}

static int in_groups(struct test_rank *me)
{
    struct named_op *ops = named_ops_new(GROUPED);
    int order[GROUPED];
    int failed = 0;

    for (int round = 0; round < 20 && failed == 0; round++) {
        shuffle(order, GROUPED, (unsigned)(me->rank + round));
        for (int i = 0; i < GROUPED; i++) {
            struct named_what what = nth_of_group(order[i], me->size, round);

            named_submit(me, &what, &ops[order[i]]);
        }
        for (int i = 0; i < GROUPED && failed == 0; i++)
            failed = named_check(me, &ops[i]);
    }
    free(ops);
    return failed;
}

static void groups_come_out_right(void **state)
{
    rank_run(*state, 3, in_groups, NULL);
}

/* In a slab that holds one at a time: each is packed over what others may still
 * read. */
static void groups_that_follow_each_other_leave_each_other_whole(void **state)
{
    setenv("RUEDA_FUSION_BYTES", "160k", 1);
    for (int size = 3; size <= 4; size++)
        rank_run(*state, size, in_groups, NULL);
    unsetenv("RUEDA_FUSION_BYTES");
}

/* ---- Parts of one vector ----------------------------------------------- */

#define PARTS 13

/* Of all sizes, so that some lie in the slices of several ranks; in place, to
 * other memory, and where there is none for the result. */
static struct named_what nth_part(int i, int size, size_t largest)
{
    const size_t rows[PARTS] = {1,  largest,     0,  largest / 3, 17, 16, 0,
                                64, largest / 7, 33, largest - 1, 5,  1};
    struct named_what what = nth(0, RUEDA_ALL_RANKS, all_members, size);

    snprintf(what.name, sizeof(what.name), "part.%d", i);
    what.dtype = RUEDA_INT32;
    what.reduction = RUEDA_SUM;
    what.rows = rows[i];
    what.row = 1;
    what.salt = (unsigned)i;
    what.in_place = i % 3 == 0;
    what.by_alloc = i % 3 == 1;
    what.group = 1;
    what.group_count = PARTS;
    return what;
}

static int in_parts(struct test_rank *me)
{
    struct named_op *ops = named_ops_new(PARTS);
    int failed = 0;

    for (int round = 0; round < 12 && failed == 0; round++) {
        const size_t largest = (size_t)round % 4 * 15001 + 99;

        for (int i = 0; i < PARTS; i++) {
            struct named_what what = nth_part(i, me->size, largest);

            what.has_no_memory = i == 1 && me->rank == round % 4;
            named_submit(me, &what, &ops[i]);
        }
        for (int i = 0; i < PARTS && failed == 0; i++)
            failed =
                i != 1 || me->rank != round % 4
                    ? named_check(me, &ops[i])
                    : rank_expect(me, named_wait(me, &ops[i], RANK_DEADLINE_MS),
                                  RUEDA_ERR_NOMEM, "without memory");
    }
    free(ops);
    return failed;
}

static void parts_of_any_size_come_out_right(void **state)
{
    for (int size = 1; size <= 5; size++)
        rank_run(*state, size, in_parts, NULL);
}

/* ---- Process sets ----------------------------------------------------- */

/* Overlapping sets, all at work at once. */
static int in_sets(struct test_rank *me)
{
    static const int ranks[4][3] = {{0, 1}, {1, 2}, {3, 2, 0}, {3}};
    static const int sorted[4][3] = {{0, 1}, {1, 2}, {0, 2, 3}, {3}};
    static const int sizes[4] = {2, 2, 3, 1};
    struct named_op *ops = named_ops_new((size_t)4 * MANY);
    bool *is_mine = calloc((size_t)4 * MANY, sizeof(bool));
    int order[4 * MANY];
    int failed = 0;
    int sets[4];

    for (int i = 0; i < 4 && failed == 0; i++) {
        sets[i] = named_add_set(me, ranks[i], sizes[i]);
        if (sets[i] != i + 1)
            failed = rank_says(me, "set %d is %d", i, sets[i]);
        else if (rueda_set_size(me->ctx, sets[i]) != sizes[i])
            failed = rank_says(me, "set %d has another size", i);
    }
    shuffle(order, 4 * MANY, (unsigned)me->rank);
    for (int i = 0; i < 4 * MANY && failed == 0; i++) {
        int set = order[i] / MANY;
        struct named_what what =
            nth(order[i], sets[set], sorted[set], sizes[set]);

        for (int m = 0; m < sizes[set]; m++)
            if (sorted[set][m] == me->rank)
                is_mine[order[i]] = true;
        if (is_mine[order[i]])
            named_submit(me, &what, &ops[order[i]]);
    }
    for (int i = 0; i < 4 * MANY && failed == 0; i++)
        if (is_mine[i])
            failed = named_check(me, &ops[i]);
    for (int i = 3; i >= 0 && failed == 0; i--)
        failed = rank_expect(me, named_drop_set(me, sets[i]), RUEDA_OK,
                             "drop a set");
    free(ops);
    free(is_mine);
    return failed;
}

static void overlapping_sets_run_at_the_same_time(void **state)
{
    rank_run(*state, 4, in_sets, NULL);
}

static int makes_and_drops(struct test_rank *me)
{
    static const int pair[2] = {0, 1};
    struct named_op one;
    struct named_op *op = &one;

    for (int i = 0; i < 5; i++) {
        int set = named_add_set(me, pair, 2);
        struct named_what what = nth(5, set, pair, 2);

        if (set != i + 1)
            return rank_says(me, "set %d instead of %d", set, i + 1);
        if (named_add_set(me, pair, 2) != RUEDA_ERR_INVALID)
            return rank_says(me, "two sets of the same ranks");
        if (me->rank < 2) {
            named_submit(me, &what, op);
            if (named_check(me, op) != 0)
                return 1;
        }
        /* The other member never brings this one. */
        if (me->rank == 0)
            named_submit(me, &what, op);
        if (rank_expect(me, named_drop_set(me, set), RUEDA_OK, "drop") != 0)
            return 1;
        if (me->rank == 0 &&
            rank_expect(me, named_wait(me, op, RANK_DEADLINE_MS),
                        RUEDA_ERR_CANCELLED, "of a dropped set") != 0)
            return 1;
        if (rueda_set_size(me->ctx, set) >= 0)
            return rank_says(me, "set %d is still there", set);
        named_submit(me, &what, op);
        if (rank_expect(me, named_wait(me, op, RANK_DEADLINE_MS),
                        RUEDA_ERR_CANCELLED, "after the drop") != 0)
            return 1;
    }
    if (named_drop_set(me, 0) != RUEDA_ERR_INVALID ||
        named_drop_set(me, 3) != RUEDA_ERR_INVALID)
        return rank_says(me, "a set was dropped that is not there");
    return 0;
}

static void operations_of_a_dropped_set_are_cancelled(void **state)
{
    rank_run(*state, 3, makes_and_drops, NULL);
}

/* ---- Join ------------------------------------------------------------- */

/* Rank r has data for 4 + 3 r steps; the others go on without it. */
static int uneven(struct test_rank *me)
{
    static const rueda_reduction reductions[] = {RUEDA_SUM, RUEDA_MIN,
                                                 RUEDA_PRODUCT, RUEDA_MIN};
    const int last = 4 + 3 * (me->size - 1);
    const int mine = 4 + 3 * me->rank;
    struct named_op one;
    struct named_op *op = &one;
    struct named_op join;
    int failed = 0;

    for (int step = 0; step < last && step < mine && failed == 0; step++) {
        struct named_what what =
            nth(step, RUEDA_ALL_RANKS, all_members, me->size);

        what.kind = RUEDA_ALLREDUCE;
        what.reduction = reductions[step % 4];
        for (int rank = 0; rank < me->size; rank++)
            if (step >= 4 + 3 * rank)
                what.joined |= 1u << rank;
        if (step % 4 == 3)
            what.rows = 50000; /* more than the slab takes */
        named_submit(me, &what, op);
        failed = named_check(me, op);
    }
    named_begin(&join, RUEDA_JOIN, "", RUEDA_ALL_RANKS);
    named_hand_over(me, &join);
    if (failed == 0)
        failed = rank_expect(me, named_wait(me, &join, RANK_DEADLINE_MS),
                             RUEDA_OK, "join");
    if (failed == 0 && join.ticket.last_rank != me->size - 1)
        failed = rank_says(me, "rank %d joined last", join.ticket.last_rank);
    return failed != 0 ? failed : in_any_order(me);
}

static void who_has_joined_changes_no_result(void **state)
{
    setenv("RUEDA_FUSION_BYTES", "64k", 1);
    rank_run(*state, 3, uneven, NULL);
    unsetenv("RUEDA_FUSION_BYTES");
}

/* ---- What goes wrong -------------------------------------------------- */

static int disagrees(struct test_rank *me)
{
    struct named_op one;
    struct named_op *op = &one;
    struct named_what what = nth(5, RUEDA_ALL_RANKS, all_members, me->size);
    struct named_what wrong = what;
    int failed = 0;

    wrong.dtype = me->rank == 1 ? RUEDA_FLOAT64 : RUEDA_FLOAT32;
    named_submit(me, &wrong, op);
    failed = rank_expect(me, named_wait(me, op, RANK_DEADLINE_MS),
                         RUEDA_ERR_MISMATCH, "mismatch");
    if (failed == 0) {
        named_submit(me, &what, op);
        failed = named_check(me, op);
    }
    return failed;
}

static void a_mismatch_ends_one_operation_and_no_more(void **state)
{
    rank_run(*state, 3, disagrees, NULL);
}

/* One rank has no memory for its result; the others get theirs. */
static int lacks_memory(struct test_rank *me)
{
    static const rueda_kind of[] = {RUEDA_ALLREDUCE, RUEDA_ALLGATHER,
                                    RUEDA_ALLTOALL, RUEDA_REDUCE_SCATTER,
                                    RUEDA_BROADCAST};
    struct named_op one;
    struct named_op *op = &one;
    int failed = 0;

    for (int i = 0; i < 10 && failed == 0; i++) {
        struct named_what what = nth(5, RUEDA_ALL_RANKS, all_members, me->size);

        what.kind = of[i % 5];
        what.rows = i < 5 ? 7 : 7000;
        what.root = 0;
        what.in_place = false;
        what.by_alloc = true;
        what.has_no_memory = me->rank == 1;
        named_submit(me, &what, op);
        if (me->rank != 1)
            failed = named_check(me, op);
        else
            failed = rank_expect(me, named_wait(me, op, RANK_DEADLINE_MS),
                                 RUEDA_ERR_NOMEM, "without memory");
    }
    return failed;
}

static void a_rank_without_memory_spoils_nothing(void **state)
{
    rank_run(*state, 3, lacks_memory, NULL);
}

/* ---- Messages --------------------------------------------------------- */

static void message(struct test_rank *me, struct named_op *op, int kind,
                    int peer, int tag, int32_t *buf, size_t count)
{
    named_begin(op, kind, "", RUEDA_ALL_RANKS);
    op->ticket.request.dtype = RUEDA_INT32;
    op->ticket.request.dims = 1;
    op->ticket.request.shape[0] = count;
    op->ticket.peer = peer;
    op->ticket.tag = tag;
    op->ticket.send = kind == RUEDA_SEND ? buf : NULL;
    op->ticket.recv = kind == RUEDA_RECV ? buf : NULL;
    named_hand_over(me, op);
}

/* Round the ring, several tags, received in another order. */
static int passes_messages(struct test_rank *me)
{
    enum {
        TAGS = 3,
        COUNT = 20000
    };
    int to = (me->rank + 1) % me->size;
    int from = (me->rank + me->size - 1) % me->size;
    int32_t(*out)[COUNT] = calloc(TAGS, sizeof(*out));
    int32_t(*in)[COUNT] = calloc(TAGS, sizeof(*in));
    struct named_op *ops = named_ops_new((size_t)2 * TAGS);
    int failed = 0;

    for (int i = 0; i < TAGS * COUNT; i++)
        out[i / COUNT][i % COUNT] = me->rank * 1000000 + i;
    for (int tag = 0; tag < TAGS; tag++)
        message(me, &ops[tag], RUEDA_SEND, to, tag, out[tag], COUNT);
    for (int tag = TAGS - 1; tag >= 0; tag--)
        message(me, &ops[TAGS + tag], RUEDA_RECV, from, tag, in[tag], COUNT);
    for (int i = 0; i < 2 * TAGS && failed == 0; i++)
        failed = rank_expect(me, named_wait(me, &ops[i], RANK_DEADLINE_MS),
                             RUEDA_OK, "message");
    for (int i = 0; i < TAGS * COUNT && failed == 0; i++)
        if (in[i / COUNT][i % COUNT] != from * 1000000 + i)
            failed = rank_says(me, "number %d is wrong", i);
    free(out);
    free(in);
    free(ops);
    return failed;
}

static void messages_reach_their_receivers_by_tag(void **state)
{
    rank_run(*state, 3, passes_messages, NULL);
}

/* ---- Death ------------------------------------------------------------ */

static int dies_or_sees_it(struct test_rank *me)
{
    struct named_op one;
    struct named_op *op = &one;
    struct named_what what = nth(5, RUEDA_ALL_RANKS, all_members, me->size);
    char pair[64];

    named_submit(me, &what, op);
    if (named_check(me, op) != 0)
        return 1;
    if (me->rank == 1) {
        rank_sleep_ms(100);
        kill(getpid(), SIGKILL);
    }
    snprintf(what.name, sizeof(what.name), "grad.3");
    named_submit(me, &what, op);
    if (rank_expect(me, named_wait(me, op, 10000), RUEDA_ERR_PEER_LOST,
                    "after a death") != 0)
        return 1;
    snprintf(pair, sizeof(pair), "while rank %d was in allreduce \"grad.3\"",
             me->rank);
    if (strstr(rueda_error(me->ctx), "rank 1 (") == NULL ||
        strstr(rueda_error(me->ctx), pair) == NULL)
        return rank_says(me, "words: %s", rueda_error(me->ctx));
    return 0;
}

static void a_death_ends_what_the_dead_rank_never_brings(void **state)
{
    const struct rank_setup *setup = *state;
    struct processes processes;

    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    processes_start(&processes, 3, processes_join, dies_or_sees_it, NULL);
    unsetenv("RUEDA_TRANSPORT");
    processes.expected[1] = PROCESS_SIGNAL - SIGKILL;
    assert_int_equal(processes_end(&processes, 20000), 0);
}

/* Rank 1 leaves in good order; the others still wait for it. */
static int leaves_or_sees_it(struct test_rank *me)
{
    struct named_op one;
    struct named_op *op = &one;
    struct named_what what = nth(5, RUEDA_ALL_RANKS, all_members, me->size);
    int failed = 0;

    named_submit(me, &what, op);
    failed = named_check(me, op);
    if (failed == 0 && me->rank != 1) {
        named_submit(me, &what, op);
        failed = rank_expect(me, named_wait(me, op, 10000), RUEDA_ERR_PEER_LOST,
                             "after a leave");
    }
    return failed;
}

static void who_leaves_ends_what_it_never_brings(void **state)
{
    struct processes processes;

    (void)state;
    processes_start(&processes, 3, processes_join, leaves_or_sees_it, NULL);
    assert_int_equal(processes_end(&processes, 20000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(every_kind_comes_out_right_in_any_order),
        RANK_EVERYWHERE(tensors_larger_than_the_slab_come_out_right),
        RANK_EVERYWHERE(several_threads_of_a_rank_submit_and_wait),
        RANK_EVERYWHERE(ordered_operations_run_beside_named_ones),
        RANK_EVERYWHERE(groups_come_out_right),
        RANK_EVERYWHERE(groups_that_follow_each_other_leave_each_other_whole),
        RANK_EVERYWHERE(parts_of_any_size_come_out_right),
        RANK_EVERYWHERE(overlapping_sets_run_at_the_same_time),
        RANK_EVERYWHERE(operations_of_a_dropped_set_are_cancelled),
        RANK_EVERYWHERE(who_has_joined_changes_no_result),
        RANK_EVERYWHERE(a_mismatch_ends_one_operation_and_no_more),
        RANK_EVERYWHERE(a_rank_without_memory_spoils_nothing),
        RANK_EVERYWHERE(messages_reach_their_receivers_by_tag),
        RANK_IN_PROCESSES(a_death_ends_what_the_dead_rank_never_brings),
        RANK_TEST(who_leaves_ends_what_it_never_brings, processes),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
