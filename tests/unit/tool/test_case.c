/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tool/case.h"
#include "tool/pattern.h"

static struct rueda_case case_of(rueda_bench_op op, int size, size_t bytes)
{
    struct rueda_case work = {
        .op = op,
        .dtype = RUEDA_FLOAT32,
        .reduction = RUEDA_SUM,
        .size = size,
    };

    rueda_case_set_bytes(&work, bytes);
    return work;
}

/* What an allreduce must do with the buffers of all ranks, plainly. */
static void allreduce(const struct rueda_case *work, float (*bufs)[250])
{
    for (size_t i = 0; i < work->count; i++) {
        float sum = 0.0f;

        for (int rank = 0; rank < work->size; rank++)
            sum += bufs[rank][i];
        for (int rank = 0; rank < work->size; rank++)
            bufs[rank][i] = sum;
    }
}

static void sizes_and_factors_are_those_of_nccl_tests(void **state)
{
    const struct rueda_case reduce = case_of(RUEDA_BENCH_ALLREDUCE, 4, 4096);
    const struct rueda_case gather = case_of(RUEDA_BENCH_ALLGATHER, 4, 4096);
    const struct rueda_case little = case_of(RUEDA_BENCH_ALLTOALL, 3, 8);
    const struct rueda_case none = case_of(RUEDA_BENCH_BARRIER, 4, 4096);

    (void)state;
    assert_true(rueda_case_bytes(&reduce) == 4096);
    assert_true(rueda_case_send_bytes(&reduce) == 0);
    assert_true(rueda_case_bus_factor(&reduce) == 1.5);
    assert_true(rueda_case_bytes(&gather) == 4096);
    assert_true(rueda_case_send_bytes(&gather) == 1024);
    assert_true(rueda_case_bus_factor(&gather) == 0.75);
    assert_true(rueda_case_bytes(&little) == 12);
    assert_true(rueda_case_bytes(&none) == 0);
}

static void in_an_exchange_each_has_what_was_the_others(void **state)
{
    const struct rueda_case work = case_of(RUEDA_BENCH_EXCHANGE, 2, 1000);
    float send[2][250];
    float recv[250];
    char words[256];

    (void)state;
    assert_true(rueda_case_send_bytes(&work) == 1000);
    assert_true(rueda_case_recv_bytes(&work) == 1000);
    for (int rank = 0; rank < 2; rank++) {
        rueda_case_fill(&work, rank, send[rank], recv);
        assert_false(
            rueda_case_check(&work, rank, 1, recv, words, sizeof(words)));
        assert_false(
            rueda_case_check(&work, rank, 1, send[rank], words, sizeof(words)));
    }
    for (int rank = 0; rank < 2; rank++)
        assert_true(rueda_case_check(&work, rank, 1, send[1 - rank], words,
                                     sizeof(words)));
}

static void repeated_sums_stay_exact_as_long_as_is_promised(void **state)
{
    (void)state;
    for (int size = 1; size <= 5; size++) {
        const struct rueda_case work =
            case_of(RUEDA_BENCH_ALLREDUCE, size, 1000);
        const unsigned most = rueda_case_max_iterations(&work);
        const unsigned times = most > 200 ? 200 : most;
        float bufs[5][250];
        char words[256];

        assert_true(most >= 50);
        for (int rank = 0; rank < size; rank++)
            rueda_case_fill(&work, rank, NULL, bufs[rank]);
        for (unsigned i = 0; i < times; i++)
            allreduce(&work, bufs);
        for (int rank = 0; rank < size; rank++) {
            assert_true(isfinite(bufs[rank][0]));
            assert_true(rueda_case_check(&work, rank, times, bufs[rank], words,
                                         sizeof(words)));
        }
    }
}

