/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 2 of 4, in set 0 of all, and in set 5 of the ranks 0, 2 and 3. */
#include "api/check_submit.h"
#include "unit/unit.h"

static const int all_ranks[] = {0, 1, 2, 3};
static const int some_ranks[] = {0, 2, 3};
static const struct rueda_set all = {0, 4, 2, all_ranks};
static const struct rueda_set some = {5, 3, 1, some_ranks};
static const struct rueda_set others = {6, 3, -1, some_ranks};

static float room[4096];
static const size_t shape[] = {12, 2, 3};

/* 12 rows of 6 floats from a place to another one that is far enough. */
static struct rueda_submit_args args_of(rueda_kind kind)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = kind;
    args.name = "x";
    args.send = room;
    args.recv = room + 1000;
    args.dims = 3;
    args.shape = shape;
    args.peer = 3;
    return args;
}

static rueda_status check(const struct rueda_set *set,
                          const struct rueda_submit_args *args,
                          struct rueda_text *error)
{
    memset(error, 0, sizeof(*error));
    return rueda_check_submit(2, set, args, error);
}

static void passes(const struct rueda_set *set,
                   const struct rueda_submit_args *args)
{
    struct rueda_text error;

    assert_int_equal(check(set, args, &error), RUEDA_OK);
    assert_string_equal(error.chars, "");
}

/* Refused by words that begin with whom it is about, and go on so. */
static void refused(const struct rueda_set *set,
                    const struct rueda_submit_args *args, rueda_status status,
                    const char *words)
{
    struct rueda_text error;
    struct rueda_text begin = {{0}};

    rueda_check_begin(2, args, &begin);
    assert_int_equal(check(set, args, &error), status);
    assert_memory_equal(error.chars, begin.chars, strlen(begin.chars));
    assert_memory_equal(error.chars + strlen(begin.chars), words,
                        strlen(words));
}

static void invalid(const struct rueda_submit_args *args, const char *words)
{
    refused(&all, args, RUEDA_ERR_INVALID, words);
}

static void every_kind_passes_with_good_arguments(void **state)
{
    (void)state;
    for (int kind = RUEDA_ALLREDUCE; kind <= RUEDA_RECV; kind++) {
        struct rueda_submit_args args = args_of((rueda_kind)kind);

        passes(&all, &args);
        args.name = NULL;
        args.flags = RUEDA_LIVE_AVERAGE | RUEDA_MORE;
        args.priority = -3;
        passes(&all, &args);
        args.set = 5;
        if (kind != RUEDA_JOIN)
            passes(&some, &args);
    }
}

static void words_say_who_and_what(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_ALLGATHER);
    struct rueda_text error = {{0}};
    char name[300];

    (void)state;
    rueda_check_begin(2, &args, &error);
    assert_string_equal(error.chars, "rank 2: allgather \"x\": ");
    memset(name, 'n', sizeof(name));
    name[299] = '\0';
    args.name = name;
    args.set = 5;
    memset(&error, 0, sizeof(error));
    rueda_check_begin(2, &args, &error);
    assert_non_null(strstr(error.chars, "nnn...\" in process set 5: "));
    args.name = NULL;
    memset(&error, 0, sizeof(error));
    rueda_check_begin(2, &args, &error);
    assert_string_equal(error.chars, "rank 2: allgather in process set 5: ");
}

static void only_members_of_a_set_that_is_there_submit(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_BARRIER);

    (void)state;
    args.set = 6;
    refused(NULL, &args, RUEDA_ERR_INVALID, "there is no such process set");
    refused(&others, &args, RUEDA_ERR_INVALID, "rank 2 is not a member");
}

static void only_all_ranks_join(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_JOIN);

    (void)state;
    args.set = 5;
    refused(&some, &args, RUEDA_ERR_INVALID, "only the set of all ranks");
}

static void a_root_is_a_member(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_BROADCAST);

    (void)state;
    args.root = 3;
    passes(&some, &args);
    args.root = 1;
    passes(&all, &args);
    refused(&some, &args, RUEDA_ERR_INVALID, "root rank 1 is not in");
    args.root = 4;
    invalid(&args, "root rank 4 is not in");
    args.root = -1;
    invalid(&args, "root rank -1 is not in");
}

static void messages_go_to_another_member(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_SEND);

    (void)state;
    args.peer = 1;
    passes(&all, &args);
    refused(&some, &args, RUEDA_ERR_INVALID, "peer 1 is not another rank");
    args.peer = 2;
    invalid(&args, "peer 2 is not another rank");
    args.peer = 0;
    args.tag = -1;
    invalid(&args, "tag -1 is negative");
    args.kind = RUEDA_RECV;
    invalid(&args, "tag -1 is negative");
}

