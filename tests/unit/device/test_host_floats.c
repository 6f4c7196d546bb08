/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's kernels for floats alone: conversions of halves, checked for all
 * of them, and the sums of Adasum.
 */
#include "unit/host_numbers.h"

static void check_widening(const struct rueda_kernels *kernels,
                           rueda_dtype dtype)
{
    static uint16_t halves[65536];
    static uint16_t back[65536];
    static float wide[65536];

    for (int i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    rueda_host_convert(kernels, RUEDA_FLOAT32, wide, dtype, halves, 65536);
    rueda_host_convert(kernels, dtype, back, RUEDA_FLOAT32, wide, 65536);
    for (int i = 0; i < 65536; i++) {
        const double value = numbers_half(dtype, halves[i]);
        uint32_t bits;

        memcpy(&bits, &wide[i], sizeof(bits));
        if (isnan(value)) {
            const uint16_t quiet = dtype == RUEDA_FLOAT16 ? 0x200 : 0x40;

            assert_true(isnan(wide[i]) && (bits & 0x00400000) != 0);
            assert_int_equal(back[i], halves[i] | quiet);
        } else {
            assert_true((double)wide[i] == value);
            assert_int_equal(bits >> 31, halves[i] >> 15);
            assert_int_equal(back[i], halves[i]);
            numbers_store(dtype, back, (size_t)i, value);
            assert_int_equal(back[i], halves[i]);
        }
    }
}

static void every_half_widens_to_its_value_and_narrows_back(void **state)
{
    (void)state;
    for (size_t j = 0; j < present_count; j++) {
        check_widening(present[j], RUEDA_FLOAT16);
        check_widening(present[j], RUEDA_BFLOAT16);
    }
}

/* Between each half and the next: the middle, which belongs to the even one,
 * and its neighbours. Infinity takes the place of the number after the last. */
static void check_rounding(const struct rueda_kernels *kernels,
                           rueda_dtype dtype)
{
    const uint16_t infinity = dtype == RUEDA_FLOAT16 ? 0x7c00 : 0x7f80;

    for (uint16_t half = 0; half < infinity; half++) {
        const double value = numbers_half(dtype, half);
        const double step = half == 0 ? numbers_half(dtype, 1)
                                      : value - numbers_half(dtype, half - 1);
        const double up = half + 1 < infinity
                              ? numbers_half(dtype, (uint16_t)(half + 1))
                              : value + step;
        const float middle = (float)((value + up) / 2);
        const float in[] = {nextafterf(middle, 0), middle,
                            nextafterf(middle, INFINITY), -middle};
        const uint16_t even = (uint16_t)(half + (half & 1));
        const uint16_t expected[] = {half, even, (uint16_t)(half + 1),
                                     (uint16_t)(even | 0x8000)};
        uint16_t out[4];

        rueda_host_convert(kernels, dtype, out, RUEDA_FLOAT32, in, 4);
        assert_memory_equal(out, expected, sizeof(out));
    }
}

static void narrowing_rounds_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (size_t j = 0; j < present_count; j++) {
        check_rounding(present[j], RUEDA_FLOAT16);
        check_rounding(present[j], RUEDA_BFLOAT16);
    }
}

static void all_implementations_narrow_any_float_alike(void **state)
{
    const size_t count = 4001;

    (void)state;
    for (int round = 0; round < 100; round++) {
        fill_with_anything(RUEDA_FLOAT32, sources[0], count);
        for (int h = 0; h < 2; h++)
            for (size_t j = 0; j < present_count; j++) {
                memset(wanted, 0xa5, sizeof(wanted));
                memset(result, 0xa5, sizeof(result));
                rueda_host_convert(present[0], floats[h], wanted + 1,
                                   RUEDA_FLOAT32, sources[0], count);
                rueda_host_convert(present[j], floats[h], result + 1,
                                   RUEDA_FLOAT32, sources[0], count);
                assert_memory_equal(result, wanted, 2 * count + GUARD);
            }
    }
}

static void dots_are_right_for_every_float(void **state)
{
    const size_t count = 1003;

    (void)state;
    for (size_t f = 0; f < LENGTH_OF(floats); f++) {
        double expected[3] = {0, 0, 0};

        for (size_t i = 0; i < count; i++) {
            const double a = small_number(floats[f], 0, i);
            const double b = small_number(floats[f], 1, i);

            numbers_store(floats[f], sources[0], i, a);
            numbers_store(floats[f], sources[1], i, b);
            expected[0] += a * b;
            expected[1] += a * a;
            expected[2] += b * b;
        }
        for (size_t j = 0; j < present_count; j++) {
            double dots[3];

            rueda_host_dots(present[j], floats[f], sources[0], sources[1],
                            count, dots);
            assert_memory_equal(dots, expected, sizeof(dots));
        }
    }
}

/* Numbers of many magnitudes, whose squares are finite in fp64: each order of
 * adding them rounds to another sum. */
static void fill_with_finite(rueda_dtype dtype, unsigned char *p, size_t count)
{
    const size_t size = rueda_dtype_size(dtype);

    fill_with_anything(dtype, p, count);
    for (size_t i = 0; i < count; i++) {
        const double number = numbers_load(dtype, p, i);

        if (!isfinite(number))
            memset(p + i * size, 0, size);
        else if (fabs(number) > 1e100)
            numbers_store(dtype, p, i, (double)(next_random() >> 20));
    }
}

