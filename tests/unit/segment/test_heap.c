/* SPDX-License-Identifier: Apache-2.0 */
#include "os/memory.h"
#include "segment/heap.h"
#include "unit/unit.h"

#define PAGE  ((uint64_t)RUEDA_PAGE_BYTES)
#define PAGES 64
#define BEGIN (1000 * PAGE)

static int heap_open(void **state)
{
    *state = rueda_heap_new(BEGIN, PAGES * PAGE);
    return *state != NULL ? 0 : -1;
}

static int heap_close(void **state)
{
    rueda_heap_free(*state);
    return 0;
}

static uint64_t take(struct rueda_heap *heap, uint64_t bytes)
{
    uint64_t offset = 0;

    assert_int_equal(rueda_heap_take(heap, bytes, &offset), RUEDA_OK);
    return offset;
}

static void check_full(struct rueda_heap *heap, uint64_t bytes)
{
    uint64_t offset = 7;

    assert_int_equal(rueda_heap_take(heap, bytes, &offset), RUEDA_ERR_LIMIT);
    assert_int_equal(offset, 7);
}

static void the_first_place_that_fits_is_taken(void **state)
{
    struct rueda_heap *heap = *state;

    assert_int_equal(take(heap, 3 * PAGE), BEGIN);
    assert_int_equal(take(heap, 1 * PAGE), BEGIN + 3 * PAGE);
    assert_int_equal(take(heap, 2 * PAGE), BEGIN + 4 * PAGE);
    rueda_heap_give(heap, BEGIN);
    assert_int_equal(take(heap, 4 * PAGE), BEGIN + 6 * PAGE);
    assert_int_equal(take(heap, 2 * PAGE), BEGIN);
    assert_int_equal(take(heap, 1 * PAGE), BEGIN + 2 * PAGE);
}

static void bytes_are_rounded_up_to_pages(void **state)
{
    struct rueda_heap *heap = *state;

    assert_int_equal(take(heap, 1), BEGIN);
    assert_int_equal(take(heap, PAGE), BEGIN + PAGE);
    assert_int_equal(take(heap, PAGE + 1), BEGIN + 2 * PAGE);
    assert_int_equal(take(heap, 1), BEGIN + 4 * PAGE);
    assert_int_equal(rueda_heap_give(heap, BEGIN), PAGE);
    assert_int_equal(rueda_heap_give(heap, BEGIN + PAGE), PAGE);
    assert_int_equal(rueda_heap_give(heap, BEGIN + 2 * PAGE), 2 * PAGE);
}

static void the_whole_range_can_be_taken_and_no_more(void **state)
{
    struct rueda_heap *heap = *state;

    check_full(heap, PAGES * PAGE + 1);
    check_full(heap, UINT64_MAX);
    check_full(heap, UINT64_MAX - PAGE + 2);
    assert_int_equal(take(heap, PAGES * PAGE), BEGIN);
    check_full(heap, 1);
    assert_int_equal(rueda_heap_give(heap, BEGIN), PAGES * PAGE);
    assert_int_equal(take(heap, PAGES * PAGE - 1), BEGIN);
}

static void only_what_was_taken_can_be_given_back(void **state)
{
    struct rueda_heap *heap = *state;

    take(heap, 2 * PAGE);
    assert_int_equal(rueda_heap_give(heap, BEGIN + PAGE), 0);
    assert_int_equal(rueda_heap_give(heap, BEGIN + 2 * PAGE), 0);
    assert_int_equal(rueda_heap_give(heap, 0), 0);
    assert_int_equal(rueda_heap_give(heap, BEGIN), 2 * PAGE);
    assert_int_equal(rueda_heap_give(heap, BEGIN), 0);
}

/* Three pieces given back in each of the six orders make one again. */
static void neighbours_that_are_free_are_joined(void **state)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct rueda_heap *heap = *state;

    for (int order = 0; order < 6; order++) {
        uint64_t pieces[3];

        for (int i = 0; i < 3; i++)
            pieces[i] = take(heap, PAGES / 3 * PAGE);
        check_full(heap, 2 * PAGE);
        for (int i = 0; i < 3; i++)
            assert_int_equal(rueda_heap_give(heap, pieces[orders[order][i]]),
                             PAGES / 3 * PAGE);
        assert_int_equal(take(heap, PAGES * PAGE), BEGIN);
        assert_int_equal(rueda_heap_give(heap, BEGIN), PAGES * PAGE);
    }
}

/* ---- Against a model: one mark a page --------------------------------- */

struct model {
    int owner[PAGES]; /* 0: free; else the number of the take */
    int takes;
    uint32_t seed;
};

static uint32_t next_random(struct model *model)
{
    model->seed = model->seed * 1664525u + 1013904223u;
    return model->seed >> 8;
}

/* Where a first fit puts this many pages, or -1. */
static int model_place(const struct model *model, int pages)
{
    int run = 0;

    for (int i = 0; i < PAGES; i++) {
        run = model->owner[i] == 0 ? run + 1 : 0;
        if (run == pages)
            return i - pages + 1;
    }
    return -1;
}

static void take_in_both(struct model *model, struct rueda_heap *heap)
{
    int pages = (int)(next_random(model) % 12) + 1;
    uint64_t bytes = (uint64_t)pages * PAGE - next_random(model) % PAGE;
    int place = model_place(model, pages);

    if (place < 0) {
        check_full(heap, bytes);
        return;
    }
    assert_int_equal(take(heap, bytes), BEGIN + (uint64_t)place * PAGE);
    model->takes++;
    for (int i = place; i < place + pages; i++)
        model->owner[i] = model->takes;
}

static void give_in_both(struct model *model, struct rueda_heap *heap)
{
    int place = (int)(next_random(model) % PAGES);
    int owner = model->owner[place];
    bool is_start = place == 0 || model->owner[place - 1] != owner;
    uint64_t pages = 0;

    for (int i = place; owner != 0 && is_start && i < PAGES; i++)
        if (model->owner[i] == owner) {
            model->owner[i] = 0;
            pages++;
        }
    assert_int_equal(rueda_heap_give(heap, BEGIN + (uint64_t)place * PAGE),
                     pages * PAGE);
}

static void takes_and_gives_agree_with_a_model(void **state)
{
    struct model model = {.seed = 1};

    for (int i = 0; i < 50000; i++) {
        if (next_random(&model) % 2 == 0)
            take_in_both(&model, *state);
        else
            give_in_both(&model, *state);
    }
    assert_true(model.takes > 1000);
}

static void freeing_no_heap_is_allowed(void **state)
{
    (void)state;
    rueda_heap_free(NULL);
}

#define HEAP(test) cmocka_unit_test_setup_teardown(test, heap_open, heap_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEAP(the_first_place_that_fits_is_taken),
        HEAP(bytes_are_rounded_up_to_pages),
        HEAP(the_whole_range_can_be_taken_and_no_more),
        HEAP(only_what_was_taken_can_be_given_back),
        HEAP(neighbours_that_are_free_are_joined),
        HEAP(takes_and_gives_agree_with_a_model),
        cmocka_unit_test(freeing_no_heap_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
