/* SPDX-License-Identifier: Apache-2.0 */
/* Operations by name as a program hands them over, up to the engine's queue. */
#include "os/thread.h"
#include "support/fake_engine.h"

/* ---- What arrives ----------------------------------------------------- */

static void an_operation_arrives_as_it_was_asked_for(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, "grad");
    rueda_ctx *ctx = *state;
    struct rueda_ticket *ticket;
    rueda_handle handle;

    args.set = 1;
    args.dtype = RUEDA_FLOAT64;
    args.reduction = RUEDA_MAX;
    args.prescale = 2;
    args.postscale = 3;
    args.priority = 9;
    args.flags = RUEDA_LIVE_AVERAGE | RUEDA_MORE | RUEDA_UNPACKED;
    handle = fake_submit(ctx, &args);
    ticket = fake_arrived(ctx);

    assert_null(fake_arrived(ctx));
    assert_int_equal(ticket->op.handle, handle);
    assert_int_equal(ticket->set, 1);
    assert_int_equal(ticket->member_count, 2);
    assert_ptr_equal(ticket->send, fake_room);
    assert_ptr_equal(ticket->recv, fake_room + 1000);
    assert_string_equal(ticket->request.name, "grad");
    assert_int_equal(ticket->request.kind, RUEDA_ALLREDUCE);
    assert_int_equal(ticket->request.dtype, RUEDA_FLOAT64);
    assert_int_equal(ticket->request.reduction, RUEDA_MAX);
    assert_true(ticket->request.prescale == 2 &&
                ticket->request.postscale == 3);
    assert_int_equal(ticket->request.root, -1);
    assert_int_equal(ticket->request.priority, 9);
    assert_int_equal(ticket->request.flags,
                     RUEDA_LIVE_AVERAGE | RUEDA_UNPACKED);
    assert_int_equal(ticket->request.dims, 2);
    assert_int_equal(ticket->request.shape[0], 6);
    assert_int_equal(ticket->request.group, 0);
    fake_deliver(ticket, RUEDA_OK);
    assert_int_equal(rueda_wait(ctx, handle, 0), RUEDA_OK);
}

static void what_a_kind_does_not_use_is_the_same_for_all(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_BARRIER, NULL);
    rueda_ctx *ctx = *state;
    struct rueda_ticket *ticket;

    args.dtype = RUEDA_INT8;
    args.reduction = RUEDA_MIN;
    args.prescale = 7;
    args.root = 2;
    fake_submit(ctx, &args);
    ticket = fake_arrived(ctx);
    assert_int_equal(ticket->request.dtype, RUEDA_UINT8);
    assert_int_equal(ticket->request.reduction, RUEDA_SUM);
    assert_true(ticket->request.prescale == 1);
    assert_int_equal(ticket->request.root, -1);
    assert_int_equal(ticket->request.dims, 0);
    fake_deliver(ticket, RUEDA_OK);

    args.kind = RUEDA_BROADCAST;
    args.reduction = RUEDA_SUM;
    fake_submit(ctx, &args);
    ticket = fake_arrived(ctx);
    assert_int_equal(ticket->request.root, 2);
    assert_true(ticket->request.prescale == 1);
    fake_deliver(ticket, RUEDA_OK);
}

static void arguments_of_an_older_program_are_completed(void **state)
{
    struct {
        struct rueda_submit_args args;
        char later[32];
    } newer = {.args = fake_args(RUEDA_ALLREDUCE, "x"), .later = "xyz"};
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, "y");
    rueda_ctx *ctx = *state;

    newer.args.struct_size = sizeof(newer);
    fake_submit(ctx, &newer.args);
    fake_deliver(fake_arrived(ctx), RUEDA_OK);
    args.struct_size = 100;
    fake_refused(ctx, &args, RUEDA_ERR_INVALID, "RUEDA_SUBMIT_ARGS_INIT");
}