static void all_implementations_add_dots_in_the_same_order(void **state)
{
    static const size_t counts[] = {0, 1, 15, 16, 17, 1000, 1023};

    (void)state;
    for (size_t f = 0; f < LENGTH_OF(floats); f++)
        for (size_t c = 0; c < LENGTH_OF(counts); c++) {
            double expected[3];
            double dots[3];

            fill_with_finite(floats[f], sources[0] + 1, counts[c]);
            fill_with_finite(floats[f], sources[1] + 3, counts[c]);
            rueda_host_dots(present[0], floats[f], sources[0] + 1,
                            sources[1] + 3, counts[c], expected);
            for (size_t j = 1; j < present_count; j++) {
                rueda_host_dots(present[j], floats[f], sources[0] + 1,
                                sources[1] + 3, counts[c], dots);
                assert_memory_equal(dots, expected, sizeof(dots));
            }
        }
}

static void combine_adds_multiples(void **state)
{
    static const double by[2] = {0.5, -3.0};
    const size_t count = 205;

    (void)state;
    for (size_t f = 0; f < LENGTH_OF(floats); f++)
        for (size_t j = 0; j < present_count; j++) {
            for (int k = 0; k < 2; k++)
                for (size_t i = 0; i < count; i++)
                    numbers_store(floats[f], sources[k], i,
                                  small_number(floats[f], k, i));

            rueda_host_combine(present[j], floats[f], sources[1], sources[0],
                               sources[1], by, count);
            for (size_t i = 0; i < count; i++)
                assert_true(numbers_load(floats[f], sources[1], i) ==
                            0.5 * small_number(floats[f], 0, i) -
                                3.0 * small_number(floats[f], 1, i));
        }
}

static void all_implementations_combine_alike(void **state)
{
    static const double by[2] = {0.3, 1.7};
    static const size_t counts[] = {0, 1, 33, 1000};

    (void)state;
    for (size_t f = 0; f < LENGTH_OF(floats); f++)
        for (size_t c = 0; c < LENGTH_OF(counts); c++)
            for (size_t j = 0; j < present_count; j++) {
                fill_with_anything(floats[f], sources[0] + 1, counts[c]);
                fill_with_anything(floats[f], sources[1] + 3, counts[c]);
                memset(wanted, 0xa5, sizeof(wanted));
                memset(result, 0xa5, sizeof(result));
                rueda_host_combine(present[0], floats[f], wanted + 1,
                                   sources[0] + 1, sources[1] + 3, by,
                                   counts[c]);
                rueda_host_combine(present[j], floats[f], result + 1,
                                   sources[0] + 1, sources[1] + 3, by,
                                   counts[c]);
                assert_same(floats[f], result + 1, wanted + 1, counts[c]);
            }
}

/* ---- fp64 --------------------------------------------------------------- */

static void fp64_narrows_to_fp32_and_widens_back(void **state)
{
    static const double in[] = {
        0.0,     -1.5,  0x1.0000010000000p0, 0x1.0000030000000p0, 0x1p-149,
        0x1p128, -1e300};
    static const float expected[] = {
        0.0f, -1.5f, 1.0f, 0x1.000004p0f, 0x1p-149f, INFINITY, -INFINITY};
    float narrow[LENGTH_OF(in)];
    double wide[LENGTH_OF(in)];

    (void)state;
    for (size_t j = 0; j < present_count; j++) {
        rueda_host_convert(present[j], RUEDA_FLOAT32, narrow, RUEDA_FLOAT64, in,
                           LENGTH_OF(in));
        assert_memory_equal(narrow, expected, sizeof(expected));
        rueda_host_convert(present[j], RUEDA_FLOAT64, wide, RUEDA_FLOAT32,
                           narrow, LENGTH_OF(in));
        for (size_t i = 0; i < LENGTH_OF(in); i++)
            assert_true(wide[i] == (double)expected[i]);
    }
}

/* By way of fp32, in tiles; wanted is made in one piece. */
static void fp64_and_halves_convert_by_way_of_fp32(void **state)
{
    const size_t count = 3001; /* tiles, and a rest */
    static float between[3001];

    (void)state;
    for (int h = 0; h < 2; h++)
        for (size_t j = 0; j < present_count; j++) {
            fill_with_anything(RUEDA_FLOAT64, sources[0], count);
            memset(wanted, 0xa5, sizeof(wanted));
            memset(result, 0xa5, sizeof(result));
            rueda_host_convert(present[0], RUEDA_FLOAT32, between,
                               RUEDA_FLOAT64, sources[0], count);
            rueda_host_convert(present[0], floats[h], wanted + 1, RUEDA_FLOAT32,
                               between, count);
            rueda_host_convert(present[j], floats[h], result + 1, RUEDA_FLOAT64,
                               sources[0], count);
            assert_memory_equal(result, wanted, 2 * count + GUARD);

            fill_random(sources[0], 2 * count);
            rueda_host_convert(present[0], RUEDA_FLOAT32, between, floats[h],
                               sources[0], count);
            rueda_host_convert(present[0], RUEDA_FLOAT64, wanted + 1,
                               RUEDA_FLOAT32, between, count);
            rueda_host_convert(present[j], RUEDA_FLOAT64, result + 1, floats[h],
                               sources[0], count);
            assert_memory_equal(result, wanted, 8 * count + GUARD);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_widens_to_its_value_and_narrows_back),
        cmocka_unit_test(narrowing_rounds_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(all_implementations_narrow_any_float_alike),
        cmocka_unit_test(fp64_narrows_to_fp32_and_widens_back),
        cmocka_unit_test(fp64_and_halves_convert_by_way_of_fp32),
        cmocka_unit_test(dots_are_right_for_every_float),
        cmocka_unit_test(all_implementations_add_dots_in_the_same_order),
        cmocka_unit_test(combine_adds_multiples),
        cmocka_unit_test(all_implementations_combine_alike),
    };

    return cmocka_run_group_tests(tests, find_implementations, NULL);
}
