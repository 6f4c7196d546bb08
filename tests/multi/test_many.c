/* SPDX-License-Identifier: Apache-2.0 */
/* More ranks than a block has cache lines to spare for each of them. */
#include <rueda/rueda.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_rank.h"

#define MANY 100
#define ODD  49 /* 49 times the nearest number to 1/49 is below 1 */

struct one {
    rueda_ctx *ctx;
    rueda_status (*act)(rueda_ctx *ctx);
    rueda_status status;
};

static void *live(void *arg)
{
    struct one *one = arg;

    one->status = one->act(one->ctx);
    return NULL;
}

/* All ranks act, each on its own thread. */
static void check_all(int size, rueda_status (*act)(rueda_ctx *ctx))
{
    static rueda_ctx *ctx[MANY];
    static struct one ones[MANY];
    static pthread_t threads[MANY];

    assert_int_equal(rueda_init_threads(size, NULL, ctx), RUEDA_OK);
    for (int i = 0; i < size; i++) {
        ones[i] = (struct one){.ctx = ctx[i], .act = act};
        assert_int_equal(pthread_create(&threads[i], NULL, live, &ones[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < size; i++) {
        assert_int_equal(ones[i].status, RUEDA_OK);
        rueda_shutdown(ctx[i]);
    }
}

static rueda_status exchange(rueda_ctx *ctx, size_t count)
{
    int32_t send[2 * MANY];
    int32_t recv[2 * MANY];
    rueda_status status;

    for (int i = 0; i < 2 * MANY; i++)
        send[i] = 1000 * rueda_rank(ctx) + i;
    status = rueda_alltoall(ctx, send, recv, count, RUEDA_INT32);
    for (int from = 0; from < rueda_size(ctx); from++)
        for (size_t i = 0; i < count; i++) {
            size_t mine = (size_t)rueda_rank(ctx) * count + i;

            if (status == RUEDA_OK &&
                recv[(size_t)from * count + i] != 1000 * from + (int32_t)mine)
                status = RUEDA_ERR_MISMATCH;
        }
    return status;
}

static rueda_status exchange_none_and_some(rueda_ctx *ctx)
{
    rueda_status status = exchange(ctx, 0);

    if (status == RUEDA_OK)
        status = exchange(ctx, 1);
    return status == RUEDA_OK ? exchange(ctx, 2) : status;
}

static void a_hundred_ranks_exchange_little_or_nothing(void **state)
{
    (void)state;
    check_all(MANY, exchange_none_and_some);
}

static rueda_status scatter_none_and_some(rueda_ctx *ctx)
{
    const int size = rueda_size(ctx);
    int32_t send[MANY];
    int32_t recv = -1;
    rueda_status status;

    for (int i = 0; i < size; i++)
        send[i] = rueda_rank(ctx) + i;
    status = rueda_reduce_scatter(ctx, send, &recv, 0, RUEDA_INT32, RUEDA_SUM);
    if (status == RUEDA_OK && recv != -1)
        status = RUEDA_ERR_MISMATCH;
    if (status == RUEDA_OK)
        status =
            rueda_reduce_scatter(ctx, send, &recv, 1, RUEDA_INT32, RUEDA_SUM);
    if (status == RUEDA_OK &&
        recv != size * (size - 1) / 2 + size * rueda_rank(ctx))
        status = RUEDA_ERR_MISMATCH;
    return status;
}

static void a_hundred_ranks_scatter_little_or_nothing(void **state)
{
    (void)state;
    check_all(MANY, scatter_none_and_some);
}

static rueda_status average_whole_numbers(rueda_ctx *ctx)
{
    static const int32_t wanted[] = {0, 1, -1, 7, 48, -3};
    int32_t numbers[6];
    rueda_status status;

    memcpy(numbers, wanted, sizeof(numbers));
    /* The last has a remainder, which is cut off. */
    numbers[5] -= rueda_rank(ctx) == 0 ? ODD - 1 : 0;
    status =
        rueda_allreduce(ctx, numbers, numbers, 6, RUEDA_INT32, RUEDA_AVERAGE);
    if (status == RUEDA_OK && memcmp(numbers, wanted, sizeof(numbers)) != 0)
        status = RUEDA_ERR_MISMATCH;
    return status;
}

/* Beyond what a double holds. */
static rueda_status average_large_numbers(rueda_ctx *ctx)
{
    static const int64_t wanted[] = {((int64_t)1 << 53) + 1, -(INT64_MAX / ODD),
                                     INT64_MAX / ODD};
    int64_t numbers[3];
    rueda_status status;

    memcpy(numbers, wanted, sizeof(numbers));
    status =
        rueda_allreduce(ctx, numbers, numbers, 3, RUEDA_INT64, RUEDA_AVERAGE);
    if (status == RUEDA_OK && memcmp(numbers, wanted, sizeof(numbers)) != 0)
        status = RUEDA_ERR_MISMATCH;
    return status;
}

static void an_average_of_whole_numbers_is_exact(void **state)
{
    (void)state;
    check_all(ODD, average_whole_numbers);
    check_all(ODD, average_large_numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_ranks_exchange_little_or_nothing),
        cmocka_unit_test(a_hundred_ranks_scatter_little_or_nothing),
        cmocka_unit_test(an_average_of_whole_numbers_is_exact),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