static void ordered_operations_have_no_name(void **state)
{
    (void)state;
    for (int kind = RUEDA_ALLREDUCE; kind <= RUEDA_RECV; kind++) {
        struct rueda_submit_args args = args_of((rueda_kind)kind);

        args.flags = RUEDA_ORDERED | RUEDA_MORE;
        invalid(&args, "an ordered operation has no name");
        args.name = NULL;
        args.set = kind == RUEDA_JOIN ? 0 : 5;
        if (kind == RUEDA_JOIN) {
            invalid(&args, "a join cannot be ordered");
            continue;
        }
        passes(&some, &args);
    }
}

static void numbers_and_kinds_are_known_ones(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.dtype = (rueda_dtype)77;
    invalid(&args, "dtype 77 is unknown");
    args.dtype = RUEDA_INT32;
    args.reduction = (rueda_reduction)9;
    invalid(&args, "reduction 9 is unknown");
    args.reduction = RUEDA_SUM;
    args.compression = RUEDA_COMPRESS_FP16;
    invalid(&args, "compression fp16 is for float32 and float64");
    args.compression = RUEDA_COMPRESS_NONE;
    args.flags = 32;
    invalid(&args, "flags 0x20 are unknown");
    args.flags = 0;
    passes(&all, &args);
    args.kind = (rueda_kind)(RUEDA_RECV + 1);
    invalid(&args, "kind 9 is unknown");
    args.kind = (rueda_kind)-1;
    invalid(&args, "kind -1 is unknown");
}

static void adasum_is_for_floats_of_all_ranks(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.reduction = RUEDA_ADASUM;
    passes(&all, &args);
    args.set = 5;
    refused(&some, &args, RUEDA_ERR_UNSUPPORTED, "adasum is done only by all");
    args.set = 0;
    args.dtype = RUEDA_INT32;
    invalid(&args, "adasum takes floating types, not int32");
}

static void a_reduce_scatter_adds_or_averages(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_REDUCE_SCATTER);

    (void)state;
    args.reduction = RUEDA_AVERAGE;
    passes(&all, &args);
    args.reduction = RUEDA_MAX;
    refused(&all, &args, RUEDA_ERR_UNSUPPORTED, "max is not done here");
}

static void of_accelerators_only_messages_are_refused(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.device = 0;
    passes(&all, &args);
    args.device = -2;
    refused(&all, &args, RUEDA_ERR_INVALID, "device -2 is unknown");
    args = args_of(RUEDA_SEND);
    args.peer = 0;
    args.device = 0;
    refused(&all, &args, RUEDA_ERR_UNSUPPORTED,
            "the tensor is on accelerator 0");
}

static void what_is_given_away_has_rows(void **state)
{
    static const rueda_kind kinds[] = {RUEDA_ALLGATHER, RUEDA_ALLTOALL,
                                       RUEDA_REDUCE_SCATTER};
    struct rueda_submit_args args;

    (void)state;
    for (int i = 0; i < 3; i++) {
        args = args_of(kinds[i]);
        args.dims = 0; /* which is for all ranks to hear of */
        passes(&all, &args);
    }
    args = args_of(RUEDA_ALLREDUCE);
    args.dims = 0;
    args.shape = NULL;
    passes(&all, &args);
}

static void a_shape_is_possible(void **state)
{
    static const size_t huge[] = {0, SIZE_MAX / 2, 3};
    struct rueda_submit_args args = args_of(RUEDA_ALLREDUCE);
    size_t ones[RUEDA_MAX_DIMS + 1];

    (void)state;
    for (int i = 0; i <= RUEDA_MAX_DIMS; i++)
        ones[i] = 1;
    args.shape = ones;
    args.dims = RUEDA_MAX_DIMS;
    passes(&all, &args);
    args.dims++;
    invalid(&args, "a tensor of 33 dimensions; it may have 0 to 32");
    args.dims = -1;
    invalid(&args, "a tensor of -1 dimensions");
    args.dims = 2;
    args.shape = NULL;
    invalid(&args, "the shape is NULL; give 2 numbers");
    args.shape = huge;
    args.dims = 3;
    invalid(&args, "the shape has more elements than fit");
    args.shape = huge + 1;
    args.dims = 1;
    invalid(&args, "the shape has more elements than fit");
}

static void splits_add_up_to_the_rows_or_less(void **state)
{
    static const size_t fit[] = {0, 12, 0, 0};
    static const size_t less[] = {1, 2, 3, 4};
    static const size_t more[] = {1, 2, 3, 7};
    static const size_t wrapped[] = {1, SIZE_MAX, 1, 1};
    struct rueda_submit_args args = args_of(RUEDA_ALLTOALL);

    (void)state;
    args.splits = fit;
    passes(&all, &args);
    args.splits = less;
    passes(&all, &args);
    passes(&some, &args); /* three of them */
    args.splits = more;
    invalid(&args, "splits add up to more rows than the 12 of the tensor");
    args.splits = wrapped;
    invalid(&args, "splits add up to more rows than the 12 of the tensor");
}

