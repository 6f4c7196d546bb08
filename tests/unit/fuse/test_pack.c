/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that share a slab: where they lie, and that they come out as they
 * went in. */
#include "fuse/pack.h"
#include "unit/unit.h"

#define ROOM  ((size_t)4096)
#define PARTS 4

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

static struct rueda_pack begin(struct rueda_work *work, char *slab,
                               struct rueda_part *parts, bool is_out)
{
    return (struct rueda_pack){
        .device = rueda_device_default("auto"),
        .work = work,
        .slab = slab,
        .is_out = is_out,
        .parts = parts,
        .room = PARTS,
    };
}

/* More tensors than there are parts in a list. */
static void tensors_come_out_as_they_went_in(void **state)
{
    static const size_t sizes[] = {1, 100, 0, 64, 333, 8};
    unsigned char in[6][333];
    unsigned char out[6][333];
    char slab[ROOM];
    struct rueda_part parts[PARTS];
    struct rueda_work work = {RUEDA_OK, {NULL}};
    struct rueda_pack pack = begin(&work, slab, parts, false);

    (void)state;
    memset(slab, 0x55, sizeof(slab));
    memset(out, 0x55, sizeof(out));
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            in[i][k] = (unsigned char)(i * 50 + k + 1);
        rueda_pack_in(&pack, in[i], sizes[i]);
    }
    rueda_pack_flush(&pack);
    assert_int_equal(pack.end, 506);
    assert_int_equal(slab[pack.end], 0x55);
    pack = begin(&work, slab, parts, true);
    for (size_t i = 0; i < 6; i++)
        rueda_pack_out(&pack, i == 4 ? NULL : out[i], sizes[i]);
    rueda_pack_flush(&pack);
    assert_int_equal(work.status, RUEDA_OK);
    for (size_t i = 0; i < 6; i++)
        if (i != 4)
            assert_memory_equal(out[i], in[i], sizes[i]);
    assert_int_equal(out[4][0], 0x55);
}

static void gaps_and_tensors_that_are_not_there_become_zeros(void **state)
{
    const struct rueda_device *device = rueda_device_default("auto");
    struct rueda_part parts[2] = {{.send = "abc", .bytes = 3}};
    struct rueda_work work = {RUEDA_OK, {NULL}};
    struct rueda_layout layout = {.end = 3};
    char slab[ROOM];

    (void)state;
    memset(slab, 0x55, sizeof(slab));
    parts[1].bytes = 100;
    assert_true(rueda_layout_add(&layout, ROOM, 100, &parts[1].at));
    assert_int_equal(parts[1].at, 64);
    assert_int_equal(rueda_device_gather(device, &work, slab, parts, 2),
                     RUEDA_OK);
    assert_memory_equal(slab, "abc", 3);
    for (size_t i = 3; i < 164; i++)
        assert_int_equal(slab[i], 0);
    assert_int_equal(slab[164], 0x55);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_begin_at_multiples_of_64_bytes),
        cmocka_unit_test(a_span_ends_where_the_next_tensor_may_begin),
        cmocka_unit_test(what_does_not_fit_changes_nothing),
        cmocka_unit_test(tensors_come_out_as_they_went_in),
        cmocka_unit_test(gaps_and_tensors_that_are_not_there_become_zeros),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
