/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that share a slab: where they lie, and that they come out as they
 * went in. */
#include "fuse/pack.h"
#include "unit/unit.h"

#define ROOM ((size_t)4096)

static void tensors_begin_at_multiples_of_64_bytes(void **state)
{
    static const size_t sizes[] = {4, 64, 65, 0, 0, 1, 128};
    static const size_t offsets[] = {0, 64, 128, 256, 256, 256, 320};
    struct rueda_layout layout = {0};
    size_t offset = 1;

    (void)state;
    for (int i = 0; i < 7; i++) {
        assert_true(rueda_layout_add(&layout, ROOM, sizes[i], &offset));
        assert_int_equal(offset, offsets[i]);
        assert_int_equal(layout.end, offset + sizes[i]);
    }
}

static void what_does_not_fit_changes_nothing(void **state)
{
    struct rueda_layout layout = {0};
    size_t offset = 7;

    (void)state;
    assert_false(rueda_layout_add(&layout, ROOM, ROOM + 1, &offset));
    assert_false(rueda_layout_add(&layout, ROOM, SIZE_MAX, &offset));
    assert_int_equal(layout.end, 0);
    assert_int_equal(offset, 7);
    assert_true(rueda_layout_add(&layout, ROOM, ROOM - 64, &offset));
    assert_false(rueda_layout_add(&layout, ROOM, 65, &offset));
    assert_true(rueda_layout_add(&layout, ROOM, 64, &offset));
    assert_int_equal(layout.end, ROOM);
    assert_false(rueda_layout_add(&layout, ROOM, 1, &offset));
    assert_true(rueda_layout_add(&layout, ROOM, 0, &offset));

    /* Nothing is left behind the last, not even up to the next multiple. */
    layout.end = ROOM - 3;
    assert_false(rueda_layout_add(&layout, ROOM - 1, 0, &offset));
}

static void tensors_come_out_as_they_went_in(void **state)
{
    static const size_t sizes[] = {1, 100, 0, 64, 333, 8};
    unsigned char in[6][333];
    unsigned char out[333];
    char slab[ROOM];
    struct rueda_layout layout = {0};

    (void)state;
    memset(slab, 0x55, sizeof(slab));
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            in[i][k] = (unsigned char)(i * 50 + k + 1);
        rueda_pack(slab, ROOM, &layout, in[i], sizes[i]);
    }
    assert_int_equal(slab[layout.end], 0x55);
    assert_int_equal(slab[1], 0);
    assert_int_equal(slab[63], 0);
    layout.end = 0;
    for (size_t i = 0; i < 6; i++) {
        size_t offset =
            rueda_unpack(slab, ROOM, &layout, i == 4 ? NULL : out, sizes[i]);

        assert_int_equal(offset % RUEDA_LAYOUT_ALIGN, 0);
        if (i != 4)
            assert_memory_equal(out, in[i], sizes[i]);
    }
}

static void who_has_nothing_to_give_packs_zeros(void **state)
{
    struct rueda_layout layout = {0};
    char slab[ROOM];

    (void)state;
    memset(slab, 0x55, sizeof(slab));
    rueda_pack(slab, ROOM, &layout, "abc", 3);
    assert_int_equal(rueda_pack(slab, ROOM, &layout, NULL, 100), 64);
    assert_memory_equal(slab, "abc", 3);
    for (size_t i = 3; i < 164; i++)
        assert_int_equal(slab[i], 0);
    assert_int_equal(slab[164], 0x55);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_begin_at_multiples_of_64_bytes),
        cmocka_unit_test(what_does_not_fit_changes_nothing),
        cmocka_unit_test(tensors_come_out_as_they_went_in),
        cmocka_unit_test(who_has_nothing_to_give_packs_zeros),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
