/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's kernels, reductions and scales: plain C is checked against sums
 * done here in the obvious way, on numbers that are exact in every dtype; the
 * vector implementations are then checked against plain C on every kind of bit
 * pattern.
 */
#include "unit/host_numbers.h"

static const rueda_reduction reductions[] = {RUEDA_SUM, RUEDA_MIN, RUEDA_MAX,
                                             RUEDA_PRODUCT};

static void kernels_are_found_by_name(void **state)
{
    const struct rueda_kernels *best = rueda_host_kernels(NULL);

    (void)state;
    assert_non_null(rueda_host_kernels("c"));
    assert_null(rueda_host_kernels("abacus"));
    assert_null(rueda_host_kernels(""));
    assert_ptr_equal(best, present[present_count - 1]);
    for (size_t j = 0; j < present_count; j++)
        assert_ptr_equal(rueda_host_kernels(rueda_kernels_name(present[j])),
                         present[j]);
}

static double joined(const struct rueda_arith *arith, double a, double b)
{
    const bool is_bool = arith->dtype == RUEDA_BOOL;

    switch (arith->reduction) {
    case RUEDA_MIN:
        return a < b ? a : b;
    case RUEDA_MAX:
        return a > b ? a : b;
    case RUEDA_PRODUCT:
        return a * b;
    default:
        return is_bool ? a != 0 || b != 0 : a + b;
    }
}

static void reduce(const struct rueda_kernels *kernels,
                   const struct rueda_arith *arith, unsigned char *dst, int n,
                   size_t count)
{
    const void *src[MAX_SOURCES];

    for (int k = 0; k < n; k++)
        src[k] = sources[k];
    rueda_host_reduce(kernels, arith, dst, src, n, count);
}

static void every_reduction_is_right_for_every_dtype(void **state)
{
    const size_t count = 301;
    const int n = 5; /* a product of five is exact even in bf16 */

    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++) {
        for (int k = 0; k < n; k++)
            for (size_t i = 0; i < count; i++)
                numbers_store(dtype, sources[k], i, small_number(dtype, k, i));
        for (size_t r = 0; r < LENGTH_OF(reductions); r++) {
            const struct rueda_arith arith = {dtype, reductions[r], 1.0, 1.0};

            memset(wanted, 0xa5, sizeof(wanted));
            for (size_t i = 0; i < count; i++) {
                double sum = small_number(dtype, 0, i);

                for (int k = 1; k < n; k++)
                    sum = joined(&arith, sum, small_number(dtype, k, i));
                numbers_store(dtype, wanted, i, sum);
            }
            for (size_t j = 0; j < present_count; j++) {
                memset(result, 0xa5, sizeof(result));
                reduce(present[j], &arith, result, n, count);
                assert_same(dtype, result, wanted, count);
            }
        }
    }
}

static void drop_signs_of_zeros(rueda_dtype dtype, unsigned char *vector,
                                size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_float(dtype) && numbers_load(dtype, vector, i) == 0)
            numbers_store(dtype, vector, i, 0);
}

/* Random numbers of every size, and both ends of integers. */
static void what_is_neutral_changes_no_result(void **state)
{
    static const double prescales[] = {1.0, 0.25, 3.0, -1.0, -2.5, 0.0};
    const void *src[3] = {sources[0], sources[1], sources[2]};
    const size_t count = 501;

    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++) {
        fill_with_anything(dtype, sources[0], count);
        memset(sources[0], 0xff, 8);
        memset(sources[0] + 8, 0x7f, 8);
        memset(sources[0] + 16, 0, 7);
        sources[0][23] = 0x80;
        drop_signs_of_zeros(dtype, sources[0], count);
        for (size_t r = 0; r < LENGTH_OF(reductions); r++)
            for (size_t p = 0; p < LENGTH_OF(prescales); p++) {
                const struct rueda_arith arith = {dtype, reductions[r],
                                                  prescales[p], 1.0};

                if (reductions[r] == RUEDA_PRODUCT && prescales[p] != 1.0)
                    continue;
                memset(wanted, 0xa5, sizeof(wanted));
                memset(result, 0xa5, sizeof(result));
                memset(sources[1], 0xa5, sizeof(sources[1]));
                rueda_host_neutral(&arith, sources[1] + 1, count);
                memcpy(sources[2], sources[1] + 1,
                       count * rueda_dtype_size(dtype));
                assert_int_equal(sources[1][0], 0xa5);
                assert_int_equal(
                    sources[1][1 + count * rueda_dtype_size(dtype)], 0xa5);
                src[1] = sources[1] + 1;
                rueda_host_reduce(present[0], &arith, wanted, src, 1, count);
                rueda_host_reduce(present[0], &arith, result, src, 3, count);
                drop_signs_of_zeros(dtype, wanted, count);
                drop_signs_of_zeros(dtype, result, count);
                assert_same(dtype, result, wanted, count);
            }
    }
}