static void names_of_any_length_are_copied(void **state)
{
    rueda_ctx *ctx = *state;
    static char name[10001];
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, name);
    static const size_t lengths[] = {0, 1, 63, 64, 10000};

    for (int i = 0; i < 5; i++) {
        struct rueda_ticket *ticket;
        rueda_handle handle;

        memset(name, 0, sizeof(name));
        memset(name, 'n', lengths[i]);
        handle = fake_submit(ctx, &args);
        memset(name, 'x', lengths[i]);
        ticket = fake_arrived(ctx);
        assert_int_equal(strlen(ticket->request.name), lengths[i]);
        assert_true(lengths[i] == 0 || ticket->request.name[0] == 'n');
        fake_deliver(ticket, RUEDA_OK);
        assert_int_equal(rueda_wait(ctx, handle, 0), RUEDA_OK);
    }
}

static void splits_are_copied(void **state)
{
    size_t splits[3] = {1, 2, 3};
    struct rueda_submit_args args = fake_args(RUEDA_ALLTOALL, "a");
    rueda_ctx *ctx = *state;
    struct rueda_ticket *ticket;

    args.splits = splits;
    fake_submit(ctx, &args);
    splits[1] = 77;
    ticket = fake_arrived(ctx);
    assert_int_equal(ticket->splits[1], 2);
    fake_deliver(ticket, RUEDA_OK);
    args.name = "b";
    args.splits = NULL;
    fake_submit(ctx, &args);
    ticket = fake_arrived(ctx);
    assert_null(ticket->splits);
    fake_deliver(ticket, RUEDA_OK);
}

static void those_without_a_name_are_counted_in_their_set(void **state)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_SEND,
                                       RUEDA_BARRIER, RUEDA_ALLGATHER,
                                       RUEDA_JOIN};
    static const uint64_t numbers[] = {0, 0, 1, 2, 0};
    rueda_ctx *ctx = *state;

    for (int set = 0; set < 2; set++) {
        for (int i = 0; i < 5; i++) {
            struct rueda_submit_args args = fake_args(kinds[i], NULL);
            struct rueda_ticket *ticket;

            if (kinds[i] == RUEDA_JOIN && set == 1)
                continue;
            args.set = set;
            args.peer = 2;
            fake_submit(ctx, &args);
            ticket = fake_arrived(ctx);
            assert_null(ticket->request.name);
            assert_int_equal(ticket->request.number, numbers[i]);
            fake_deliver(ticket, RUEDA_OK);
        }
    }
}

static void ordered_operations_use_up_no_number(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, NULL);
    rueda_ctx *ctx = *state;
    struct rueda_ticket *ticket;

    args.set = 1;
    for (int i = 0; i < 4; i++) {
        args.flags = i % 2 == 0 ? RUEDA_ORDERED : 0;
        fake_submit(ctx, &args);
        ticket = fake_arrived(ctx);
        assert_true(ticket->op.is_ordered == (i % 2 == 0));
        assert_false(ticket->op.is_laid_out);
        if (i % 2 != 0)
            assert_int_equal(ticket->request.number, i / 2);
        fake_deliver(ticket, RUEDA_OK);
    }
}

static void ordered_operations_are_in_no_group(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, NULL);
    rueda_ctx *ctx = *state;
    rueda_handle handle;

    args.flags = RUEDA_ORDERED;
    assert_int_equal(rueda_submit_group(ctx, &args, 1, &handle),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "are not grouped"));
    assert_null(fake_arrived(ctx));
}

/* ---- Refusals --------------------------------------------------------- */

static void a_name_is_refused_until_its_handle_ends(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, "x");
    rueda_ctx *ctx = *state;
    struct rueda_submit_args other = args;
    rueda_handle handle = fake_submit(ctx, &args);

    fake_refused(
        ctx, &args, RUEDA_ERR_INVALID,
        "rank 1: allreduce \"x\": requested with the same name as another "
        "tensor that is currently being processed");
    other.set = 1;
    fake_submit(ctx, &other);
    fake_deliver(fake_arrived(ctx), RUEDA_ERR_MISMATCH);
    /* However fast it was, and although one can see that it has ended. */
    assert_int_equal(rueda_poll(ctx, handle), RUEDA_ERR_MISMATCH);
    fake_refused(ctx, &args, RUEDA_ERR_INVALID, "wait for that first");
    assert_int_equal(rueda_wait(ctx, handle, 0), RUEDA_ERR_MISMATCH);
    fake_submit(ctx, &args);
}

