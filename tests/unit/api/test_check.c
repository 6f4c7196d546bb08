/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 1 of 4, with 1 MiB to keep inputs in. */
#include "api/check.h"
#include "unit/unit.h"

static const struct rueda_limits limits = {.rank = 1, .size = 4};

static float room[4096];

/* 10 floats from a place to another one that is far enough. */
static struct rueda_coll_args args_of(rueda_kind kind)
{
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;

    args.kind = kind;
    args.count = 10;
    args.send = room;
    args.recv = room + 1000;
    return args;
}

static void check_passes(const struct rueda_coll_args *args)
{
    struct rueda_text error = {{0}};

    assert_int_equal(rueda_check_coll(&limits, args, &error), RUEDA_OK);
    assert_true(rueda_text_is_empty(&error));
}

static void check_refused(const struct rueda_coll_args *args, const char *words)
{
    struct rueda_text error = {{0}};

    assert_int_equal(rueda_check_coll(&limits, args, &error),
                     RUEDA_ERR_INVALID);
    assert_string_equal(error.chars, words);
}

static void every_kind_passes_with_good_arguments(void **state)
{
    static const size_t counts[4] = {3, 10, 0, 7};

    (void)state;
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++) {
        struct rueda_coll_args args = args_of((rueda_kind)kind);

        check_passes(&args);
        args.recv_counts = counts;
        if (kind == RUEDA_ALLTOALL)
            args.send_counts = counts;
        check_passes(&args);
        args.struct_size += 16; /* of a later version */
        check_passes(&args);
    }
}

static void every_dtype_and_reduction_passes_in_an_allreduce(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (int r = 0; r < RUEDA_ADASUM; r++) {
            args.dtype = (rueda_dtype)dtype;
            args.reduction = (rueda_reduction)r;
            check_passes(&args);
        }
    args.reduction = RUEDA_ADASUM;
    args.dtype = RUEDA_FLOAT16;
    check_passes(&args);
    args.dtype = RUEDA_BFLOAT16;
    check_passes(&args);
    args.dtype = RUEDA_FLOAT64;
    check_passes(&args);
}

static void arguments_that_were_not_initialised_are_refused(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.struct_size = 8;
    check_refused(&args, "struct_size of the arguments is 8; initialise them "
                         "with RUEDA_COLL_ARGS_INIT");
}

static void what_is_unknown_is_refused(void **state)
{
    struct rueda_coll_args args = args_of((rueda_kind)6);

    (void)state;
    check_refused(&args, "kind 6 is unknown");
    args.kind = (rueda_kind)-1;
    check_refused(&args, "kind -1 is unknown");
    args = args_of(RUEDA_ALLREDUCE);
    args.dtype = (rueda_dtype)11;
    check_refused(&args, "dtype 11 is unknown");
    args = args_of(RUEDA_ALLREDUCE);
    args.reduction = (rueda_reduction)6;
    check_refused(&args, "reduction 6 is unknown");
    args.reduction = (rueda_reduction)-1;
    check_refused(&args, "reduction -1 is unknown");
}

static void adasum_is_an_allreduce_of_floating_numbers(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.reduction = RUEDA_ADASUM;
    args.dtype = RUEDA_INT32;
    check_refused(&args, "adasum takes floating types, not int32");
    args.dtype = RUEDA_FLOAT32;
    args.kind = RUEDA_REDUCE_SCATTER;
    check_refused(&args, "adasum is an allreduce, not a reducescatter");
}

