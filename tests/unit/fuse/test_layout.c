/* SPDX-License-Identifier: Apache-2.0 */
/* Where tensors lie that share a slab. */
#include "fuse/layout.h"
#include "unit/unit.h"

#define ROOM ((size_t)4096)

static void tensors_begin_at_multiples_of_64_bytes(void **state)
{
    static const size_t sizes[] = {4, 64, 65, 0, 0, 1, 128};
    static const size_t offsets[] = {0, 64, 128, 256, 256, 256, 320};
    size_t end = 0;
    size_t at = 1;

    (void)state;
    for (int i = 0; i < 7; i++) {
        assert_true(rueda_layout_add(&end, ROOM, sizes[i], &at));
        assert_int_equal(at, offsets[i]);
        assert_int_equal(end, at + sizes[i]);
    }
}

static void a_span_ends_where_the_next_tensor_may_begin(void **state)
{
    (void)state;
    assert_int_equal(rueda_layout_span(0), 0);
    assert_int_equal(rueda_layout_span(1), 64);
    assert_int_equal(rueda_layout_span(64), 64);
    assert_int_equal(rueda_layout_span(65), 128);
}

static void what_does_not_fit_changes_nothing(void **state)
{
    size_t end = 0;
    size_t at = 7;

    (void)state;
    assert_false(rueda_layout_add(&end, ROOM, ROOM + 1, &at));
    assert_false(rueda_layout_add(&end, ROOM, SIZE_MAX, &at));
    assert_int_equal(end, 0);
    assert_int_equal(at, 7);
    assert_true(rueda_layout_add(&end, ROOM, ROOM - 64, &at));
    assert_false(rueda_layout_add(&end, ROOM, 65, &at));
    assert_true(rueda_layout_add(&end, ROOM, 64, &at));
    assert_int_equal(end, ROOM);
    assert_false(rueda_layout_add(&end, ROOM, 1, &at));
    assert_true(rueda_layout_add(&end, ROOM, 0, &at));

    /* Nothing is left behind the last, not even up to the next multiple. */
    end = ROOM - 3;
    assert_false(rueda_layout_add(&end, ROOM - 1, 0, &at));
}

static void shares_are_equal_but_for_one_row(void **state)
{
    (void)state;
    for (size_t rows = 0; rows < 40; rows++)
        for (int members = 1; members < 9; members++) {
            const size_t least = rows / (size_t)members;
            size_t sum = 0;

            for (int i = 0; i < members; i++) {
                const size_t share = rueda_layout_share(rows, members, i);

                assert_true(share == least || share == least + 1);
                assert_true(i == 0 ||
                            share <= rueda_layout_share(rows, members, i - 1));
                sum += share;
            }
            assert_int_equal(sum, rows);
        }
}

static void rows_of_all_members_are_added_up(void **state)
{
    const uint64_t rows[] = {1, 90, 20, 91, 300, 92};
    size_t total = 7;

    (void)state;
    assert_true(rueda_layout_total(rows, 2, 3, 4, &total));
    assert_int_equal(total, 321);
    assert_true(rueda_layout_total(rows + 1, 2, 3, 0, &total));
    assert_int_equal(total, 273);
}

static void rows_that_fit_no_memory_are_found(void **state)
{
    const uint64_t one[] = {1, UINT64_MAX};
    const uint64_t both[] = {SIZE_MAX / 20, SIZE_MAX / 20};
    size_t total = 7;

    (void)state;
    assert_false(rueda_layout_total(one, 1, 2, 1, &total));
    assert_false(rueda_layout_total(one, 1, 2, 0, &total));
    assert_false(rueda_layout_total(both, 1, 2, 1, &total));
    assert_false(rueda_layout_total(both, 1, 1, 64, &total));
    assert_true(rueda_layout_total(both, 1, 1, 1, &total));
    assert_int_equal(total, SIZE_MAX / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_begin_at_multiples_of_64_bytes),
        cmocka_unit_test(a_span_ends_where_the_next_tensor_may_begin),
        cmocka_unit_test(what_does_not_fit_changes_nothing),
        cmocka_unit_test(shares_are_equal_but_for_one_row),
        cmocka_unit_test(rows_of_all_members_are_added_up),
        cmocka_unit_test(rows_that_fit_no_memory_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