static void a_refused_operation_leaves_nothing_behind(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, "x");
    struct rueda_submit_args bad = fake_args(RUEDA_ALLREDUCE, "y");
    struct rueda_submit_args unnamed = fake_args(RUEDA_ALLREDUCE, NULL);
    rueda_ctx *ctx = *state;

    bad.send = NULL;
    fake_refused(ctx, &bad, RUEDA_ERR_INVALID, "send is NULL");
    bad.name = NULL;
    fake_refused(ctx, &bad, RUEDA_ERR_INVALID,
                 "rank 1: allreduce: send is NULL");
    args.set = 2;
    fake_refused(ctx, &args, RUEDA_ERR_INVALID, "rank 1 is not a member");
    args.set = 3;
    fake_refused(ctx, &args, RUEDA_ERR_INVALID, "there is no such process set");
    assert_null(fake_arrived(ctx));
    bad.send = fake_room;
    bad.name = "y";
    fake_submit(ctx, &bad);
    fake_submit(ctx, &unnamed);
    fake_deliver(fake_arrived(ctx), RUEDA_OK);
    assert_int_equal(rueda_ticket_of(rueda_op_peek(&ctx->engine.lanes.arrived))
                         ->request.number,
                     0);
}

static void a_rank_joins_once_at_a_time(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_JOIN, NULL);
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_ctx *ctx = *state;
    rueda_handle handle = fake_submit(ctx, &args);
    struct rueda_ticket *ticket;

    args.name = "whatever";
    fake_refused(ctx, &args, RUEDA_ERR_INVALID, "this rank has joined already");
    args = fake_args(RUEDA_BARRIER, NULL);
    fake_refused(ctx, &args, RUEDA_ERR_INVALID, "this rank has joined already");
    ticket = fake_arrived(ctx);
    assert_null(ticket->request.name);
    ticket->last_rank = 2;
    fake_deliver(ticket, RUEDA_OK);
    assert_int_equal(rueda_wait_for(ctx, handle, 0, &result), RUEDA_OK);
    assert_int_equal(result.last_rank, 2);
    rueda_numbers_go_on(&ctx->engine.numbers, RUEDA_ALL_RANKS, 0);
    fake_submit(ctx, &args);
}

static void a_failed_context_takes_nothing_more(void **state)
{
    struct rueda_submit_args args = fake_args(RUEDA_ALLREDUCE, "x");
    rueda_ctx *ctx = *state;
    int ranks[1] = {0};
    int set = 77;

    rueda_fail(ctx, "out of coffee");
    fake_refused(ctx, &args, RUEDA_ERR_CANCELLED, "out of coffee");
    assert_int_equal(rueda_set_create(ctx, ranks, 1, &set),
                     RUEDA_ERR_CANCELLED);
    assert_int_equal(set, 77);
}

#define THREADS 4
#define NAMES   300

struct submitter {
    rueda_ctx *ctx;
    int taken;
};

static void *submit_all(void *arg)
{
    struct submitter *self = arg;

    for (int i = 0; i < NAMES; i++) {
        struct rueda_submit_args args;
        rueda_handle handle;
        char name[16];

        snprintf(name, sizeof(name), "t%d", i);
        args = fake_args(RUEDA_ALLREDUCE, name);
        self->taken += rueda_submit(self->ctx, &args, &handle) == RUEDA_OK;
    }
    return NULL;
}

