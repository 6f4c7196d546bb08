/* SPDX-License-Identifier: Apache-2.0 */
/* Sets that are made and dropped again and again take no more memory than those
 * that are there, while other threads look at them all the time. */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support/named_op.h"
#include "support/processes.h"

#define RANKS  2
#define MOST   40 /* sets that are there */
#define ROUNDS (RANK_IS_SLOW ? 100 : 2000)
#define FIRST  RUEDA_PRIVATE_SETS

/* A list of the sets, a copy of one, or a lane that stayed would be more. */
#define MOST_BYTES ((size_t)ROUNDS * 40)

struct reader {
    struct test_rank *me;
    atomic_int latest; /* a set that is there, or was a moment ago */
    atomic_bool is_over;
    int failed;
    pthread_t thread;
};

static void *look(void *arg)
{
    struct reader *reader = arg;

    while (!atomic_load(&reader->is_over)) {
        const int set = atomic_load(&reader->latest);
        int ranks[RANKS] = {-1, -1};
        const int count = rueda_set_ranks(reader->me->ctx, set, ranks, RANKS);

        if (count == RANKS && (ranks[0] != 0 || ranks[1] != 1))
            reader->failed++;
        if (count == 1 && (ranks[0] < 0 || ranks[0] >= RANKS))
            reader->failed++;
        if (rueda_set_size(reader->me->ctx, set) > RANKS)
            reader->failed++;
        sched_yield();
    }
    return NULL;
}

static int begin_looking(struct reader *reader, struct test_rank *me)
{
    reader->me = me;
    atomic_init(&reader->latest, 0);
    atomic_init(&reader->is_over, false);
    reader->failed = 0;
    return pthread_create(&reader->thread, NULL, look, reader);
}

static int end_looking(struct reader *reader)
{
    atomic_store(&reader->is_over, true);
    pthread_join(reader->thread, NULL);
    return reader->failed;
}

static size_t used_bytes(void)
{
    return mallinfo2().uordblks;
}

static rueda_status finish(struct test_rank *me, rueda_status status,
                           const rueda_handle *handle)
{
    return status == RUEDA_OK ? rueda_wait(me->ctx, *handle, RANK_DEADLINE_MS)
                              : status;
}

/* ---- Two ways to make one ----------------------------------------------- */

static const int both[] = {0, 1};

/* No two of these have the same ranks, so there can be two at a time. */
static int make_public(struct test_rank *me, int round)
{
    return named_add_set(me, &both[round % 2], 1);
}

static rueda_status drop_public(struct test_rank *me, int set)
{
    return named_drop_set(me, set);
}

static int make_private(struct test_rank *me, int round)
{
    rueda_handle handle = 0;
    rueda_status status =
        rueda_set_open_async(me->ctx, both, RANKS, FIRST + round, &handle);

    return finish(me, status, &handle) == RUEDA_OK ? FIRST + round : -1;
}

static rueda_status drop_private(struct test_rank *me, int set)
{
    rueda_handle handle = 0;

    return finish(me, rueda_set_close_async(me->ctx, set, &handle), &handle);
}

/* ---- Again and again ------------------------------------------------------
 */

struct way {
    int alive;    /* sets at a time, at most MOST */
    size_t slack; /* lanes that end a moment later, each 350 KB */
    int (*make)(struct test_rank *me, int round);
    rueda_status (*drop)(struct test_rank *me, int set);
};

/* Each round makes one set and drops the oldest. */
static int rounds(struct test_rank *me, const struct way *way,
                  struct reader *reader)
{
    int sets[MOST];
    size_t before = 0;
    size_t after;

    for (int i = 0; i < 2 * way->alive + ROUNDS; i++) {
        int *set = &sets[i % way->alive];

        if (i >= way->alive &&
            rank_expect(me, way->drop(me, *set), RUEDA_OK, "drop") != 0)
            return 1;
        *set = way->make(me, i);
        if (*set < 0)
            return rank_says(me, "round %d makes no set", i);
        atomic_store(&reader->latest, *set);
        if (i == 2 * way->alive)
            before = used_bytes();
    }
    after = used_bytes();
    for (int i = 0; i < way->alive; i++)
        if (rank_expect(me, way->drop(me, sets[i]), RUEDA_OK, "the last") != 0)
            return 1;
    if (after > before + MOST_BYTES + way->slack)
        return rank_says(me, "%zu bytes became %zu", before, after);
    return 0;
}

static int go(struct test_rank *me, const struct way *way)
{
    struct reader reader;
    int failed;

    if (begin_looking(&reader, me) != 0)
        return rank_says(me, "no thread");
    failed = rounds(me, way, &reader);
    if (end_looking(&reader) > 0)
        failed += rank_says(me, "a reader saw a set that never was");
    return failed;
}

static int go_public(struct test_rank *me)
{
    static const struct way way = {2, 0, make_public, drop_public};

    return go(me, &way);
}

static int go_private(struct test_rank *me)
{
    static const struct way way = {MOST, 800000, make_private, drop_private};

    return go(me, &way);
}

static void sets_of_the_job_give_their_memory_back(void **state)
{
    rank_run(*state, RANKS, go_public, NULL);
}

static void so_do_private_ones(void **state)
{
    rank_run(*state, RANKS, go_private, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(sets_of_the_job_give_their_memory_back),
        RANK_IN_PROCESSES(so_do_private_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
