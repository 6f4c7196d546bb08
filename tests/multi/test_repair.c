/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks die at random moments of a program, and the others go on
 * (RUEDA_REPAIR=1). Each rank gives a bit of its own to each sum, so that a
 * result says which ranks are in it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/processes.h"

#define RANKS  4
#define STEPS  40
#define NAMED  3
#define OPS    (NAMED + 2) /* in each step: named, ordered, a large one */
#define SMALL  700
#define LARGE  300000
#define ROUNDS (RANK_IS_SLOW ? 2 : 6)

/* What a job does, and what its ranks have got; all processes see it. */
struct record {
    unsigned seed;
    int victims;
    int victim[2];
    int step[2];                    /* in which each of them dies, */
    int delay_us[2];                /* this long after the step has begun */
    int64_t got[RANKS][STEPS][OPS]; /* 0: not yet */
    int rank[RANKS];                /* in the end */
    int size[RANKS];
};

struct scratch {
    int64_t in[LARGE];
    int64_t out[OPS][LARGE];
};

static void *die_soon(void *arg)
{
    usleep((unsigned)*(const int *)arg);
    raise(SIGKILL);
    return NULL;
}

/* A victim comes a few steps further at most. */
static void maybe_die(struct record *record, int me, int step)
{
    pthread_t thread;

    for (int i = 0; i < record->victims; i++) {
        if (record->victim[i] != me)
            continue;
        if (step == record->step[i])
            pthread_create(&thread, NULL, die_soon, &record->delay_us[i]);
        if (step > record->step[i] + 5)
            pause();
    }
}

/* All elements alike; -1: they are not. */
static int64_t value_of(const int64_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return -1;
    return values[0];
}

static rueda_status begin_named(rueda_ctx *ctx, struct scratch *scratch, int i,
                                rueda_handle *handle)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    size_t shape = SMALL;
    char name[16];

    snprintf(name, sizeof(name), "grad.%d", i);
    args.kind = RUEDA_ALLREDUCE;
    args.name = name;
    args.send = scratch->in;
    args.recv = scratch->out[i];
    args.dtype = RUEDA_INT64;
    args.dims = 1;
    args.shape = &shape;
    return rueda_submit(ctx, &args, handle);
}

/* One step of the program: NAMED sums by name, which run while two others run
 * in order, the large one in place. */
static rueda_status run_step(struct test_rank *me, struct scratch *scratch,
                             int64_t *got)
{
    rueda_handle handles[NAMED];
    rueda_status status = rueda_step(me->ctx);

    for (int i = 0; i < NAMED && status == RUEDA_OK; i++)
        status = begin_named(me->ctx, scratch, i, &handles[i]);
    if (status == RUEDA_OK)
        status = rueda_allreduce(me->ctx, scratch->in, scratch->out[NAMED],
                                 SMALL, RUEDA_INT64, RUEDA_SUM);
    memcpy(scratch->out[NAMED + 1], scratch->in, sizeof(scratch->in));
    if (status == RUEDA_OK)
        status = rueda_allreduce(me->ctx, scratch->out[NAMED + 1],
                                 scratch->out[NAMED + 1], LARGE, RUEDA_INT64,
                                 RUEDA_SUM);
    for (int i = 0; i < NAMED && status == RUEDA_OK; i++)
        status = rueda_wait(me->ctx, handles[i], -1);
    if (status == RUEDA_OK)
        status = rueda_barrier(me->ctx);
    for (int i = 0; i < OPS && status == RUEDA_OK; i++)
        got[i] =
            value_of(scratch->out[i], i == NAMED + 1 ? LARGE : (size_t)SMALL);
    return status;
}

static int train(struct test_rank *me)
{
    struct record *record = me->arg;
    struct scratch *scratch = calloc(1, sizeof(*scratch));
    const int number = me->rank;

    if (scratch == NULL)
        return rank_says(me, "no memory");
    for (int i = 0; i < LARGE; i++)
        scratch->in[i] = (int64_t)1 << number;
    for (int step = 0; step < STEPS; step++) {
        rueda_status status;

        maybe_die(record, number, step);
        status = run_step(me, scratch, record->got[number][step]);
        if (status != RUEDA_OK)
            return rank_says(me, "step %d: %s: %s", step,
                             rueda_status_str(status), rueda_error(me->ctx));
    }
    free(scratch);
    record->rank[number] = rueda_rank(me->ctx);
    record->size[number] = rueda_size(me->ctx);
    return 0;
}