static void without_splits_rows_divide_evenly(void **state)
{
    static const size_t odd[] = {10, 2};
    static const size_t none[] = {0, 2};
    struct rueda_submit_args args = args_of(RUEDA_ALLTOALL);

    (void)state;
    args.dims = 2;
    args.shape = odd;
    invalid(&args, "10 rows do not divide evenly among 4 ranks");
    args.shape = none;
    passes(&all, &args);
}

static void *no_room(void *arg, size_t rows, size_t bytes)
{
    (void)arg;
    (void)rows;
    (void)bytes;
    return NULL;
}

static void results_have_somewhere_to_go(void **state)
{
    static const size_t none[] = {0, 2};
    static const size_t one[] = {1, 2};
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE,      RUEDA_ALLGATHER,
                                       RUEDA_BROADCAST,      RUEDA_ALLTOALL,
                                       RUEDA_REDUCE_SCATTER, RUEDA_RECV};

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct rueda_submit_args args = args_of(kinds[i]);
        bool is_open =
            kinds[i] == RUEDA_ALLGATHER || kinds[i] == RUEDA_ALLTOALL;

        args.recv = NULL;
        invalid(&args, "recv is NULL and there is no alloc");
        args.alloc = no_room;
        passes(&all, &args);
        args.alloc = NULL;
        args.dims = 2;
        args.shape = none;
        /* Others may have rows where I have none. */
        if (is_open)
            invalid(&args, "recv is NULL and there is no alloc");
        else
            passes(&all, &args);
        args.shape = one;
        if (kinds[i] == RUEDA_REDUCE_SCATTER)
            passes(&all, &args); /* the row is for the lowest */
    }
}

static void what_is_sent_comes_from_somewhere(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.send = NULL;
    invalid(&args, "send is NULL");
    args.kind = RUEDA_SEND;
    invalid(&args, "send is NULL");
    args.kind = RUEDA_BROADCAST;
    passes(&all, &args);
    args.root = 2;
    invalid(&args, "send is NULL");
}

static void send_and_recv_lie_apart_or_are_the_same(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.recv = room;
    passes(&all, &args);
    args.recv = room + 71;
    invalid(&args, "send and recv overlap");
    args.recv = room + 72;
    passes(&all, &args);
    args.recv = room + 10;
    args.kind = RUEDA_ALLGATHER;
    passes(&all, &args);
    args.kind = RUEDA_REDUCE_SCATTER;
    invalid(&args, "send and recv overlap");
    args.recv = room;
    invalid(&args, "send and recv overlap");
    args.kind = RUEDA_ALLTOALL;
    invalid(&args, "send and recv overlap");
}

static void a_name_has_at_most_64_kib(void **state)
{
    struct rueda_submit_args args = args_of(RUEDA_ALLREDUCE);
    char *name = calloc(1, RUEDA_MAX_NAME_BYTES + 2);

    (void)state;
    memset(name, 'n', RUEDA_MAX_NAME_BYTES);
    args.name = name;
    passes(&all, &args);
    name[RUEDA_MAX_NAME_BYTES] = 'n';
    invalid(&args, "the name has over 65535 bytes");
    free(name);
}

static void the_lowest_members_get_one_row_more(void **state)
{
    (void)state;
    assert_int_equal(rueda_share_of(10, 4, 0), 3);
    assert_int_equal(rueda_share_of(10, 4, 1), 3);
    assert_int_equal(rueda_share_of(10, 4, 2), 2);
    assert_int_equal(rueda_share_of(2, 4, 1), 1);
    assert_int_equal(rueda_share_of(2, 4, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_passes_with_good_arguments),
        cmocka_unit_test(words_say_who_and_what),
        cmocka_unit_test(only_members_of_a_set_that_is_there_submit),
        cmocka_unit_test(only_all_ranks_join),
        cmocka_unit_test(a_root_is_a_member),
        cmocka_unit_test(messages_go_to_another_member),
        cmocka_unit_test(ordered_operations_have_no_name),
        cmocka_unit_test(numbers_and_kinds_are_known_ones),
        cmocka_unit_test(adasum_is_for_floats_of_all_ranks),
        cmocka_unit_test(a_reduce_scatter_adds_or_averages),
        cmocka_unit_test(of_accelerators_only_messages_are_refused),
        cmocka_unit_test(what_is_given_away_has_rows),
        cmocka_unit_test(a_shape_is_possible),
        cmocka_unit_test(splits_add_up_to_the_rows_or_less),
        cmocka_unit_test(without_splits_rows_divide_evenly),
        cmocka_unit_test(results_have_somewhere_to_go),
        cmocka_unit_test(what_is_sent_comes_from_somewhere),
        cmocka_unit_test(send_and_recv_lie_apart_or_are_the_same),
        cmocka_unit_test(a_name_has_at_most_64_kib),
        cmocka_unit_test(the_lowest_members_get_one_row_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