static void a_wrong_number_is_found_and_named(void **state)
{
    const struct rueda_case work = case_of(RUEDA_BENCH_ALLGATHER, 2, 80000);
    char *send = malloc(40000);
    char *recv = malloc(80000);
    char words[256];

    (void)state;
    assert_non_null(send);
    assert_non_null(recv);
    rueda_case_fill(&work, 0, send, recv);
    memcpy(recv, send, 40000);
    memcpy(recv + 40000, send, 40000);
    /* Rank 1 sends what rank 0 does not. */
    assert_false(rueda_case_check(&work, 0, 1, recv, words, sizeof(words)));
    assert_string_equal(words,
                        "wrong answer: allgather of 80000 bytes, rank 0, "
                        "index 10000: got 1, wanted 6");
    free(recv);
    free(send);
}

static void a_chunk_in_the_wrong_place_is_found(void **state)
{
    const struct rueda_case work = case_of(RUEDA_BENCH_BROADCAST, 2, 65536);
    char *recv = malloc(65536);
    char words[256];

    (void)state;
    assert_non_null(recv);
    for (size_t chunk = 4; chunk <= 32768; chunk *= 2) {
        rueda_case_fill(&work, 0, NULL, recv);
        assert_true(rueda_case_check(&work, 1, 1, recv, words, sizeof(words)));
        memmove(recv, recv + chunk, 65536 - chunk);
        assert_false(rueda_case_check(&work, 1, 1, recv, words, sizeof(words)));
    }
    free(recv);
}

static void what_was_not_received_is_found(void **state)
{
    (void)state;
    for (int op = 0; op < RUEDA_BENCH_OP_COUNT; op++) {
        const struct rueda_case work = case_of((rueda_bench_op)op, 2, 1024);
        char send[1024];
        char recv[1024];
        char words[256];

        rueda_case_fill(&work, 1, send, recv);
        assert_true(rueda_case_check(&work, 1, 1, recv, words, sizeof(words)) ==
                    (op == RUEDA_BENCH_BARRIER));
    }
}

static void numbers_of_every_dtype_come_back(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++) {
        const int most = dtype == RUEDA_BOOL ? 1 : 100;
        uint64_t room;

        for (int value = 0; value <= most; value++) {
            rueda_number_encode((rueda_dtype)dtype, value, &room);
            assert_true(rueda_number_decode((rueda_dtype)dtype, &room) ==
                        value);
        }
    }
}

static void halves_are_rounded_to_even(void **state)
{
    static const struct {
        double value;
        unsigned half;
        unsigned bfloat;
    } known[] = {
        {1.0, 0x3c00, 0x3f80},     {-2.5, 0xc100, 0xc020},
        {2049.0, 0x6800, 0x4500},  {2051.0, 0x6802, 0x4500},
        {65504.0, 0x7bff, 0x4780}, {65520.0, 0x7c00, 0x4780},
        {0x1p-24, 0x0001, 0x3380}, {0x1p-14, 0x0400, 0x3880},
        {257.0, 0x5c04, 0x4380},   {259.0, 0x5c0c, 0x4382},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint16_t bits;

        rueda_number_encode(RUEDA_FLOAT16, known[i].value, &bits);
        assert_int_equal(bits, known[i].half);
        rueda_number_encode(RUEDA_BFLOAT16, known[i].value, &bits);
        assert_int_equal(bits, known[i].bfloat);
    }
}

static void a_nan_is_a_mistake_even_where_roundings_are_allowed(void **state)
{
    const struct rueda_case work = case_of(RUEDA_BENCH_ALLREDUCE, 3, 400);
    float buf[100];
    char words[256];

    (void)state;
    for (int i = 0; i < 100; i++)
        buf[i] = NAN;
    assert_false(rueda_case_check(&work, 0, 1, buf, words, sizeof(words)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_factors_are_those_of_nccl_tests),
        cmocka_unit_test(in_an_exchange_each_has_what_was_the_others),
        cmocka_unit_test(repeated_sums_stay_exact_as_long_as_is_promised),
        cmocka_unit_test(a_wrong_number_is_found_and_named),
        cmocka_unit_test(a_chunk_in_the_wrong_place_is_found),
        cmocka_unit_test(what_was_not_received_is_found),
        cmocka_unit_test(numbers_of_every_dtype_come_back),
        cmocka_unit_test(halves_are_rounded_to_even),
        cmocka_unit_test(a_nan_is_a_mistake_even_where_roundings_are_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
