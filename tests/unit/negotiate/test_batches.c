/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs together, and in which order, of what is ready. There is one
 * member, so that everything is ready at once. Tensors have names of one
 * letter; a batch is the word of its letters: "ac b" are two of them.
 */
#include "fuse/rounds.h"
#include "negotiate/negotiator.h"
#include "transport/loop/loop.h"
#include "unit/unit.h"

#define MOST 8

struct fixture {
    struct rueda_loop_hub *hub;
    struct rueda_mesh mesh;
    struct rueda_negotiator *member;
    struct rueda_request requests[MOST];
    char names[MOST][2];
    int count;
    char said[8 * MOST]; /* batches so far */
};

static int64_t no_time(void *arg)
{
    (void)arg;
    return 1;
}

static void open_fixture(struct fixture *fixture, size_t fusion_bytes,
                         bool groups_alone)
{
    static const int rank = 0;
    struct rueda_negotiator_args args = {
        .mesh = &fixture->mesh,
        .tag = {1, 1, 0},
        .ranks = &rank,
        .cache_capacity = MOST,
        .fusion_bytes = fusion_bytes,
        .groups_alone = groups_alone,
        .now_ns = no_time,
    };

    memset(fixture, 0, sizeof(*fixture));
    assert_int_equal(rueda_loop_hub_open(1, &fixture->hub), RUEDA_OK);
    assert_int_equal(
        rueda_mesh_init(&fixture->mesh, 0, 1, rueda_loop_connect, fixture->hub),
        RUEDA_OK);
    assert_int_equal(rueda_negotiator_new(&args, &fixture->member), RUEDA_OK);
}

static void close_fixture(struct fixture *fixture)
{
    rueda_negotiator_free(fixture->member);
    rueda_mesh_fini(&fixture->mesh);
    rueda_loop_hub_leave(fixture->hub, 0);
    rueda_loop_hub_release(fixture->hub);
}

/* The next tensor, an allreduce of 64 bytes, to be changed before it is
 * submitted. */
static struct rueda_request *next(struct fixture *fixture)
{
    struct rueda_request *request = &fixture->requests[fixture->count];
    char *name = fixture->names[fixture->count];

    name[0] = (char)('a' + fixture->count++);
    *request = (struct rueda_request){
        .kind = RUEDA_ALLREDUCE,
        .dtype = RUEDA_FLOAT32,
        .root = -1,
        .device = RUEDA_DEVICE_HOST,
        .prescale = 1,
        .postscale = 1,
        .dims = 1,
        .shape = {16},
        .name = name,
    };
    return request;
}

static void submit(struct fixture *fixture, struct rueda_request *request)
{
    assert_int_equal(rueda_negotiator_submit(fixture->member, request, request),
                     RUEDA_OK);
}

static void say(struct fixture *fixture, const char *what)
{
    const size_t used = strlen(fixture->said);

    snprintf(fixture->said + used, sizeof(fixture->said) - used, "%s", what);
}

/* Carry out what is decided, until nothing is. */
static const char *batches(struct fixture *fixture)
{
    struct rueda_text error = {{0}};
    const struct rueda_decision *decision;

    while (rueda_negotiator_turn(fixture->member, &error) == RUEDA_OK ||
           rueda_negotiator_next(fixture->member) != NULL) {
        decision = rueda_negotiator_next(fixture->member);
        if (decision == NULL)
            continue;
        if (fixture->said[0] != '\0')
            say(fixture, " ");
        for (int i = 0; i < decision->count; i++)
            say(fixture, decision->items[i].request->name);
        rueda_negotiator_done(fixture->member);
    }
    return fixture->said;
}

/* This many alike, with this many bytes for a batch. */
static void assert_batches(int count, size_t fusion_bytes, const char *wanted)
{
    struct fixture fixture;

    open_fixture(&fixture, fusion_bytes, false);
    for (int i = 0; i < count; i++)
        submit(&fixture, next(&fixture));
    assert_string_equal(batches(&fixture), wanted);
    close_fixture(&fixture);
}

static void tensors_run_together_up_to_the_size_of_the_slab(void **state)
{
    (void)state;
    assert_batches(4, 1024, "abcd");
    assert_batches(4, 256, "abcd");
    assert_batches(4, 255, "abc d");
    assert_batches(5, 128, "ab cd e");
    assert_batches(3, 0, "a b c");
}

static void set_kind(struct rueda_request *request)
{
    request->kind = RUEDA_REDUCE_SCATTER;
}

static void set_dtype(struct rueda_request *request)
{
    request->dtype = RUEDA_INT32;
}

static void set_reduction(struct rueda_request *request)
{
    request->reduction = RUEDA_MAX;
}

static void set_prescale(struct rueda_request *request)
{
    request->prescale = 2;
}

static void set_postscale(struct rueda_request *request)
{
    request->postscale = 2;
}

