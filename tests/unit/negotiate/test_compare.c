/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks are told when they differ, in the order of the checks; and how
 * requests travel. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "negotiate/compare.h"
#include "negotiate/wire.h"

static struct rueda_request request_of(int kind)
{
    return (struct rueda_request){
        .kind = kind,
        .dtype = RUEDA_FLOAT32,
        .root = kind == RUEDA_BROADCAST ? 2 : -1,
        .device = RUEDA_DEVICE_HOST,
        .prescale = 1,
        .postscale = 1,
        .dims = 2,
        .shape = {4, 3},
        .name = "grad",
    };
}

static void assert_differ(const struct rueda_request *a,
                          const struct rueda_request *b, const char *words)
{
    const struct rueda_said first = {0, a};
    const struct rueda_said second = {5, b};
    struct rueda_text text = {""};

    assert_int_not_equal(rueda_compare(a, b), 0);
    rueda_compare_explain(&first, &second, &text);
    if (strstr(text.chars, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text.chars, words);
    assert_non_null(strstr(text.chars, "tensor \"grad\""));
    assert_non_null(strstr(text.chars, "One rank (0)"));
    assert_non_null(strstr(text.chars, "another rank (5)"));
}

static void test_words(void **state)
{
    const struct rueda_request a = request_of(RUEDA_ALLREDUCE);
    struct rueda_request b = a;

    (void)state;
    assert_int_equal(rueda_compare(&a, &b), 0);
    b.dtype = RUEDA_INT64;
    assert_differ(&a, &b,
                  "Mismatched data types: One rank (0) had type float32, but "
                  "another rank (5) had type int64");
    b = request_of(RUEDA_BROADCAST);
    assert_differ(&a, &b,
                  "Mismatched operations: One rank (0) did an ALLREDUCE, but "
                  "another rank (5) did an BROADCAST");
    b = a;
    b.shape[1] = 7;
    assert_differ(&a, &b,
                  "Mismatched ALLREDUCE tensor shapes: One rank (0) sent a "
                  "tensor of shape [4, 3], but another rank (5) sent a tensor "
                  "of shape [4, 7]");
    b = a;
    b.postscale = 0.5;
    assert_differ(&a, &b,
                  "Mismatched prescale and/or postscale factors: One rank (0) "
                  "sent factors (1, 1), but another rank (5) sent factors "
                  "(1, 0.5)");
    b = a;
    b.reduction = RUEDA_MAX;
    assert_differ(&a, &b,
                  "Mismatched reduction operation: One rank (0) sent reduction "
                  "op sum, but another rank (5) sent reduction op max");
    b = a;
    b.device = 0;
    assert_differ(&a, &b,
                  "Mismatched ALLREDUCE CPU/GPU device selection: One rank (0) "
                  "specified device CPU, but another rank (5) specified device "
                  "GPU");
    b = a;
    b.group_count = 2;
    assert_differ(&a, &b, "Mismatched groups");
    b = a;
    b.compression = RUEDA_COMPRESS_FP16;
    assert_differ(&a, &b, "compression");
    b = a;
    b.flags = RUEDA_LIVE_AVERAGE;
    assert_differ(&a, &b, "have not joined");
    b = a;
    b.flags = RUEDA_UNPACKED;
    assert_differ(&a, &b, "Mismatched packing");
}

static void test_kinds(void **state)
{
    struct rueda_request a = request_of(RUEDA_BROADCAST);
    struct rueda_request b = a;

    (void)state;
    b.root = 0;
    assert_differ(
        &a, &b,
        "Mismatched BROADCAST root ranks: One rank (0) specified root "
        "rank 2, but another rank (5) specified root rank 0");
    a = request_of(RUEDA_ALLGATHER);
    b = a;
    b.shape[0] = 9; /* rows may differ */
    assert_int_equal(rueda_compare(&a, &b), 0);
    b.shape[1] = 9;
    assert_differ(&a, &b,
                  "Mismatched ALLGATHER tensor shapes: One rank (0) sent a "
                  "tensor with dimension 1 equal to 3, but another rank (5) "
                  "sent a tensor with dimension 1 equal to 9");
    b = a;
    b.dims = 1;
    assert_differ(&a, &b,
                  "Mismatched ALLGATHER tensor shapes: One rank (0) sent a "
                  "tensor of rank 2, but another rank (5) sent a tensor of "
                  "rank 1");
}

static void test_factors_that_are_no_numbers_are_the_same(void **state)
{
    struct rueda_request a = request_of(RUEDA_ALLREDUCE);
    struct rueda_request b = a;

    (void)state;
    a.prescale = NAN;
    assert_differ(&a, &b, "sent factors (nan, 1)");
    b.prescale = -NAN;
    assert_int_equal(rueda_compare(&a, &b), 0);
}

/* Whatever else differs, the first check decides. */
static void test_order_of_checks(void **state)
{
    struct rueda_request a = request_of(RUEDA_ALLREDUCE);
    struct rueda_request b = request_of(RUEDA_BROADCAST);

    (void)state;
    b.shape[0] = 1;
    b.prescale = 3;
    assert_differ(&a, &b, "Mismatched operations");
    b.dtype = RUEDA_UINT8;
    assert_differ(&a, &b, "data types");
}

static void test_priority_is_no_difference(void **state)
{
    struct rueda_request a = request_of(RUEDA_ALLREDUCE);
    struct rueda_request b = a;

    (void)state;
    b.priority = 4;
    assert_int_equal(rueda_compare(&a, &b), 0);
    assert_false(rueda_compare_is_same(&a, &b));
}

/* ---- On the wire --------------------------------------------------------- */

static void test_request_travels(void **state)
{
    struct rueda_request a = request_of(RUEDA_ALLREDUCE);
    struct rueda_out out = {0};
    struct rueda_request b;
    struct rueda_in in;

    (void)state;
    a.group = 0x1234567890u;
    a.group_count = 3;
    a.priority = -2;
    a.prescale = 0.25;
    rueda_out_request(&out, &a);
    in = (struct rueda_in){.at = out.bytes, .end = out.bytes + out.len};
    rueda_in_request(&in, &b);
    assert_false(in.has_failed);
    assert_ptr_equal(in.at, in.end);
    assert_string_equal(b.name, "grad");
    assert_true(rueda_compare_is_same(&a, &b));
    assert_int_equal(b.group, a.group);
    free((char *)b.name);

    /* Cut anywhere it is refused, and leaves nothing. */
    for (size_t len = 0; len < out.len; len++) {
        in = (struct rueda_in){.at = out.bytes, .end = out.bytes + len};
        rueda_in_request(&in, &b);
        assert_true(in.has_failed);
        assert_null(b.name);
    }
    rueda_out_fini(&out);
}

static void test_nonsense_is_refused(void **state)
{
    struct rueda_request a = request_of(RUEDA_ALLREDUCE);
    struct rueda_out out = {0};
    struct rueda_request b;
    struct rueda_in in;

    (void)state;
    a.shape[0] = UINT64_MAX / 2; /* more than any memory */
    rueda_out_request(&out, &a);
    in = (struct rueda_in){.at = out.bytes, .end = out.bytes + out.len};
    rueda_in_request(&in, &b);
    assert_true(in.has_failed);
    out.len = 0;
    a = request_of(RUEDA_ALLREDUCE);
    a.dtype = (rueda_dtype)99;
    rueda_out_request(&out, &a);
    in = (struct rueda_in){.at = out.bytes, .end = out.bytes + out.len};
    rueda_in_request(&in, &b);
    assert_true(in.has_failed);
    rueda_out_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_factors_that_are_no_numbers_are_the_same),
        cmocka_unit_test(test_order_of_checks),
        cmocka_unit_test(test_priority_is_no_difference),
        cmocka_unit_test(test_request_travels),
        cmocka_unit_test(test_nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