static void zeros_are_neutral_where_that_is_said(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (int reduction = 0; reduction <= RUEDA_ADASUM; reduction++) {
            const struct rueda_arith arith = {dtype, reduction, 1.0, 1.0};

            memset(wanted, 0, 8);
            memset(result, 0, 8);
            rueda_host_neutral(&arith, result, 1);
            assert_int_equal(rueda_arith_has_zero(&arith),
                             memcmp(result, wanted, 8) == 0);
        }
}

static void scales_multiply_inputs_and_result(void **state)
{
    const size_t count = 77;

    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++) {
        const struct rueda_arith arith = {dtype, RUEDA_SUM, 2.0, 0.5};

        for (int k = 0; k < 3; k++)
            for (size_t i = 0; i < count; i++)
                numbers_store(dtype, sources[k], i, small_number(dtype, k, i));
        memset(wanted, 0xa5, sizeof(wanted));
        for (size_t i = 0; i < count; i++) {
            double sum = 0;

            for (int k = 0; k < 3; k++)
                sum += small_number(dtype, k, i);
            numbers_store(dtype, wanted, i,
                          dtype == RUEDA_BOOL ? sum > 0 : sum);
        }
        for (size_t j = 0; j < present_count; j++) {
            memset(result, 0xa5, sizeof(result));
            reduce(present[j], &arith, result, 3, count);
            assert_same(dtype, result, wanted, count);
        }
    }
}

/* Both implementations on the same bits: result apart, or over a source. The
 * pointers are odd, and differ from each other, if shift is not 0. */
static void compare(const struct rueda_kernels *kernels,
                    const struct rueda_arith *arith, int n, size_t count,
                    int shift)
{
    static unsigned char kept[ROOM];
    const size_t bytes = count * rueda_dtype_size(arith->dtype) + GUARD;
    const void *src[MAX_SOURCES];
    const int over = (int)(count % (size_t)n); /* a source to overwrite */
    unsigned char *target;

    for (int k = 0; k < n; k++)
        src[k] = sources[k] + (shift * (2 * k + 1)) % GUARD;
    target = sources[over] + (shift * (2 * over + 1)) % GUARD;

    memset(wanted, 0xa5, bytes + shift);
    memset(result, 0xa5, bytes + shift);
    rueda_host_reduce(present[0], arith, wanted + shift, src, n, count);
    rueda_host_reduce(kernels, arith, result + shift, src, n, count);
    assert_same(arith->dtype, result + shift, wanted + shift, count);

    memcpy(kept, target, bytes);
    rueda_host_reduce(kernels, arith, target, src, n, count);
    memcpy(result, target, bytes);
    memcpy(target, kept, bytes);
    memcpy(wanted + shift + bytes - GUARD, kept + bytes - GUARD, GUARD);
    assert_same(arith->dtype, result, wanted + shift, count);
}

static void compare_all_lengths(const struct rueda_kernels *kernels,
                                const struct rueda_arith *arith)
{
    static const int ns[] = {1, 2, 3, 5, 8, 9, MAX_SOURCES};
    static const size_t counts[] = {0, 1, 7, 31, 64, 1000, MAX_COUNT};

    for (size_t i = 0; i < LENGTH_OF(ns); i++)
        for (size_t j = 0; j < LENGTH_OF(counts); j++)
            for (int shift = 0; shift < 2; shift++)
                compare(kernels, arith, ns[i], counts[j], shift);
}