static void set_compression(struct rueda_request *request)
{
    request->compression = RUEDA_COMPRESS_BF16;
}

static void set_flags(struct rueda_request *request)
{
    request->flags = RUEDA_LIVE_AVERAGE;
}

static void set_device(struct rueda_request *request)
{
    request->device = 0;
}

static void what_does_not_fit_is_passed_over(void **state)
{
    static void (*const changes[])(struct rueda_request *) = {
        set_kind,      set_dtype,       set_reduction, set_prescale,
        set_postscale, set_compression, set_flags,     set_device};

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct fixture fixture;

        open_fixture(&fixture, 1024, false);
        for (int n = 0; n < 5; n++) {
            struct rueda_request *request = next(&fixture);

            if (n == 1 || n == 3)
                changes[i](request);
            submit(&fixture, request);
        }
        assert_string_equal(batches(&fixture), "ace bd");
        close_fixture(&fixture);
    }
}

/* What is taken and what is passed over have to fit the slab together. */
static void nobody_looks_further_than_the_slab_is_long(void **state)
{
    static const struct {
        size_t bytes;
        const char *wanted;
    } cases[] = {{256, "ac b"}, {255, "a b c"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fixture fixture;
        struct rueda_request *request;

        open_fixture(&fixture, cases[i].bytes, false);
        submit(&fixture, next(&fixture));
        request = next(&fixture);
        request->dtype = RUEDA_INT32;
        request->shape[0] = 32;
        submit(&fixture, request);
        submit(&fixture, next(&fixture));
        assert_string_equal(batches(&fixture), cases[i].wanted);
        close_fixture(&fixture);
    }
}

static void some_kinds_run_alone(void **state)
{
    static const int kinds[] = {RUEDA_ALLTOALL, RUEDA_BARRIER};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fixture fixture;

        open_fixture(&fixture, 1024, false);
        for (int n = 0; n < 2; n++) {
            struct rueda_request *request = next(&fixture);

            if (i < 2)
                request->kind = kinds[i];
            else
                request->reduction = RUEDA_ADASUM;
            submit(&fixture, request);
        }
        assert_string_equal(batches(&fixture), "a b");
        close_fixture(&fixture);
    }
}

/* Broadcasts from one root, and a large one. */
static void small_broadcasts_run_together(void **state)
{
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 1 << 20, false);
    for (int n = 0; n < 6; n++) {
        struct rueda_request *request = next(&fixture);

        request->kind = RUEDA_BROADCAST;
        request->root = n == 1 || n == 4 ? 1 : 0;
        if (n == 2)
            request->shape[0] = RUEDA_ROUND_BROADCAST_MOST;
        submit(&fixture, request);
    }
    assert_string_equal(batches(&fixture), "adf be c");
    close_fixture(&fixture);
}

static struct rueda_request *in_group(struct rueda_request *request,
                                      uint32_t count)
{
    request->group = 77;
    request->group_count = count;
    return request;
}

static void a_group_waits_for_the_last_of_it(void **state)
{
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 1024, false);
    submit(&fixture, in_group(next(&fixture), 2));
    submit(&fixture, next(&fixture));
    assert_string_equal(batches(&fixture), "b");
    submit(&fixture, in_group(next(&fixture), 2));
    assert_string_equal(batches(&fixture), "b ac");
    close_fixture(&fixture);
}

static void a_group_runs_with_others_unless_it_is_to_be_alone(void **state)
{
    static const char *const wanted[2] = {"abcd", "ad bc"};

    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        struct fixture fixture;

        open_fixture(&fixture, 1024, alone != 0);
        submit(&fixture, next(&fixture));
        submit(&fixture, in_group(next(&fixture), 2));
        submit(&fixture, in_group(next(&fixture), 2));
        submit(&fixture, next(&fixture));
        assert_string_equal(batches(&fixture), wanted[alone]);
        close_fixture(&fixture);
    }
}

static void the_highest_priority_comes_first(void **state)
{
    static const int priorities[] = {0, 2, 1, 2};
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 0, false);
    for (int i = 0; i < 4; i++) {
        struct rueda_request *request = next(&fixture);

        request->priority = priorities[i];
        submit(&fixture, request);
    }
    assert_string_equal(batches(&fixture), "b d c a");
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_run_together_up_to_the_size_of_the_slab),
        cmocka_unit_test(what_does_not_fit_is_passed_over),
        cmocka_unit_test(nobody_looks_further_than_the_slab_is_long),
        cmocka_unit_test(some_kinds_run_alone),
        cmocka_unit_test(small_broadcasts_run_together),
        cmocka_unit_test(a_group_waits_for_the_last_of_it),
        cmocka_unit_test(a_group_runs_with_others_unless_it_is_to_be_alone),
        cmocka_unit_test(the_highest_priority_comes_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
