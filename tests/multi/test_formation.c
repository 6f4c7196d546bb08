/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process dies, and the others form the next term without it. The engine of
 * each rank stands still meanwhile: the test holds its token.
 */
#include <signal.h>
#include <string.h>

#include "api/ctx.h"
#include "engine/drive.h"
#include "support/formation_slab.h"
#include "support/processes.h"

#define RANKS 3
#define COUNT 5000
#define LATE  10000 /* ms */

/* The test's own messages and tasks, beside those of the engine. */
#define OWN_SET 9

/* A track on a formation, and what it sums up. */
struct sum {
    struct rueda_formation *formation;
    struct rueda_select select;
    struct rueda_slab slab;
    struct rueda_track track;
};

static void open_sum(struct sum *sum, struct rueda_formation *formation,
                     float *values)
{
    const struct rueda_track_args args = {
        .job = formation->job,
        .select = &sum->select,
        .device = rueda_device_default("auto"),
        .mesh = &formation->mesh,
        .slab = formation_slab(formation, &sum->slab),
        .set = OWN_SET,
    };

    sum->formation = formation;
    rueda_select_init(&sum->select);
    if (rueda_track_open(&sum->track, &args) != RUEDA_OK)
        abort();
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i * (formation->rank + 1));
    sum->track.task.coll = (struct rueda_coll){
        .kind = RUEDA_ALLREDUCE,
        .arith = {.dtype = RUEDA_FLOAT32,
                  .reduction = RUEDA_SUM,
                  .prescale = 1,
                  .postscale = 1},
        .elem_bytes = sizeof(float),
        .send = values,
        .recv = values,
        .count = COUNT,
    };
}

static rueda_status turn(struct sum *sum)
{
    int peer = -1;

    rueda_mesh_progress(&sum->formation->mesh, &peer);
    return rueda_track_progress(&sum->track);
}

/* It begins, and cannot end. */
static int miss_the_victim(struct test_rank *me, float *values, int victim)
{
    struct rueda_formation *formation = me->ctx->job->formation;
    const int64_t until = rank_now_ms() + LATE;
    rueda_status status;
    struct sum sum;

    open_sum(&sum, formation, values);
    status = rueda_track_start(&sum.track);
    while (!rueda_segment_is_gone(formation->segment, victim)) {
        if (rank_now_ms() > until)
            return rank_says(me, "the death of rank %d is not seen", victim);
        if (status == RUEDA_IN_PROGRESS)
            status = turn(&sum);
        rueda_segment_watch(formation->segment);
    }
    if (status == RUEDA_OK)
        return rank_says(me, "a sum of the dead");
    rueda_mesh_cancel(&formation->mesh, RUEDA_ERR_PEER_LOST);
    rueda_track_finish(&sum.track, RUEDA_ERR_PEER_LOST);
    rueda_track_close(&sum.track);
    return 0;
}

static int form(struct test_rank *me, int victim, struct rueda_formation **out)
{
    const int64_t until = rank_now_ms() + LATE;
    struct rueda_text error = {{0}};
    rueda_status status;
    int survivors[2];
    int count = 0;

    for (int i = 0; i < RANKS; i++)
        if (i != victim)
            survivors[count++] = i;
    status = rueda_formation_begin_next(me->ctx->job->formation, survivors,
                                        count, out, &error);
    if (status != RUEDA_OK)
        return rank_says(me, "begin: %s", error.chars);
    do {
        status = rueda_formation_meet(*out, &error);
        rank_sleep_ms(1);
    } while (status == RUEDA_IN_PROGRESS && rank_now_ms() < until);
    if (status != RUEDA_OK)
        return rank_says(me, "meet: %s", error.chars);
    return 0;
}

static int sum_up(struct test_rank *me, struct rueda_formation *formation,
                  float *values)
{
    const int64_t until = rank_now_ms() + LATE;
    rueda_status status;
    struct sum sum;

    open_sum(&sum, formation, values);
    status = rueda_track_start(&sum.track);
    while (status == RUEDA_IN_PROGRESS && rank_now_ms() < until)
        status = turn(&sum);
    if (status != RUEDA_OK)
        return rank_expect(me, status, RUEDA_OK, "the sum of the survivors");
    rueda_track_finish(&sum.track, RUEDA_OK);
    rueda_track_close(&sum.track);
    for (int i = 0; i < COUNT; i++)
        if (values[i] != (float)(i * 3))
            return rank_says(me, "value %d is %g", i, (double)values[i]);
    return 0;
}

static int survive(struct test_rank *me, float *values)
{
    const int victim = *(const int *)me->arg;
    struct rueda_formation *next = NULL;
    int code = miss_the_victim(me, values, victim);

    if (code == 0)
        code = form(me, victim, &next);
    for (int round = 0; round < 3 && code == 0; round++)
        code = sum_up(me, next, values);
    if (code == 0 && (next->term != 2 || next->size != 2))
        code = rank_says(me, "term %u of %d", next->term, next->size);
    rueda_formation_release(next);
    return code;
}

static int lose_one(struct test_rank *me)
{
    const int victim = *(const int *)me->arg;
    void *memory;
    void *values;
    int code;

    if (rueda_alloc(me->ctx, 4096, &memory) != RUEDA_OK ||
        rueda_alloc(me->ctx, COUNT * sizeof(float), &values) != RUEDA_OK)
        return rank_says(me, "no memory");
    memset(memory, me->rank + 1, 4096);
    if (rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
        return 1;
    while (!rueda_drive_take(&me->ctx->engine))
        rank_sleep_ms(1);
    if (me->rank == victim)
        raise(SIGKILL);
    code = survive(me, values);
    rueda_drive_release(&me->ctx->engine);
    if (code == 0 && ((char *)memory)[4095] != me->rank + 1)
        return rank_says(me, "its memory has changed");
    return code;
}

static void run(const struct rank_setup *setup, int victim)
{
    struct processes processes;

    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    processes_start(&processes, RANKS, processes_join, lose_one, &victim);
    processes.expected[victim] = PROCESS_SIGNAL - SIGKILL;
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

static void survivors_of_a_death_form_the_next_term(void **state)
{
    rank_hush();
    for (int victim = 0; victim < RANKS; victim++)
        run(*state, victim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(survivors_of_a_death_form_the_next_term),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