/* ---- What must be true afterwards ---------------------------------------- */

static bool is_victim(const struct record *record, int rank)
{
    for (int i = 0; i < record->victims; i++)
        if (record->victim[i] == rank)
            return true;
    return false;
}

static int64_t survivors_of(const struct record *record)
{
    int64_t bits = 0;

    for (int rank = 0; rank < RANKS; rank++)
        if (!is_victim(record, rank))
            bits |= (int64_t)1 << rank;
    return bits;
}

/* All that have a result have the same, and it has all survivors in it; no rank
 * that was left out once is in a later step. */
static void check_results(const struct record *record)
{
    const int64_t survivors = survivors_of(record);
    int64_t before = ((int64_t)1 << RANKS) - 1;

    for (int step = 0; step < STEPS; step++) {
        int64_t in_step = before;

        for (int op = 0; op < OPS; op++) {
            int64_t result = 0;

            for (int rank = 0; rank < RANKS; rank++) {
                const int64_t got = record->got[rank][step][op];

                if (got == 0 && is_victim(record, rank))
                    continue;
                if (result == 0)
                    result = got;
                assert_int_equal(got, result);
            }
            assert_int_equal(result & survivors, survivors);
            assert_int_equal(result & ~before, 0);
            in_step &= result;
        }
        before = in_step;
    }
    assert_int_equal(before, survivors);
}

/* Ranks below the new size keep their numbers, the highest fill the gaps. */
static void check_numbers(const struct record *record)
{
    const int size = RANKS - record->victims;
    bool is_taken[RANKS] = {false};

    for (int rank = 0; rank < RANKS; rank++) {
        if (is_victim(record, rank))
            continue;
        assert_int_equal(record->size[rank], size);
        assert_in_range(record->rank[rank], 0, size - 1);
        assert_false(is_taken[record->rank[rank]]);
        is_taken[record->rank[rank]] = true;
        if (rank < size)
            assert_int_equal(record->rank[rank], rank);
    }
}

static void run_job(const struct rank_setup *setup, struct record *record)
{
    struct processes processes;

    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    setenv("RUEDA_REPAIR", "1", 1);
    processes_start(&processes, RANKS, processes_join, train, record);
    for (int i = 0; i < record->victims; i++)
        processes.expected[record->victim[i]] = PROCESS_SIGNAL - SIGKILL;
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
    unsetenv("RUEDA_REPAIR");
    check_results(record);
    check_numbers(record);
}

static struct record *new_record(unsigned seed, int victims)
{
    struct record *record = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(record != MAP_FAILED);
    record->seed = seed;
    record->victims = victims;
    for (int i = 0; i < victims; i++) {
        record->victim[i] = (int)((seed + (unsigned)i) % RANKS);
        record->step[i] = 1 + rand_r(&record->seed) % (STEPS / 2);
        record->delay_us[i] = rand_r(&record->seed) % 3000;
    }
    return record;
}

/* Each rank is the victim in turn. */
static void run(const struct rank_setup *setup, int victims)
{
    const unsigned first = (unsigned)time(NULL);

    for (unsigned seed = first; seed < first + ROUNDS; seed++) {
        struct record *record = new_record(seed, victims);

        print_message("seed %u\n", seed);
        run_job(setup, record);
        munmap(record, sizeof(*record));
    }
}

static void survivors_of_a_death_go_on_with_the_same_results(void **state)
{
    rank_hush();
    run(*state, 1);
}

static void survivors_of_two_deaths_go_on_with_the_same_results(void **state)
{
    rank_hush();
    run(*state, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(survivors_of_a_death_go_on_with_the_same_results),
        RANK_TEST(survivors_of_two_deaths_go_on_with_the_same_results,
                  processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