static void all_implementations_agree_bit_by_bit(void **state)
{
    static const double scales[][2] = {
        {1.0, 1.0}, {1.0, 1.0 / 3}, {-0.7, 1.0}, {1.25, 1e4}};

    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++) {
        for (int k = 0; k < MAX_SOURCES; k++)
            fill_with_anything(dtype, sources[k],
                               ROOM / rueda_dtype_size(dtype));
        for (size_t r = 0; r < LENGTH_OF(reductions); r++)
            for (size_t s = 0; s < LENGTH_OF(scales); s++)
                for (size_t j = 0; j < present_count; j++) {
                    const struct rueda_arith arith = {
                        dtype, reductions[r], scales[s][0], scales[s][1]};

                    compare_all_lengths(present[j], &arith);
                }
    }
}

/* In steps of fp16, 2048 + 1 is 2048 again and again. */
static void halves_are_added_in_fp32_and_rounded_once(void **state)
{
    const struct rueda_arith arith = {RUEDA_FLOAT16, RUEDA_SUM, 1.0, 1.0};
    const int n = 19; /* more than one pass */
    const size_t count = 1500;

    (void)state;
    for (int k = 0; k < n; k++)
        for (size_t i = 0; i < count; i++)
            numbers_store(RUEDA_FLOAT16, sources[k], i, k == 0 ? 2048 : 1);

    for (size_t j = 0; j < present_count; j++) {
        reduce(present[j], &arith, result, n, count);
        for (size_t i = 0; i < count; i++)
            assert_true(numbers_load(RUEDA_FLOAT16, result, i) == 2066);
    }
}

static void integers_wrap(void **state)
{
    const struct rueda_arith sum = {RUEDA_INT32, RUEDA_SUM, 1.0, 1.0};
    const struct rueda_arith product = {RUEDA_INT64, RUEDA_PRODUCT, 1.0, 1.0};
    const int32_t a = INT32_MAX;
    const int32_t b = 2;
    const int64_t c = INT64_MAX;
    const int64_t d = 3;
    int32_t out32;
    int64_t out64;

    (void)state;
    for (size_t j = 0; j < present_count; j++) {
        rueda_host_reduce(present[j], &sum, &out32, (const void *[]){&a, &b}, 2,
                          1);
        rueda_host_reduce(present[j], &product, &out64,
                          (const void *[]){&c, &d}, 2, 1);
        assert_int_equal(out32, INT32_MIN + 1);
        assert_true(out64 == INT64_MAX - 2);
    }
}

static void a_nan_anywhere_makes_minimum_and_maximum_nan(void **state)
{
    (void)state;
    for (size_t f = 0; f < LENGTH_OF(floats); f++) {
        const uint64_t nan = floats[f] == RUEDA_FLOAT64   ? 0x7ff8000000000000
                             : floats[f] == RUEDA_FLOAT32 ? 0x7fc00000
                                                          : 0x7fff;

        for (int at = 0; at < 3; at++)
            for (size_t j = 0; j < present_count; j++) {
                const struct rueda_arith min = {floats[f], RUEDA_MIN, 1, 1};
                const struct rueda_arith max = {floats[f], RUEDA_MAX, 1, 1};

                for (int k = 0; k < 3; k++)
                    numbers_store(floats[f], sources[k], 0, k - 1);
                memcpy(sources[at], &nan, rueda_dtype_size(floats[f]));
                reduce(present[j], &min, result, 3, 1);
                assert_true(is_nan_at(floats[f], result, 0));
                reduce(present[j], &max, result, 3, 1);
                assert_true(is_nan_at(floats[f], result, 0));
            }
    }
}

static void any_byte_but_zero_is_true_and_results_are_zero_or_one(void **state)
{
    static const unsigned char a[] = {0, 0, 2, 255};
    static const unsigned char b[] = {0, 128, 0, 4};
    static const unsigned char any[] = {0, 1, 1, 1};
    static const unsigned char all[] = {0, 0, 0, 1};
    const void *src[] = {a, b};

    (void)state;
    for (size_t j = 0; j < present_count; j++)
        for (size_t r = 0; r < LENGTH_OF(reductions); r++) {
            const struct rueda_arith arith = {RUEDA_BOOL, reductions[r], 1, 1};
            const bool is_any =
                reductions[r] == RUEDA_SUM || reductions[r] == RUEDA_MAX;

            rueda_host_reduce(present[j], &arith, result, src, 2, 4);
            assert_memory_equal(result, is_any ? any : all, 4);
        }
}