static void compression_is_for_sums_of_wide_floats(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.compression = RUEDA_COMPRESS_FP16;
    check_passes(&args);
    args.compression = RUEDA_COMPRESS_BF16;
    args.dtype = RUEDA_FLOAT64;
    args.reduction = RUEDA_AVERAGE;
    check_passes(&args);
    args.reduction = RUEDA_MAX;
    check_refused(&args,
                  "compression bf16 is for sum and average, not for max");
    args.reduction = RUEDA_SUM;
    args.dtype = RUEDA_INT32;
    check_refused(&args,
                  "compression bf16 is for float32 and float64, not for int32");
    args.dtype = RUEDA_FLOAT16;
    check_refused(
        &args, "compression bf16 is for float32 and float64, not for float16");
    args.compression = (rueda_compression)3;
    check_refused(&args, "compression 3 is unknown");
    args = args_of(RUEDA_BROADCAST);
    args.root = 0;
    args.compression = RUEDA_COMPRESS_FP16;
    check_refused(&args,
                  "compression fp16 is for allreduce, not for broadcast");
}

static void who_does_not_know_compression_asks_for_none(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_BROADCAST);

    (void)state;
    args.compression = (rueda_compression)77;
    args.struct_size = RUEDA_FIRST_COLL_ARGS_BYTES;
    check_passes(&args);
}

static void a_root_is_one_of_the_ranks(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_BROADCAST);

    (void)state;
    args.root = 3;
    check_passes(&args);
    args.root = 4;
    check_refused(&args, "broadcast from root 4 in a job of 4 ranks");
    args.root = -1;
    check_refused(&args, "broadcast from root -1 in a job of 4 ranks");
    args.kind = RUEDA_ALLREDUCE; /* where it is not looked at */
    check_passes(&args);
}

static void alltoall_takes_both_lists_or_none(void **state)
{
    static const size_t counts[4] = {1, 2, 3, 4};
    struct rueda_coll_args args = args_of(RUEDA_ALLTOALL);
    const char *words = "alltoall with only one of send_counts and "
                        "recv_counts; give both or neither";

    (void)state;
    args.send_counts = counts;
    check_refused(&args, words);
    args.recv_counts = counts;
    check_passes(&args);
    args.send_counts = NULL;
    check_refused(&args, words);
}

static void more_elements_than_fit_any_memory_are_refused(void **state)
{
    static const size_t wrapping[4] = {SIZE_MAX, 10, SIZE_MAX - 8, 7};
    struct rueda_coll_args args;

    (void)state;
    for (int kind = 0; kind < RUEDA_BARRIER; kind++) {
        char words[128];

        args = args_of((rueda_kind)kind);
        args.count = SIZE_MAX / 16 + 1;
        snprintf(words, sizeof(words),
                 "%s of more elements than fit any memory",
                 rueda_kind_str((rueda_kind)kind));
        check_refused(&args, words);
        args.count = SIZE_MAX;
        check_refused(&args, words);
    }
    args = args_of(RUEDA_ALLGATHER);
    args.recv_counts = wrapping;
    check_refused(&args, "allgather of more elements than fit any memory");
    args = args_of(RUEDA_ALLTOALL);
    args.count = SIZE_MAX / 32;
    check_refused(&args, "alltoall of more elements than fit any memory");
}

static void buffers_that_are_used_are_there(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.send = NULL;
    check_refused(&args, "allreduce with send NULL");
    args.send = room;
    args.recv = NULL;
    check_refused(&args, "allreduce with recv NULL");
    args.send = NULL;
    args.count = 0;
    check_passes(&args);
    args = args_of(RUEDA_BARRIER);
    args.send = NULL;
    args.recv = NULL;
    check_passes(&args);
}

static void a_buffer_of_no_elements_may_be_missing(void **state)
{
    static const size_t none_for_me[4] = {5, 0, 5, 5};
    struct rueda_coll_args args = args_of(RUEDA_REDUCE_SCATTER);

    (void)state;
    args.recv_counts = none_for_me;
    args.recv = NULL;
    check_passes(&args);
    args.send = NULL;
    check_refused(&args, "reducescatter with send NULL");
    args = args_of(RUEDA_ALLGATHER);
    args.recv_counts = none_for_me;
    args.count = 0;
    args.send = NULL;
    check_passes(&args);
    args.recv = NULL;
    check_refused(&args, "allgather with recv NULL");
}

