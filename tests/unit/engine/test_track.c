/* SPDX-License-Identifier: Apache-2.0 */
/* What a tag says of the numbers that travel under it. */
#include "engine/track.h"
#include "unit/unit.h"

static void all_but_floating_point_numbers_are_proven(void **state)
{
    (void)state;
#define X(name, value, bytes, text)                                            \
    assert_int_equal(rueda_tag_is_proven(rueda_track_tag(                      \
                         (struct rueda_tag){1, 2, 3}, RUEDA_##name)),          \
                     !rueda_dtype_is_float(RUEDA_##name));
    RUEDA_DTYPE_MAP(X)
#undef X
    assert_true(
        rueda_tag_is_proven((struct rueda_tag){.sequence = RUEDA_TAG_CONTROL}));
}

/* Ranks that disagree about the type meet all the same, and an error says so.
 */
static void tags_of_two_types_match(void **state)
{
    const struct rueda_tag tag = {1, 2, 3};
    const struct rueda_tag other = {1, 2, 4};

    (void)state;
    assert_true(rueda_tag_equal(rueda_track_tag(tag, RUEDA_FLOAT32),
                                rueda_track_tag(tag, RUEDA_INT32)));
    assert_false(rueda_tag_equal(rueda_track_tag(tag, RUEDA_INT32),
                                 rueda_track_tag(other, RUEDA_INT32)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_but_floating_point_numbers_are_proven),
        cmocka_unit_test(tags_of_two_types_match),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