static void of_threads_with_the_same_names_one_wins_each(void **state)
{
    rueda_ctx *ctx = *state;
    struct submitter submitters[THREADS];
    pthread_t threads[THREADS];
    struct rueda_ticket *ticket;
    int taken = 0;
    int count = 0;

    for (int i = 0; i < THREADS; i++) {
        submitters[i] = (struct submitter){ctx, 0};
        assert_int_equal(
            rueda_thread_start(&threads[i], submit_all, &submitters[i]),
            RUEDA_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        taken += submitters[i].taken;
    }
    assert_int_equal(taken, NAMES);
    while ((ticket = fake_arrived(ctx)) != NULL) {
        count++;
        fake_deliver(ticket, RUEDA_OK);
    }
    assert_int_equal(count, NAMES);
}

/* ---- Groups ----------------------------------------------------------- */

static void a_group_arrives_whole_and_marked(void **state)
{
    struct rueda_submit_args args[3] = {fake_args(RUEDA_ALLREDUCE, "a"),
                                        fake_args(RUEDA_ALLREDUCE, "b"),
                                        fake_args(RUEDA_ALLREDUCE, NULL)};
    rueda_handle handles[3] = {0};
    rueda_ctx *ctx = *state;
    uint64_t group = 0;

    assert_int_equal(rueda_submit_group(ctx, args, 3, handles), RUEDA_OK);
    assert_int_equal(atomic_load(&fake_wakes), 1);
    for (int i = 0; i < 3; i++) {
        struct rueda_ticket *ticket = fake_arrived(ctx);

        assert_int_equal(ticket->op.handle, handles[i]);
        assert_int_equal(ticket->request.group_count, 3);
        assert_int_not_equal(ticket->request.group, 0);
        assert_true(i == 0 || ticket->request.group == group);
        group = ticket->request.group;
        fake_deliver(ticket, RUEDA_OK);
    }
}

static void several_are_handed_over_at_once_and_not_tied(void **state)
{
    struct rueda_submit_args args[3] = {fake_args(RUEDA_ALLREDUCE, "a"),
                                        fake_args(RUEDA_ALLREDUCE, NULL),
                                        fake_args(RUEDA_ALLREDUCE, "c")};
    rueda_handle handles[3] = {7, 7, 7};
    rueda_ctx *ctx = *state;

    args[2].name = "a";
    assert_int_equal(rueda_submit_all(ctx, args, 3, handles),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "currently being processed"));
    assert_null(fake_arrived(ctx));
    args[2].name = "c";
    atomic_store(&fake_wakes, 0);
    assert_int_equal(rueda_submit_all(ctx, args, 3, handles), RUEDA_OK);
    assert_int_equal(atomic_load(&fake_wakes), 1);
    for (int i = 0; i < 3; i++) {
        struct rueda_ticket *ticket = fake_arrived(ctx);

        assert_int_equal(ticket->op.handle, handles[i]);
        assert_int_equal(ticket->request.group_count, 0);
        assert_true(ticket->request.group == 0);
        fake_deliver(ticket, RUEDA_OK);
    }
    assert_int_equal(rueda_submit_all(ctx, args, 0, handles),
                     RUEDA_ERR_INVALID);
}

static uint64_t group_of(rueda_ctx *ctx, const char *first, const char *second)
{
    struct rueda_submit_args args[2] = {fake_args(RUEDA_ALLREDUCE, first),
                                        fake_args(RUEDA_ALLREDUCE, second)};
    rueda_handle handles[2];
    uint64_t groups[2];

    assert_int_equal(rueda_submit_group(ctx, args, 2, handles), RUEDA_OK);
    for (int i = 0; i < 2; i++) {
        struct rueda_ticket *ticket = fake_arrived(ctx);

        groups[i] = ticket->request.group;
        fake_deliver(ticket, RUEDA_OK);
        assert_int_equal(rueda_wait(ctx, handles[i], 0), RUEDA_OK);
    }
    assert_true(groups[0] == groups[1]);
    return groups[0];
}

static void a_group_is_known_by_all_who_are_in_it(void **state)
{
    rueda_ctx *ctx = *state;
    const uint64_t group = group_of(ctx, "a", "b");

    assert_true(group_of(ctx, "a", "c") != group);
    assert_true(group_of(ctx, "c", "b") != group);
    assert_true(group_of(ctx, "b", "a") == group);
}