static void my_part_of_an_allgather_is_what_the_list_says(void **state)
{
    static const size_t counts[4] = {10, 9, 10, 10};
    struct rueda_coll_args args = args_of(RUEDA_ALLGATHER);

    (void)state;
    args.recv_counts = counts;
    check_refused(&args, "allgather of 10 elements, but recv_counts[1] is 9");
}

static void an_allreduce_or_broadcast_may_be_in_place(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.recv = room;
    check_passes(&args);
    args.kind = RUEDA_BROADCAST;
    check_passes(&args);
}

#define APART                                                                  \
    "they must be the same for an allreduce or broadcast in place, or apart"

static void buffers_that_overlap_otherwise_are_refused(void **state)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_BROADCAST,
                                       RUEDA_ALLTOALL, RUEDA_REDUCE_SCATTER};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct rueda_coll_args args = args_of(kinds[i]);
        char words[160];

        snprintf(words, sizeof(words), "%s: send and recv overlap; " APART,
                 rueda_kind_str(kinds[i]));
        args.root = limits.rank;
        args.recv = room + 1;
        check_refused(&args, words);
        args.send = room + 9;
        args.recv = room;
        check_refused(&args, words);
        if (i >= 2) {
            args.recv = room + 9;
            check_refused(&args, words);
        }
    }
}

static void buffers_that_touch_are_apart(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.recv = room + 10;
    check_passes(&args);
    args.send = room + 20;
    check_passes(&args);
    args = args_of(RUEDA_REDUCE_SCATTER);
    args.recv = room + 40;
    check_passes(&args);
    args.recv = room + 39;
    check_refused(&args, "reducescatter: send and recv overlap; " APART);
}

static void an_allgather_in_place_sends_its_own_part(void **state)
{
    static const size_t counts[4] = {7, 10, 1, 2};
    struct rueda_coll_args args = args_of(RUEDA_ALLGATHER);
    const char *words = "allgather: send and recv overlap; in place, send is "
                        "my own part of recv";

    (void)state;
    args.recv = room;
    args.send = room + 10;
    check_passes(&args);
    args.send = room + 9;
    check_refused(&args, words);
    args.send = room;
    check_refused(&args, words);
    args.recv_counts = counts;
    args.send = room + 7;
    check_passes(&args);
    args.send = room + 10;
    check_refused(&args, words);
}

static void flags_that_are_unknown_are_refused(void **state)
{
    struct rueda_coll_args args = args_of(RUEDA_ALLREDUCE);

    (void)state;
    args.flags = 8;
    check_refused(&args, "flags 0x8 are unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_passes_with_good_arguments),
        cmocka_unit_test(every_dtype_and_reduction_passes_in_an_allreduce),
        cmocka_unit_test(arguments_that_were_not_initialised_are_refused),
        cmocka_unit_test(what_is_unknown_is_refused),
        cmocka_unit_test(adasum_is_an_allreduce_of_floating_numbers),
        cmocka_unit_test(compression_is_for_sums_of_wide_floats),
        cmocka_unit_test(who_does_not_know_compression_asks_for_none),
        cmocka_unit_test(a_root_is_one_of_the_ranks),
        cmocka_unit_test(alltoall_takes_both_lists_or_none),
        cmocka_unit_test(more_elements_than_fit_any_memory_are_refused),
        cmocka_unit_test(buffers_that_are_used_are_there),
        cmocka_unit_test(a_buffer_of_no_elements_may_be_missing),
        cmocka_unit_test(my_part_of_an_allgather_is_what_the_list_says),
        cmocka_unit_test(an_allreduce_or_broadcast_may_be_in_place),
        cmocka_unit_test(buffers_that_overlap_otherwise_are_refused),
        cmocka_unit_test(buffers_that_touch_are_apart),
        cmocka_unit_test(an_allgather_in_place_sends_its_own_part),
        cmocka_unit_test(flags_that_are_unknown_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
