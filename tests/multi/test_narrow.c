/* SPDX-License-Identifier: Apache-2.0 */
/* Operations between some ranks of a job, for tools that look at pairs. */
#include "api/internal.h"
#include "support/coll_check.h"

#define ROUNDS 50

/* Exchange numbers with the other of a pair; -1: with nobody. */
static int swap_with(struct party *me, int peer)
{
    const int place = me->rank < peer ? 0 : 1;
    const int alone[] = {me->rank};
    const int pair[] = {place == 0 ? me->rank : peer,
                        place == 0 ? peer : me->rank};
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
    const int sent = 100 + me->rank;
    size_t counts[3] = {0};
    int got = -1;

    if (peer >= 0)
        counts[1 - place] = 1;
    args.kind = RUEDA_ALLTOALL;
    args.dtype = RUEDA_INT32;
    args.send = &sent;
    args.recv = &got;
    args.send_counts = counts;
    args.recv_counts = counts;
    if (party_expect(me,
                     peer >= 0 ? rueda_internal_narrow(me->ctx, pair, 2)
                               : rueda_internal_narrow(me->ctx, alone, 1),
                     RUEDA_OK, "narrow") != 0 ||
        party_expect(me, rueda_run(me->ctx, &args), RUEDA_OK, "exchange") != 0)
        return 1;
    if (got != (peer >= 0 ? 100 + peer : -1))
        return party_says(me, "got %d from rank %d", got, peer);
    return 0;
}

static int meet_in_pairs(struct party *me)
{
    int sum = me->rank;

    for (int round = 0; round < ROUNDS; round++) {
        const int alone = round % 3;
        const int peer = me->rank == alone ? -1 : 3 - alone - me->rank;

        if (swap_with(me, peer) != 0)
            return 1;
    }
    if (party_expect(me, rueda_internal_narrow(me->ctx, NULL, 0), RUEDA_OK,
                     "widen") != 0 ||
        party_expect(
            me, rueda_allreduce(me->ctx, &sum, &sum, 1, RUEDA_INT32, RUEDA_SUM),
            RUEDA_OK, "allreduce") != 0)
        return 1;
    return sum == 3 ? 0 : party_says(me, "the sum of all is %d", sum);
}

static void ranks_meet_in_pairs_and_then_all_again(void **state)
{
    party_run(*state, 3, meet_in_pairs, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PARTY_TEST(ranks_meet_in_pairs_and_then_all_again, processes_messages),
        PARTY_TEST(ranks_meet_in_pairs_and_then_all_again, threads_messages),
    };

    party_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