static void of_a_group_all_or_none_are_handed_over(void **state)
{
    struct rueda_submit_args args[3] = {fake_args(RUEDA_ALLGATHER, "a"),
                                        fake_args(RUEDA_ALLGATHER, NULL),
                                        fake_args(RUEDA_ALLGATHER, "a")};
    rueda_handle handles[3] = {7, 7, 7};
    rueda_ctx *ctx = *state;

    assert_int_equal(rueda_submit_group(ctx, args, 3, handles),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "currently being processed"));
    args[2].name = "b";
    args[2].set = 1;
    assert_int_equal(rueda_submit_group(ctx, args, 3, handles),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "all of a group are of one"));
    args[2].set = 0;
    args[2].kind = RUEDA_ALLREDUCE;
    assert_int_equal(rueda_submit_group(ctx, args, 3, handles),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "group began with allgather"));
    assert_int_equal(rueda_submit_group(ctx, args, 0, handles),
                     RUEDA_ERR_INVALID);
    for (int kind = RUEDA_BARRIER; kind <= RUEDA_RECV; kind++) {
        args[0].kind = (rueda_kind)kind;
        assert_int_equal(rueda_submit_group(ctx, args, 1, handles),
                         RUEDA_ERR_INVALID);
        assert_non_null(strstr(rueda_last_error(), "not done in groups"));
    }
    assert_null(fake_arrived(ctx));
    assert_int_equal(handles[0], 7);

    args[0].kind = RUEDA_ALLGATHER;
    args[2].kind = RUEDA_ALLGATHER;
    assert_int_equal(rueda_submit_group(ctx, args, 3, handles), RUEDA_OK);
    fake_arrived(ctx);
    assert_int_equal(fake_arrived(ctx)->request.number, 0);
}

/* ---- Process sets ----------------------------------------------------- */

/* What the change was that the engine carried out. */
static struct {
    int kind;
    int ranks[8];
    int rank_count;
    struct rueda_request request;
    rueda_status inner; /* of one that came while it was in flight */
} change;

static void carry_out(struct rueda_engine *engine)
{
    struct rueda_op *op = rueda_op_peek(&engine->lanes.arrived);
    struct rueda_ticket *ticket = rueda_ticket_of(op);
    int ranks[1] = {0};
    int set;

    rueda_op_pop(&engine->lanes.arrived);
    change.kind = ticket->request.kind;
    change.request = ticket->request;
    change.rank_count = ticket->rank_count;
    memcpy(change.ranks, ticket->ranks,
           (size_t)ticket->rank_count * sizeof(int));
    change.inner = rueda_set_create(fake_contexts[1], ranks, 1, &set);
    ticket->made_set = 5;
    fake_deliver(ticket, RUEDA_OK);
}

static void disagree(struct rueda_engine *engine)
{
    struct rueda_op *op = rueda_op_peek(&engine->lanes.arrived);

    rueda_op_pop(&engine->lanes.arrived);
    rueda_ticket_of(op)->error = strdup("rank 0 wants other ranks");
    op->has_own = true;
    fake_deliver(rueda_ticket_of(op), RUEDA_ERR_MISMATCH);
}

static void a_set_is_made_of_sorted_ranks(void **state)
{
    static const int ranks[] = {2, 0};
    static const int sorted[] = {0, 2};
    rueda_ctx *ctx = *state;
    uint64_t hash;
    int set = -7;

    fake_turn = carry_out;
    assert_int_equal(rueda_set_create(ctx, ranks, 2, &set), RUEDA_OK);
    assert_int_equal(set, 5);
    assert_int_equal(change.kind, RUEDA_SET_ADD);
    assert_int_equal(change.rank_count, 2);
    assert_memory_equal(change.ranks, sorted, sizeof(sorted));
    assert_int_equal(change.request.dims, 2);
    assert_int_equal(change.request.shape[0], 2);
    hash = change.request.shape[1];
    /* One at a time. */
    assert_int_equal(change.inner, RUEDA_ERR_INVALID);

    assert_int_equal(rueda_set_create(ctx, sorted, 2, &set), RUEDA_OK);
    assert_int_equal(change.request.shape[1], hash);
    assert_int_equal(rueda_set_create(ctx, fake_set_ranks[1], 2, &set),
                     RUEDA_OK);
    assert_int_not_equal(change.request.shape[1], hash);
}

