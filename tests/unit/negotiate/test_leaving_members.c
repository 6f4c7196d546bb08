/* SPDX-License-Identifier: Apache-2.0 */
/* Members that leave, of whom others still want something. */
#include "negotiate/negotiator.h"
#include "transport/loop/loop.h"
#include "unit/unit.h"

#define RANKS   3
#define TENSORS 100

struct fixture {
    struct rueda_loop_hub *hub;
    struct rueda_mesh meshes[RANKS];
    struct rueda_negotiator *members[RANKS];
    struct rueda_request requests[TENSORS];
    char names[TENSORS][16];
};

static int64_t no_time(void *arg)
{
    (void)arg;
    return 1;
}

static void fixture_open(struct fixture *fixture)
{
    static const int ranks[RANKS] = {0, 1, 2};
    struct rueda_negotiator_args args = {
        .tag = {1, 1, 0},
        .ranks = ranks,
        .cache_capacity = TENSORS,
        .now_ns = no_time,
    };

    assert_int_equal(rueda_loop_hub_open(RANKS, &fixture->hub), RUEDA_OK);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(rueda_mesh_init(&fixture->meshes[i], i, RANKS,
                                         rueda_loop_connect, fixture->hub),
                         RUEDA_OK);
        args.mesh = &fixture->meshes[i];
        assert_int_equal(rueda_negotiator_new(&args, &fixture->members[i]),
                         RUEDA_OK);
    }
    for (int i = 0; i < TENSORS; i++) {
        snprintf(fixture->names[i], sizeof(fixture->names[i]), "grad.%d", i);
        fixture->requests[i] = (struct rueda_request){
            .device = RUEDA_DEVICE_HOST, .dims = 1, .shape = {2}};
        fixture->requests[i].name = fixture->names[i];
        for (int rank = 0; rank < RANKS; rank++)
            assert_int_equal(rueda_negotiator_submit(fixture->members[rank],
                                                     &fixture->requests[i],
                                                     &fixture->requests[i]),
                             RUEDA_OK);
    }
}

static void leave(struct fixture *fixture, int rank)
{
    rueda_mesh_cancel(&fixture->meshes[rank], RUEDA_ERR_CANCELLED);
    rueda_negotiator_free(fixture->members[rank]);
    rueda_mesh_fini(&fixture->meshes[rank]);
    rueda_loop_hub_leave(fixture->hub, rank);
    rueda_loop_hub_release(fixture->hub);
}

/* All that this one can do by itself. Returns how the last turn ended. */
static rueda_status drive(struct fixture *fixture, int rank)
{
    struct rueda_text error = {{0}};
    rueda_status status = RUEDA_OK;
    int peer;

    while (status == RUEDA_OK) {
        rueda_mesh_progress(&fixture->meshes[rank], &peer);
        status = rueda_negotiator_turn(fixture->members[rank], &error);
    }
    return status;
}

static int count_decided(struct fixture *fixture, int rank)
{
    const struct rueda_decision *decision;
    int count = 0;

    while ((decision = rueda_negotiator_next(fixture->members[rank])) != NULL) {
        count += decision->count;
        rueda_negotiator_done(fixture->members[rank]);
    }
    return count;
}

/* Rank 2 has its decisions and is gone; rank 1 is slow, and has only the head
 * of a long message. The coordinator still has the rest to send. */
static void who_has_left_keeps_nobody_from_sending_to_others(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture);
    do {
        drive(&fixture, 1);
        drive(&fixture, 0);
    } while (rueda_negotiator_is_sending(fixture.members[1]));
    for (int decided = 0; decided < TENSORS;
         decided += count_decided(&fixture, 2)) {
        drive(&fixture, 2);
        drive(&fixture, 0);
        count_decided(&fixture, 0);
    }
    assert_true(rueda_negotiator_is_sending(fixture.members[0]));
    leave(&fixture, 2);

    assert_int_equal(drive(&fixture, 0), RUEDA_ERR_PEER_LOST);
    assert_true(rueda_negotiator_is_sending(fixture.members[0]));
    for (int i = 0; rueda_negotiator_is_sending(fixture.members[0]); i++) {
        assert_in_range(i, 0, 10);
        drive(&fixture, 1);
        drive(&fixture, 0);
    }
    leave(&fixture, 0);
    for (int decided = 0; decided < TENSORS; drive(&fixture, 1)) {
        const int more = count_decided(&fixture, 1);

        assert_in_range(more, 1, TENSORS);
        decided += more;
    }
    leave(&fixture, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_left_keeps_nobody_from_sending_to_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