static void scaled_integers_are_cut_and_held_in_range(void **state)
{
    const int8_t in[] = {0, 1, -1, 3, -3, 100, -100, 127, -128};
    const int8_t halved[] = {0, 0, 0, 1, -1, 50, -50, 63, -64};
    const int8_t tripled[] = {0, 3, -3, 9, -9, 127, -128, 127, -128};
    const int8_t zeros[sizeof(in)] = {0};
    const int64_t wide[] = {INT64_MAX, INT64_MIN, (1ll << 53) + 1, 1};
    int64_t out[4];

    (void)state;
    for (size_t j = 0; j < present_count; j++) {
        const struct rueda_kernels *k = present[j];

        rueda_host_scale(k, RUEDA_INT8, result, in, sizeof(in), 0.5);
        assert_memory_equal(result, halved, sizeof(in));
        rueda_host_scale(k, RUEDA_INT8, result, in, sizeof(in), 3.0);
        assert_memory_equal(result, tripled, sizeof(in));
        rueda_host_scale(k, RUEDA_INT8, result, in, sizeof(in), NAN);
        assert_memory_equal(result, zeros, sizeof(in));

        rueda_host_scale(k, RUEDA_INT64, out, wide, 4, 1.0);
        assert_memory_equal(out, wide, sizeof(wide));
        rueda_host_scale(k, RUEDA_INT64, out, wide, 4, 2.0);
        assert_true(out[0] == INT64_MAX && out[1] == INT64_MIN && out[3] == 2);
        rueda_host_scale(k, RUEDA_INT64, out, wide, 4, -INFINITY);
        assert_true(out[0] == INT64_MIN && out[1] == INT64_MAX);
    }
}

static void all_implementations_scale_alike(void **state)
{
    static const double factors[] = {0.0, 1.0, -0.3, 1e6, INFINITY};
    const size_t count = 333;

    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++) {
        fill_with_anything(dtype, sources[0], count);
        for (size_t f = 0; f < LENGTH_OF(factors); f++)
            for (size_t j = 0; j < present_count; j++) {
                memset(wanted, 0xa5, sizeof(wanted));
                memset(result, 0xa5, sizeof(result));
                memcpy(result + 1, sources[0], count * rueda_dtype_size(dtype));
                rueda_host_scale(present[0], dtype, wanted + 1, sources[0],
                                 count, factors[f]);
                rueda_host_scale(present[j], dtype, result + 1, result + 1,
                                 count, factors[f]);
                assert_same(dtype, result + 1, wanted + 1, count);
            }
    }
}

static void a_bool_times_zero_is_false(void **state)
{
    static const unsigned char in[] = {0, 1, 7, 255};
    static const unsigned char flags[] = {0, 1, 1, 1};
    static const unsigned char none[] = {0, 0, 0, 0};

    (void)state;
    for (size_t j = 0; j < present_count; j++) {
        rueda_host_scale(present[j], RUEDA_BOOL, result, in, 4, 0.0);
        assert_memory_equal(result, none, 4);
        rueda_host_scale(present[j], RUEDA_BOOL, result, in, 4, 0.25);
        assert_memory_equal(result, flags, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_found_by_name),
        cmocka_unit_test(every_reduction_is_right_for_every_dtype),
        cmocka_unit_test(what_is_neutral_changes_no_result),
        cmocka_unit_test(zeros_are_neutral_where_that_is_said),
        cmocka_unit_test(scales_multiply_inputs_and_result),
        cmocka_unit_test(all_implementations_agree_bit_by_bit),
        cmocka_unit_test(halves_are_added_in_fp32_and_rounded_once),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(a_nan_anywhere_makes_minimum_and_maximum_nan),
        cmocka_unit_test(any_byte_but_zero_is_true_and_results_are_zero_or_one),
        cmocka_unit_test(scaled_integers_are_cut_and_held_in_range),
        cmocka_unit_test(all_implementations_scale_alike),
        cmocka_unit_test(a_bool_times_zero_is_false),
    };

    return cmocka_run_group_tests(tests, find_implementations, NULL);
}
