/* SPDX-License-Identifier: Apache-2.0 */
/* Ids in control messages: those that follow one another are one record. */
#include "negotiate/wire.h"
#include "unit/unit.h"

#define KIND   7
#define RECORD 9 /* bytes: kind, id, how many */

static void assert_record(const struct rueda_out *out, size_t index,
                          uint32_t id, uint32_t count)
{
    const unsigned char *at = out->bytes + index * RECORD;

    assert_true(out->len >= (index + 1) * RECORD);
    assert_int_equal(at[0], KIND);
    assert_int_equal(rueda_get_u32(at + 1), id);
    assert_int_equal(rueda_get_u32(at + 5), count);
}

static void ids_one_after_another_are_one_record(void **state)
{
    struct rueda_id_run run = {0};
    struct rueda_out out = {0};

    (void)state;
    for (uint32_t id = 3; id < 403; id++)
        rueda_out_id(&out, &run, KIND, id);
    assert_int_equal(out.len, RECORD);
    assert_record(&out, 0, 3, 400);
    rueda_out_fini(&out);
}

static void a_id_out_of_order_begins_anew(void **state)
{
    static const uint32_t ids[] = {5, 6, 6, 4, 5, 0};
    struct rueda_id_run run = {0};
    struct rueda_out out = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        rueda_out_id(&out, &run, KIND, ids[i]);
    assert_int_equal(out.len, 4 * RECORD);
    assert_record(&out, 0, 5, 2);
    assert_record(&out, 1, 6, 1);
    assert_record(&out, 2, 4, 2);
    assert_record(&out, 3, 0, 1);
    rueda_out_fini(&out);
}

/* What is in between is not counted up in its place. */
static void something_else_ends_a_record(void **state)
{
    struct rueda_id_run run = {0};
    struct rueda_out out = {0};

    (void)state;
    rueda_out_id(&out, &run, KIND, 1);
    rueda_out_u32(&out, 77);
    rueda_out_id(&out, &run, KIND, 2);
    assert_int_equal(out.len, 2 * RECORD + 4);
    assert_record(&out, 0, 1, 1);
    assert_int_equal(rueda_get_u32(out.bytes + RECORD), 77);
    assert_int_equal(rueda_get_u32(out.bytes + RECORD + 4 + 1), 2);
    rueda_out_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_one_after_another_are_one_record),
        cmocka_unit_test(a_id_out_of_order_begins_anew),
        cmocka_unit_test(something_else_ends_a_record),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
