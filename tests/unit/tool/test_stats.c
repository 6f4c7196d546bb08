/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/config.h"
#include "base/near.h"
#include "tool/size.h"
#include "tool/stats.h"
#include "tool/tune.h"

static struct rueda_series series_of(const double *values, size_t count)
{
    struct rueda_series series = {0};

    for (size_t i = 0; i < count; i++)
        assert_true(rueda_series_add(&series, values[i]));
    return series;
}

static void a_median_is_in_the_middle_whatever_the_order(void **state)
{
    struct rueda_series odd = series_of((double[]){5, 1, 3}, 3);
    struct rueda_series even = series_of((double[]){4, 1, 3, 2}, 4);

    (void)state;
    assert_true(rueda_series_median(&odd) == 3.0);
    assert_true(rueda_series_median(&even) == 2.5);
    rueda_series_fini(&odd);
    rueda_series_fini(&even);
}

static void quantiles_reach_from_the_least_to_the_greatest(void **state)
{
    struct rueda_series series = {0};

    (void)state;
    for (int i = 200; i >= 0; i--)
        assert_true(rueda_series_add(&series, i));
    assert_true(rueda_series_quantile(&series, 0.0) == 0.0);
    assert_true(fabs(rueda_series_quantile(&series, 0.99) - 198.0) < 1e-9);
    assert_true(rueda_series_quantile(&series, 1.0) == 200.0);
    rueda_series_fini(&series);
}

static void an_empty_series_has_no_median(void **state)
{
    struct rueda_series series = series_of((double[]){7}, 1);

    (void)state;
    assert_true(rueda_series_median(&series) == 7.0);
    rueda_series_clear(&series);
    assert_true(isnan(rueda_series_median(&series)));
    rueda_series_fini(&series);
}

static void a_short_size_can_be_read_back(void **state)
{
    static const size_t sizes[] = {0,    1,       1000,     1024,
                                   1536, 2097152, 12345678, SIZE_MAX};
    char text[RUEDA_SIZE_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t back;

        assert_true(rueda_parse_size(rueda_size_short(sizes[i], text), &back));
        assert_true(back == sizes[i]);
    }
    assert_string_equal(rueda_size_short(4096, text), "4k");
    assert_string_equal(rueda_size_short(4097, text), "4097");
}

static void sizes_are_told_to_people_with_their_unit(void **state)
{
    char text[RUEDA_SIZE_TEXT];

    (void)state;
    assert_string_equal(rueda_size_words(8, text), "8 bytes");
    assert_string_equal(rueda_size_words(32768, text), "32 KiB");
    assert_string_equal(rueda_size_words((size_t)3 << 29, text), "1.5 GiB");
}

static void a_slip_of_the_hand_is_near(void **state)
{
    static const char *const known[] = {"allreduce", "allgather", "--np", NULL};

    (void)state;
    assert_int_equal(rueda_near_distance("abc", "abc"), 0);
    assert_int_equal(rueda_near_distance("abc", "acb"), 1);
    assert_int_equal(rueda_near_distance("", "abc"), 3);
    assert_string_equal(rueda_near_match("allredcue", known), "allreduce");
    assert_string_equal(rueda_near_match("allred", known), "allreduce");
    assert_string_equal(rueda_near_match("--pn", known), "--np");
    assert_null(rueda_near_match("broadcast", known));
    assert_null(rueda_near_match("x", known));
    assert_null(
        rueda_near_match("a word that is much longer than any option", known));
}

static void sizes_with_the_same_best_become_one_row(void **state)
{
    static const struct rueda_tune_point points[] = {
        {8, "direct"}, {32, "direct"}, {128, "tree"},
        {512, "ring"}, {2048, "ring"},
    };
    char rows[256];
    char little[12];
    size_t needed;

    (void)state;
    needed =
        rueda_tune_format(RUEDA_ALLREDUCE, 2, points, 5, rows, sizeof(rows));
    assert_string_equal(rows, "allreduce:0-64@2:direct;\n"
                              "allreduce:64-256@2:tree;\n"
                              "allreduce:256-inf@2:ring;\n");
    assert_true(rueda_tune_format(RUEDA_ALLREDUCE, 2, points, 5, little,
                                  sizeof(little)) == needed);
    assert_string_equal(little, "allreduce:0");
}

static void a_difference_below_0_is_told_to_be_noise(void **state)
{
    (void)state;
    assert_null(rueda_note_on_noise(0));
    assert_null(rueda_note_on_noise(0.1));
    assert_non_null(strstr(rueda_note_on_noise(-68459.2), "noise"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_median_is_in_the_middle_whatever_the_order),
        cmocka_unit_test(quantiles_reach_from_the_least_to_the_greatest),
        cmocka_unit_test(an_empty_series_has_no_median),
        cmocka_unit_test(a_short_size_can_be_read_back),
        cmocka_unit_test(sizes_are_told_to_people_with_their_unit),
        cmocka_unit_test(a_slip_of_the_hand_is_near),
        cmocka_unit_test(sizes_with_the_same_best_become_one_row),
        cmocka_unit_test(a_difference_below_0_is_told_to_be_noise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