static void a_set_of_impossible_ranks_is_refused(void **state)
{
    static const int twice[] = {2, 0, 2};
    static const int high[] = {1, 3};
    static const int low[] = {1, -1};
    rueda_ctx *ctx = *state;
    int set = 77;

    fake_turn = carry_out;
    assert_int_equal(rueda_set_create(ctx, twice, 3, &set), RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "rank 2 twice"));
    assert_int_equal(rueda_set_create(ctx, high, 2, &set), RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "rank 3, in a job of 3 ranks"));
    assert_int_equal(rueda_set_create(ctx, low, 2, &set), RUEDA_ERR_INVALID);
    assert_int_equal(rueda_set_create(ctx, low, 0, &set), RUEDA_ERR_INVALID);
    assert_int_equal(rueda_set_create(ctx, NULL, 2, &set), RUEDA_ERR_INVALID);
    assert_int_equal(set, 77);
}

static void ranks_that_disagree_about_a_set_are_told(void **state)
{
    static const int ranks[] = {2, 0};
    int set = 77;

    fake_turn = disagree;
    assert_int_equal(rueda_set_create(*state, ranks, 2, &set),
                     RUEDA_ERR_MISMATCH);
    assert_string_equal(rueda_last_error(), "rank 0 wants other ranks");
    assert_int_equal(set, 77);
}

static void a_set_that_is_there_can_be_removed(void **state)
{
    rueda_ctx *ctx = *state;

    fake_turn = carry_out;
    assert_int_equal(rueda_set_destroy(ctx, 2), RUEDA_OK);
    assert_int_equal(change.kind, RUEDA_SET_DROP);
    assert_int_equal(change.rank_count, 1);
    assert_int_equal(change.ranks[0], 2);
    assert_int_equal(change.request.shape[1], 2);
    assert_int_equal(rueda_set_destroy(ctx, 0), RUEDA_ERR_INVALID);
    assert_int_equal(rueda_set_destroy(ctx, 3), RUEDA_ERR_INVALID);
    assert_non_null(strstr(rueda_last_error(), "there is no process set 3"));
    assert_int_equal(rueda_set_destroy(ctx, -1), RUEDA_ERR_INVALID);
}

static void sets_tell_their_ranks(void **state)
{
    rueda_ctx *ctx = *state;
    int ranks[3] = {-7, -7, -7};

    assert_int_equal(rueda_set_size(ctx, 0), 3);
    assert_int_equal(rueda_set_rank(ctx, 0), 1);
    assert_int_equal(rueda_set_size(ctx, 1), 2);
    assert_int_equal(rueda_set_rank(ctx, 1), 0);
    assert_int_equal(rueda_set_rank(ctx, 2), -1);
    assert_int_equal(rueda_set_size(ctx, 3), -1);
    assert_int_equal(rueda_set_rank(ctx, 3), -1);
    assert_int_equal(rueda_set_ranks(ctx, 3, ranks, 3), -1);
    assert_int_equal(rueda_set_ranks(ctx, 1, ranks, 3), 2);
    assert_int_equal(ranks[1], 2);
    assert_int_equal(ranks[2], -7);
    assert_int_equal(rueda_set_ranks(ctx, 0, ranks, 1), 1);
    assert_int_equal(ranks[0], 0);
    assert_int_equal(ranks[1], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(an_operation_arrives_as_it_was_asked_for),
        OPEN(what_a_kind_does_not_use_is_the_same_for_all),
        OPEN(arguments_of_an_older_program_are_completed),
        OPEN(names_of_any_length_are_copied),
        OPEN(splits_are_copied),
        OPEN(those_without_a_name_are_counted_in_their_set),
        OPEN(ordered_operations_use_up_no_number),
        OPEN(ordered_operations_are_in_no_group),
        OPEN(a_name_is_refused_until_its_handle_ends),
        OPEN(a_refused_operation_leaves_nothing_behind),
        OPEN(a_rank_joins_once_at_a_time),
        OPEN(a_failed_context_takes_nothing_more),
        OPEN(of_threads_with_the_same_names_one_wins_each),
        OPEN(a_group_arrives_whole_and_marked),
        OPEN(several_are_handed_over_at_once_and_not_tied),
        OPEN(a_group_is_known_by_all_who_are_in_it),
        OPEN(of_a_group_all_or_none_are_handed_over),
        OPEN(a_set_is_made_of_sorted_ranks),
        OPEN(a_set_of_impossible_ranks_is_refused),
        OPEN(ranks_that_disagree_about_a_set_are_told),
        OPEN(a_set_that_is_there_can_be_removed),
        OPEN(sets_tell_their_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
